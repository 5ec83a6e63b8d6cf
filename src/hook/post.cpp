#include "weir/hook/post.hpp"

#include <algorithm>
#include <charconv>

namespace weir::hook {

namespace {

bool is_visible(char c) { return c > 0x20 && c < 0x7F; }

bool is_port(std::string_view text) {
  unsigned port = 0;
  auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), port);
  return bad == std::errc() && end == text.data() + text.size() && port > 0 && port <= 65535;
}

// How many bytes the UTF-8 character at the beginning has; 0 where there is none. Overlong forms, surrogates and what
// lies beyond U+10FFFF are no characters.
size_t character_bytes(std::string_view text) {
  auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  unsigned first = byte(0), low = 0x80, high = 0xBF;
  if (first < 0x80) return 1;
  size_t length = first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
  if (first == 0xE0) low = 0xA0;
  if (first == 0xED) high = 0x9F;
  if (first == 0xF0) low = 0x90;
  if (first == 0xF4) high = 0x8F;
  if (length == 0 || byte(1) < low || byte(1) > high) return 0;
  for (size_t i = 2; i < length; ++i)
    if (byte(i) < 0x80 || byte(i) > 0xBF) return 0;
  return length;
}

}  // namespace

std::optional<Address> split_url(std::string_view url) {
  if (!url.starts_with("http://")) return {};
  url.remove_prefix(7);
  if (!std::ranges::all_of(url, [](char c) { return is_visible(c) && c != '@' && c != '?' && c != '#'; })) return {};
  size_t slash = std::min(url.find('/'), url.size());
  Address out{.authority = std::string(url.substr(0, slash)), .prefix = std::string(url.substr(slash))};
  while (out.prefix.ends_with('/')) out.prefix.pop_back();
  std::string_view rest = out.authority;
  if (rest.starts_with('[')) {
    size_t bracket = rest.find(']');
    if (bracket == std::string_view::npos) return {};
    out.host = rest.substr(1, bracket - 1);
    rest.remove_prefix(bracket + 1);
  } else {
    out.host = rest.substr(0, rest.find(':'));
    rest.remove_prefix(out.host.size());
  }
  out.port = rest.empty() ? "80" : rest.substr(1);
  if (out.host.empty() || (!rest.empty() && rest[0] != ':') || !is_port(out.port)) return {};
  return out;
}

std::string json_string(std::string_view bytes) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  while (!bytes.empty()) {
    size_t length = character_bytes(bytes);
    auto c = static_cast<unsigned char>(bytes[0]);
    if (length == 0) out += "\\ufffd";
    else if (c < 0x20 || c == 0x7F) out.append("\\u00").append({kHex[c >> 4], kHex[c & 15]});
    else if (c == '"' || c == '\\') out.append({'\\', bytes[0]});
    else out += bytes.substr(0, length);
    bytes.remove_prefix(std::max<size_t>(length, 1));
  }
  return out + '"';
}

std::string request_text(const Address& to, std::string_view what, const Event& event, std::string_view token) {
  std::string body = "{\"path\":" + json_string(event.path) + ",\"query\":" + json_string(event.query) +
                     ",\"sourceType\":" + json_string(event.source_type) +
                     ",\"sourceId\":" + json_string(event.source_id) + "}";
  std::string out = "POST " + to.prefix + "/v1/mediamtx/events/" + std::string(what) + " HTTP/1.1\r\nHost: " +
                    to.authority + "\r\nContent-Type: application/json\r\nContent-Length: " +
                    std::to_string(body.size()) + "\r\nConnection: close\r\n";
  if (!token.empty()) out.append("Authorization: Bearer ").append(token).append("\r\n");
  return out + "\r\n" + body;
}

bool is_token(std::string_view text) { return !text.empty() && std::ranges::all_of(text, is_visible); }

int status_of(std::string_view answer) {
  std::string_view line = answer.substr(0, answer.find("\r\n"));
  int status = 0;
  if (line.size() == answer.size() || !line.starts_with("HTTP/1.") || line.size() < 12 || line[8] != ' ') return 0;
  auto [end, bad] = std::from_chars(line.data() + 9, line.data() + 12, status);
  return bad == std::errc() && end == line.data() + 12 && (line.size() == 12 || line[12] == ' ') ? status : 0;
}

}  // namespace weir::hook
