#include "weir/base/ids.hpp"

#include <array>

namespace weir {

namespace {
// Words that stand in a route where an id could stand.
constexpr std::array<std::string_view, 14> kReserved = {
    "register", "heartbeat", "acquire", "renew",  "release", "acquire-batch", "renew-batch",
    "release-batch", "events", "camera", "runner", "batch", "budget", "config"};

// The length of the UTF-8 sequence that starts at `at`, or 0 if it is not one.
size_t utf8_sequence(std::string_view text, size_t at) {
  auto byte = [&](size_t i) { return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u; };
  auto continues = [&](size_t i) { return (byte(i) & 0xC0) == 0x80; };
  unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return continues(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    if (!continues(1) || !continues(2)) return 0;
    if (lead == 0xE0 && byte(1) < 0xA0) return 0;
    if (lead == 0xED && byte(1) > 0x9F) return 0;  // surrogates
    return 3;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    if (!continues(1) || !continues(2) || !continues(3)) return 0;
    if (lead == 0xF0 && byte(1) < 0x90) return 0;
    if (lead == 0xF4 && byte(1) > 0x8F) return 0;
    return 4;
  }
  return 0;
}
}  // namespace

bool valid_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    size_t length = utf8_sequence(text, at);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

std::string_view id_problem(std::string_view text) {
  if (text.empty()) return "must not be empty";
  if (text.size() > 255) return "must have at most 255 bytes";
  for (unsigned char c : text)
    if (c < 0x20 || c == 0x7F) return "must not contain control characters";
  if (!valid_utf8(text)) return "must be valid UTF-8";
  for (size_t i = 0; i + 1 < text.size(); ++i)  // U+0080 to U+009F, which terminals obey too
    if (text[i] == '\xC2' && static_cast<unsigned char>(text[i + 1]) < 0xA0)
      return "must not contain control characters";
  // A client tidies such a path segment away before it ever reaches the server.
  if (text == "." || text == "..") return "must not be . or ..";
  for (auto word : kReserved)
    if (text == word) return "is a reserved word";
  return "";
}

}  // namespace weir
