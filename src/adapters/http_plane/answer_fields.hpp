// Fields of a control plane's answers, read without trust: what is missing or of another kind is empty.
// Plain functions; any thread.
#pragma once

#include "weir/base/json.hpp"
#include "weir/lease/row.hpp"

namespace weir::http_plane {

inline Error bad_answer() {
  return {Errc::unavailable, "bad_answer", "the control plane's answer cannot be read; nothing is known"};
}

inline const json::value* field(const json::value& v, std::string_view name) {
  return v.is_object() ? v.get_object().if_contains(name) : nullptr;
}
inline std::string text_of(const json::value& v, std::string_view name) {
  const json::value* found = field(v, name);
  return found != nullptr && found->is_string() ? std::string(found->get_string()) : std::string();
}
inline std::int64_t number_of(const json::value& v, std::string_view name) {
  const json::value* found = field(v, name);
  if (found == nullptr) return 0;
  if (found->is_int64()) return found->get_int64();
  if (found->is_uint64()) return static_cast<std::int64_t>(found->get_uint64());
  return found->is_double() ? static_cast<std::int64_t>(found->get_double()) : 0;
}
inline bool flag_of(const json::value& v, std::string_view name) {
  const json::value* found = field(v, name);
  return found != nullptr && found->is_bool() && found->get_bool();
}

template <class E>
std::optional<E> named(std::string_view text) {
  for (const auto& [value, name] : enum_names(E{}))
    if (name == text) return value;
  return std::nullopt;
}

inline lease::Tenure read_tenure(const json::value& v) {
  return {BootId::trusted(text_of(v, "boot_id")), {number_of(v, "grant_version")}};
}

}  // namespace weir::http_plane
