// The request target: where it splits, and how its parts are decoded. Strict, because everything behind it trusts
// that a path and a query hold clean UTF-8. Pure functions.
#pragma once

#include "weir/net/http.hpp"

namespace weir::net {

// Percent-decodes; nothing on a bad escape, a control character (NUL included) or invalid UTF-8.
// In a query '+' is a space, as browsers write it.
enum class Plus { literal, space };
std::optional<std::string> decode_text(std::string_view raw, Plus plus = Plus::literal);

struct Target {
  std::string_view raw_path, raw_query;
};
// Takes "/path?query" and the absolute form that proxies send.
Result<Target> split_target(std::string_view raw);
Status read_query(std::string_view raw, std::map<std::string, std::string, std::less<>>& out);

// The 400 for a part of the target: names "path" or "query".
Error target_error(std::string_view field, std::string_view problem);

}  // namespace weir::net
