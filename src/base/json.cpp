#include "weir/base/json.hpp"

#include <boost/json/stream_parser.hpp>

#include <algorithm>
#include <iterator>
#include <utility>

namespace weir::json {

Result<value> parse_text(std::string_view text) {
  boost::json::parse_options options;
  options.max_depth = 32;
  boost::system::error_code failed;
  boost::json::stream_parser parser({}, options);
  size_t used = parser.write_some(text.data(), text.size(), failed);
  if (!failed && used < text.size() &&
      text.find_first_not_of(" \t\r\n", used) != std::string_view::npos)
    failed = boost::json::error::extra_data;
  if (!failed) parser.finish(failed);
  if (failed)
    return Error{Errc::invalid, "bad_json", fmt::format("the body is not valid JSON near byte {}: {}", used,
                                                        text.empty() ? "it is empty" : failed.message()),
                 {{"field", "body"}, {"byte", used}}};
  return parser.release();
}

// What needs no escape is copied at once: large answers are little else.
void append_string(std::string& out, std::string_view text) {
  auto plain = [](char c) { return static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\'; };
  out += '"';
  while (!text.empty()) {
    auto end = static_cast<size_t>(std::ranges::find_if_not(text, plain) - text.begin());
    out.append(text.substr(0, end));
    if (end == text.size()) break;
    switch (char c = text[end]) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      default: out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    }
    text.remove_prefix(end + 1);
  }
  out += '"';
}

namespace {

// Boost's own serializer writes 0.5 as 5E-1, which is correct but hard to read.
void append(std::string& out, const value& v) {
  switch (v.kind()) {
    case boost::json::kind::null: out += "null"; break;
    case boost::json::kind::bool_: out += v.get_bool() ? "true" : "false"; break;
    case boost::json::kind::int64: fmt::format_to(std::back_inserter(out), "{}", v.get_int64()); break;
    case boost::json::kind::uint64: fmt::format_to(std::back_inserter(out), "{}", v.get_uint64()); break;
    case boost::json::kind::double_:
      if (std::isfinite(v.get_double()))
        fmt::format_to(std::back_inserter(out), "{}", v.get_double());
      else
        out += "null";  // JSON has no word for it
      break;
    case boost::json::kind::string: append_string(out, v.get_string()); break;
    case boost::json::kind::array: {
      out += '[';
      const char* separator = "";
      for (const value& each : v.get_array()) {
        out += std::exchange(separator, ",");
        append(out, each);
      }
      out += ']';
      break;
    }
    case boost::json::kind::object: {
      out += '{';
      const char* separator = "";
      for (const auto& member : v.get_object()) {
        out += std::exchange(separator, ",");
        append_string(out, member.key());
        out += ':';
        append(out, member.value());
      }
      out += '}';
      break;
    }
  }
}

}  // namespace

std::string to_text(const value& v) {
  std::string out;
  append(out, v);
  return out;
}

Error problems_error(const std::vector<Problem>& problems) {
  WEIR_ASSERT(!problems.empty());
  array list;
  for (const auto& [path, what] : problems) list.push_back(object{{"field", path}, {"problem", what}});
  std::string message = fmt::format("{} {}", problems[0].path, problems[0].what);
  if (problems.size() > 1) message += fmt::format(" (and {} more)", problems.size() - 1);
  return Error{Errc::invalid, "bad_field", std::move(message), {{"field", problems[0].path}, {"fields", list}}};
}

namespace {
// Whole numbers only: 3 and 3.0, not 3.5, "3" or true.
std::optional<std::int64_t> whole(const value& v) {
  if (v.is_int64()) return v.get_int64();
  if (v.is_uint64() && v.get_uint64() <= INT64_MAX) return static_cast<std::int64_t>(v.get_uint64());
  if (v.is_double() && std::abs(v.get_double()) < 9e15 && v.get_double() == std::floor(v.get_double()))
    return static_cast<std::int64_t>(v.get_double());
  return std::nullopt;
}
}  // namespace

void read_value(const value& v, bool& out, const std::string& path, Context& ctx) {
  if (!v.is_bool()) return ctx.add(path, "must be true or false");
  out = v.get_bool();
}
void read_value(const value& v, int& out, const std::string& path, Context& ctx) {
  auto number = whole(v);
  if (!number || *number < INT32_MIN || *number > INT32_MAX) return ctx.add(path, "must be a whole number");
  out = static_cast<int>(*number);
}
void read_value(const value& v, std::int64_t& out, const std::string& path, Context& ctx) {
  auto number = whole(v);
  if (!number) return ctx.add(path, "must be a whole number");
  out = *number;
}
void read_value(const value& v, double& out, const std::string& path, Context& ctx) {
  if (!v.is_number()) return ctx.add(path, "must be a number");
  double number = v.to_number<double>();
  if (!std::isfinite(number)) return ctx.add(path, "must be a finite number");
  out = number;
}
void read_value(const value& v, std::string& out, const std::string& path, Context& ctx) {
  if (!v.is_string()) return ctx.add(path, "must be a string");
  if (v.get_string().find('\0') != boost::json::string::npos) return ctx.add(path, "must not contain a NUL character");
  out.assign(v.get_string().data(), v.get_string().size());
}
void read_value(const value& v, Secret& out, const std::string& path, Context& ctx) {
  std::string text;
  size_t before = ctx.problems.size();
  read_value(v, text, path, ctx);
  if (ctx.problems.size() == before) out = Secret(std::move(text));
}
void read_value(const value& v, object& out, const std::string& path, Context& ctx) {
  if (!v.is_object()) return ctx.add(path, "must be an object");
  out = v.get_object();
}

void Reader::finish() {
  if (ctx_.unknown == Unknown::ignore) return;
  for (const auto& member : from_) {
    if (std::ranges::find(known_, std::string_view(member.key())) == known_.end()) {
      // The key itself is the caller's text: shown, but bounded, and cut between characters.
      std::string_view key(member.key());
      size_t end = std::min<size_t>(key.size(), 64);
      while (end > 0 && end < key.size() && (static_cast<unsigned char>(key[end]) & 0xC0) == 0x80) --end;
      size_t before = ctx_.problems.size();
      ctx_.add(at(key.substr(0, end)),
               fmt::format("is not a known field; known are: {}", fmt::join(known_, ", ")));
      if (ctx_.problems.size() == before) return;  // the list is full: the rest would be written for nobody
    }
  }
}

}  // namespace weir::json
