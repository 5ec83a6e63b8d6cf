// One JSON reader and writer for everything that Weir sends and receives.
//
// A type lists its fields once, in a function found by argument-dependent lookup, and can then be read and written:
//
//   template <class V> void fields(V& v, Zone& z) {
//     v.required("zone_id", z.zone_id);
//     v.optional("priority", z.priority, json::range(0, 1000));   // absent or null keeps the default
//   }
//
// Reading reports every wrong field with its path ("zones[2].polygon[0]") and what is allowed; values are never
// echoed, because a value may hold a password. Unknown fields are ignored or rejected as the caller asks.
// An enumeration is readable when `enum_names(T)` gives its names. Plain functions; no state.
#pragma once

#include "weir/base/ids.hpp"
#include "weir/base/result.hpp"
#include "weir/base/secret.hpp"

#include <boost/json/value.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weir::json {

using boost::json::array;
using boost::json::object;
using boost::json::value;

enum class Unknown { ignore, reject };

struct Problem {
  std::string path;
  std::string what;
};

// Parses text as JSON: bounded depth, valid UTF-8, nothing after the value.
Result<value> parse_text(std::string_view text);
std::string to_text(const value& v);
// Appends the text in quotes, as `to_text` writes it: for answers of megabytes that are written without making values.
void append_string(std::string& out, std::string_view text);
// The 400 that lists all problems: names the first in its message and all in details.fields.
Error problems_error(const std::vector<Problem>& problems);

template <class E>
struct EnumName {
  E value;
  std::string_view name;
};

// ---- checks: return what is wrong, or "" ----
template <class T>
auto range(T low, T high) {
  return [low, high](const auto& v) -> std::string {
    return v >= low && v <= high ? std::string() : fmt::format("must be between {} and {}", low, high);
  };
}
inline auto length(size_t low, size_t high) {
  return [low, high](const auto& v) -> std::string {
    return v.size() >= low && v.size() <= high ? std::string()
                                               : fmt::format("must have {} to {} elements or characters", low, high);
  };
}
struct AnyValue {
  template <class T>
  std::string operator()(const T&) const {
    return {};
  }
};

class Reader;
class Writer;

template <class T>
concept HasFields = requires(T& t, Reader& r) { fields(r, t); };
template <class T>
concept HasEnumNames = requires(T t) { enum_names(t); };

struct Context {
  Unknown unknown = Unknown::ignore;
  std::vector<Problem> problems = {};
  void add(const std::string& path, std::string what) {
    if (problems.size() < 20) problems.push_back({path.empty() ? "body" : path, std::move(what)});
  }
};

// One overload for each kind of value; each reports its problem at `path` and leaves `out` alone then.
void read_value(const value& v, bool& out, const std::string& path, Context& ctx);
void read_value(const value& v, int& out, const std::string& path, Context& ctx);
void read_value(const value& v, std::int64_t& out, const std::string& path, Context& ctx);
void read_value(const value& v, double& out, const std::string& path, Context& ctx);
void read_value(const value& v, std::string& out, const std::string& path, Context& ctx);
void read_value(const value& v, Secret& out, const std::string& path, Context& ctx);
void read_value(const value& v, object& out, const std::string& path, Context& ctx);

template <class Tag>
void read_value(const value& v, Id<Tag>& out, const std::string& path, Context& ctx) {
  if (!v.is_string()) return ctx.add(path, "must be a string");
  std::string_view text(v.get_string().data(), v.get_string().size());
  if (auto problem = id_problem(text); !problem.empty()) return ctx.add(path, std::string(problem));
  out = Id<Tag>::trusted(std::string(text));
}

template <class E>
  requires HasEnumNames<E>
void read_value(const value& v, E& out, const std::string& path, Context& ctx) {
  std::vector<std::string_view> names;
  for (const auto& [each, name] : enum_names(E{})) {
    if (v.is_string() && std::string_view(v.get_string()) == name) {
      out = each;
      return;
    }
    names.push_back(name);
  }
  ctx.add(path, fmt::format("must be one of: {}", fmt::join(names, ", ")));
}

template <class T>
void read_value(const value& v, std::optional<T>& out, const std::string& path, Context& ctx) {
  if (v.is_null()) {
    out.reset();
    return;
  }
  T inner{};
  read_value(v, inner, path, ctx);
  out = std::move(inner);
}

template <class T>
void read_value(const value& v, std::vector<T>& out, const std::string& path, Context& ctx) {
  if (!v.is_array()) return ctx.add(path, "must be a list");
  std::vector<T> all(v.get_array().size());
  for (size_t i = 0; i < all.size(); ++i) read_value(v.get_array()[i], all[i], fmt::format("{}[{}]", path, i), ctx);
  out = std::move(all);
}

template <class T, size_t N>
void read_value(const value& v, std::array<T, N>& out, const std::string& path, Context& ctx) {
  if (!v.is_array() || v.get_array().size() != N) return ctx.add(path, fmt::format("must be a list of {} values", N));
  for (size_t i = 0; i < N; ++i) read_value(v.get_array()[i], out[i], fmt::format("{}[{}]", path, i), ctx);
}

class Reader {
 public:
  static constexpr bool reading = true;
  Reader(const object& from, std::string path, Context& ctx) : from_(from), path_(std::move(path)), ctx_(ctx) {}

  template <class T, class Check = AnyValue>
  void required(std::string_view name, T& out, Check check = {}) {
    if (!take(name, out, check)) ctx_.add(at(name), "is required");
  }
  template <class T, class Check = AnyValue>
  void optional(std::string_view name, T& out, Check check = {}) {
    take(name, out, check);
  }
  // A rule over several fields; `problem` is "" when it holds.
  void rule(std::string_view name, std::string problem) {
    if (!problem.empty()) ctx_.add(at(name), std::move(problem));
  }
  void finish();

 private:
  std::string at(std::string_view name) const {
    return path_.empty() ? std::string(name) : fmt::format("{}.{}", path_, name);
  }
  template <class T, class Check>
  bool take(std::string_view name, T& out, Check& check) {
    known_.push_back(name);
    const value* v = from_.if_contains(name);
    if (v == nullptr || v->is_null()) return false;
    size_t before = ctx_.problems.size();
    read_value(*v, out, at(name), ctx_);
    if (ctx_.problems.size() == before)
      if (auto problem = checked(out, check); !problem.empty()) ctx_.add(at(name), std::move(problem));
    return true;
  }
  template <class T, class Check>
  static std::string checked(const T& v, Check& check) {
    return check(v);
  }
  template <class T, class Check>
  static std::string checked(const std::optional<T>& v, Check& check) {
    return v ? check(*v) : std::string();
  }

  const object& from_;
  std::string path_;
  Context& ctx_;
  std::vector<std::string_view> known_;
};

template <HasFields T>
void read_value(const value& v, T& out, const std::string& path, Context& ctx) {
  if (!v.is_object()) return ctx.add(path, "must be an object");
  Reader reader(v.get_object(), path, ctx);
  fields(reader, out);
  reader.finish();
}

template <class T>
Result<T> read(const value& v, Unknown unknown = Unknown::ignore) {
  Context ctx{unknown};
  T out{};
  read_value(v, out, "", ctx);
  if (!ctx.problems.empty()) return problems_error(ctx.problems);
  return out;
}
template <class T>
Result<T> read_text(std::string_view text, Unknown unknown = Unknown::ignore) {
  TRY(parsed, parse_text(text));
  return read<T>(parsed, unknown);
}

// ---- writing ----
inline value write_value(bool v) { return v; }
inline value write_value(int v) { return v; }
inline value write_value(std::int64_t v) { return v; }
inline value write_value(double v) { return v; }
inline value write_value(const std::string& v) { return value(v); }
inline value write_value(const object& v) { return v; }
// Only a type that means to hand out a credential lists a Secret among its fields.
inline value write_value(const Secret& v) { return value(v.reveal()); }
template <class Tag>
value write_value(const Id<Tag>& v) {
  return value(v.str());
}
template <class E>
  requires HasEnumNames<E>
value write_value(E v) {
  for (const auto& [each, name] : enum_names(E{}))
    if (each == v) return value(name);
  return nullptr;
}
template <HasFields T>
value write_value(const T& v);
template <class T>
value write_value(const std::optional<T>& v) {
  return v ? write_value(*v) : value(nullptr);
}
template <class T>
value write_value(const std::vector<T>& v) {
  array out;
  out.reserve(v.size());
  for (const auto& each : v) out.push_back(write_value(each));
  return out;
}
template <class T, size_t N>
value write_value(const std::array<T, N>& v) {
  array out;
  for (const auto& each : v) out.push_back(write_value(each));
  return out;
}

class Writer {
 public:
  static constexpr bool reading = false;
  template <class T, class Check = AnyValue>
  void required(std::string_view name, const T& v, Check = {}) {
    out_[name] = write_value(v);
  }
  template <class T, class Check = AnyValue>
  void optional(std::string_view name, const T& v, Check = {}) {
    if constexpr (requires { v.has_value(); }) {
      if (!v.has_value()) return;
    }
    out_[name] = write_value(v);
  }
  void rule(std::string_view, std::string) {}
  object take() { return std::move(out_); }

 private:
  object out_;
};

template <HasFields T>
value write_value(const T& v) {
  Writer writer;
  fields(writer, const_cast<T&>(v));  // a Writer only reads
  return writer.take();
}

}  // namespace weir::json
