#include "request.hpp"

#include <algorithm>
#include <charconv>

namespace weir::control_plane {

Error bad_field(std::string_view path, std::string what) {
  return json::problems_error({{std::string(path), std::move(what)}});
}

std::string name_problem(const std::string& name) {
  if (name.size() > 255) return "must have at most 255 bytes";
  bool control = std::ranges::any_of(name, [](unsigned char c) { return c < 0x20 || c == 0x7F; });
  return control ? "must not contain control characters" : "";
}

Result<json::value> body_value(const net::Request& request) { return json::parse_text(request.body); }

Result<json::object> body_object(const net::Request& request) {
  TRY(parsed, body_value(request));
  if (!parsed.is_object()) return bad_field("body", "must be an object");
  return std::move(parsed.get_object());
}

Result<std::optional<bool>> query_flag(const net::Request& request, std::string_view name) {
  auto text = request.query_value(name);
  if (!text || text->empty()) return std::optional<bool>();
  if (*text == "true") return std::optional<bool>(true);
  if (*text == "false") return std::optional<bool>(false);
  return bad_field(name, "must be true or false");
}

Result<std::int64_t> path_zone_id(const net::Request& request) {
  const std::string& text = request.param("zone_id");
  std::int64_t id = 0;
  auto [stopped, failed] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (failed != std::errc() || stopped != text.data() + text.size() || id < 1 || id > INT32_MAX)
    return bad_field("zone_id", fmt::format("must be a whole number between 1 and {}", INT32_MAX));
  return id;
}

}  // namespace weir::control_plane
