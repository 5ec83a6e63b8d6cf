#include "weir/net/sha256.hpp"

#include "weir/base/result.hpp"

#include <openssl/evp.h>
#include <openssl/sha.h>

#include <fmt/ranges.h>

#include <array>

namespace weir::net {

Sha256::Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
  WEIR_ASSERT(context_ && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
}

void Sha256::add(std::string_view bytes) {
  WEIR_ASSERT(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
}

std::string Sha256::hex() {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  WEIR_ASSERT(EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr) == 1);
  return fmt::format("{:02x}", fmt::join(digest, ""));
}

}  // namespace weir::net
