#include "target.hpp"

#include "weir/base/ids.hpp"

namespace weir::net {

namespace {
int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}
bool control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }
}  // namespace

Error target_error(std::string_view field, std::string_view problem) {
  return Error{Errc::invalid, "bad_request", fmt::format("{}: {}", field, problem), {{"field", field}}};
}

std::optional<std::string> decode_text(std::string_view raw, Plus plus) {
  std::string out;
  out.reserve(raw.size());
  bool ascii = true;
  for (size_t i = 0; i < raw.size(); ++i) {
    char c = raw[i];
    if (c == '%') {
      if (raw.size() - i < 3) return std::nullopt;
      int high = hex_digit(raw[i + 1]), low = hex_digit(raw[i + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      c = static_cast<char>(high * 16 + low);
      i += 2;
    } else if (c == '+' && plus == Plus::space) {
      c = ' ';
    }
    if (control(c)) return std::nullopt;
    ascii = ascii && static_cast<unsigned char>(c) < 0x80;
    out += c;
  }
  if (!ascii && !valid_utf8(out)) return std::nullopt;
  return out;
}

Result<Target> split_target(std::string_view raw) {
  if (raw.starts_with("http://") || raw.starts_with("https://")) {
    size_t path = raw.find_first_of("/?", raw.find("//") + 2);
    raw = path == std::string_view::npos ? std::string_view("/") : raw.substr(path);
  }
  Target target;
  size_t query = raw.find('?');
  target.raw_path = raw.substr(0, query);
  if (query != std::string_view::npos) target.raw_query = raw.substr(query + 1);
  if (target.raw_path.empty() || target.raw_path.front() != '/')
    return target_error("path", "must start with a slash");
  if (raw.find('#') != std::string_view::npos) return target_error("path", "must not hold a fragment");
  return target;
}

Status read_query(std::string_view raw, std::map<std::string, std::string, std::less<>>& out) {
  while (!raw.empty()) {
    size_t end = raw.find('&');
    std::string_view pair = raw.substr(0, end);
    raw = end == std::string_view::npos ? std::string_view() : raw.substr(end + 1);
    if (pair.empty()) continue;
    size_t equals = pair.find('=');
    auto name = decode_text(pair.substr(0, equals), Plus::space);
    auto value = decode_text(equals == std::string_view::npos ? std::string_view() : pair.substr(equals + 1),
                             Plus::space);
    if (!name || !value) return target_error("query", "must be percent-encoded UTF-8 without control characters");
    out.insert_or_assign(*std::move(name), *std::move(value));
  }
  return ok();
}

}  // namespace weir::net
