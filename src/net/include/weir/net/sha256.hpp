// Sha256: the checksum of bytes that come piece by piece. One thread at a time.
#pragma once

#include <memory>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

namespace weir::net {

class Sha256 {
 public:
  Sha256();
  void add(std::string_view bytes);
  // Of all that was added, in lower-case hex; once, and nothing is added afterwards.
  std::string hex();

 private:
  std::unique_ptr<evp_md_ctx_st, void (*)(evp_md_ctx_st*)> context_;
};

}  // namespace weir::net
