#include "weir/base/random.hpp"

#include "weir/base/result.hpp"

#include <fmt/format.h>

#include <sys/random.h>

#include <cstdint>
#include <vector>

namespace weir {

namespace {
void fill(void* to, size_t bytes) {
  auto* at = static_cast<unsigned char*>(to);
  while (bytes > 0) {
    ssize_t got = getrandom(at, bytes, 0);
    WEIR_ASSERT(got > 0);
    at += got;
    bytes -= static_cast<size_t>(got);
  }
}
}  // namespace

std::string random_hex(size_t bytes) {
  std::vector<unsigned char> raw(bytes);
  fill(raw.data(), raw.size());
  std::string out;
  for (unsigned char c : raw) out += fmt::format("{:02x}", c);
  return out;
}

double random_unit() {
  std::uint64_t bits = 0;
  fill(&bits, sizeof bits);
  return static_cast<double>(bits >> 11) * 0x1.0p-53;
}

}  // namespace weir
