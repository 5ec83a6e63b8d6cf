// TlsIdentity: the certificate that a server shows, and the private key that proves it to be the server's own.
//
// Both are read from PEM files; behind the server's own certificate, its file holds those that lead to an authority,
// except the authority's. Immutable: a server takes a new identity for its new connections, and connections that were
// made under an older one go on. Shared freely; any thread.
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"

#include <memory>
#include <string>

struct ssl_ctx_st;

namespace weir::net {

class TlsIdentity {
 public:
  // An error says which file is wrong, and how. A certificate that has ended is none: clients refuse it and say so.
  static Result<std::shared_ptr<const TlsIdentity>> load(const std::string& certificate_file,
                                                         const std::string& key_file);
  ~TlsIdentity();
  TlsIdentity(const TlsIdentity&) = delete;

  // When the first of its certificates ends, be it the server's own or one that leads to the authority.
  WallTime ends() const { return ends_; }

 private:
  friend class TlsSession;
  TlsIdentity();
  ssl_ctx_st* context_;
  WallTime ends_ = WallTime::max();
};

}  // namespace weir::net
