#include "weir/base/plain_file.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

namespace weir {

namespace {
Error failure(std::string sentence) { return {Errc::unavailable, "file", std::move(sentence)}; }
}  // namespace

Result<std::string> read_plain_file(const std::string& path, std::uintmax_t bytes_max) {
  std::error_code failed;
  bool plain = std::filesystem::is_regular_file(path, failed);
  if (failed) return failure(fmt::format("{} cannot be opened: {}", path, failed.message()));
  auto bytes = plain ? std::filesystem::file_size(path, failed) : 0;
  if (failed || bytes == 0) return failure(fmt::format("{} is empty or not a file", path));
  if (bytes > bytes_max) return failure(fmt::format("{} is larger than {} bytes", path, bytes_max));
  std::string text(bytes, '\0');
  std::ifstream in(path, std::ios::binary);
  if (!in.read(text.data(), static_cast<std::streamsize>(bytes)))
    return failure(fmt::format("{} cannot be read", path));
  return text;
}

}  // namespace weir
