// TLS: which authorities a client believes, and one encrypted conversation of a client or of a server.
//
// A session does no input or output: bytes that came from the socket are fed to it, bytes that it wants sent are taken
// from it, so that the owner of the socket keeps its deadlines, also the one past which no byte may be written. TLS 1.2
// and newer. To a client, the server's certificate must lead to a known authority, be valid now, and be for the name
// that was asked for. Nothing switches that off. A server shows its TlsIdentity and asks for no certificate. A trust is
// shared freely; a session belongs to one thread.
#pragma once

#include "weir/base/result.hpp"

#include <memory>
#include <string>
#include <string_view>

struct ssl_ctx_st;
struct ssl_st;

namespace weir::net {

inline constexpr unsigned char kAlpn[] = "\x08http/1.1";  // the only protocol that is spoken within

class TlsTrust {
 public:
  // The system's authorities, and those in `ca_file` (PEM) where one is named.
  static Result<std::shared_ptr<const TlsTrust>> load(const std::string& ca_file);
  ~TlsTrust();
  TlsTrust(const TlsTrust&) = delete;

 private:
  friend class TlsSession;
  TlsTrust();
  ssl_ctx_st* context_;
};

class TlsIdentity;

class TlsSession {
 public:
  // A client's. `host` is the name or address that the certificate must be for.
  TlsSession(const TlsTrust& trust, std::string host);
  // A server's. Neither trust nor identity must live longer than this call.
  explicit TlsSession(const TlsIdentity& identity);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;

  // Goes on with the handshake as far as what was fed allows; an error says which check failed.
  Status shake_hands();
  bool established() const;
  void feed(std::string_view received);
  size_t output_bytes() const;
  std::string take_output();
  // Appends `text`, encrypted, to `to`, behind whatever else waited to be sent.
  Status encrypt(std::string_view text, std::string& to);
  // Appends what can be read to `to`. `closed`: the peer has said that nothing follows.
  Status decrypt(std::string& to, bool& closed);
  // What tells the peer that nothing follows.
  std::string goodbye();

 private:
  Error problem() const;

  const std::string host_;  // a client's
  ssl_st* ssl_;
};

}  // namespace weir::net
