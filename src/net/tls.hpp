// TLS for the client: which authorities are believed, and one encrypted conversation.
//
// A session does no input or output: bytes that came from the socket are fed to it, bytes that it wants sent are taken
// from it, so that the owner of the socket keeps its deadlines, also the one past which no byte may be written. TLS 1.2
// and newer; the server's certificate must lead to a known authority, be valid now, and be for the name that was asked
// for. Nothing switches that off. A trust is shared freely; a session belongs to one thread.
#pragma once

#include "weir/base/result.hpp"

#include <memory>
#include <string>
#include <string_view>

struct ssl_ctx_st;
struct ssl_st;

namespace weir::net {

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

class TlsSession {
 public:
  // `host` is the name or address that the certificate must be for.
  TlsSession(std::shared_ptr<const TlsTrust> trust, std::string host);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;

  // Goes on with the handshake as far as what was fed allows; an error says which check failed.
  Status shake_hands();
  bool established() const;
  void feed(std::string_view received);
  std::string take_output();
  Result<std::string> encrypt(std::string_view head, std::string_view body);
  // Appends what can be read to `to`. `closed`: the server has said that nothing follows.
  Status decrypt(std::string& to, bool& closed);

 private:
  Error problem() const;

  const std::shared_ptr<const TlsTrust> trust_;
  const std::string host_;
  ssl_st* ssl_;
};

}  // namespace weir::net
