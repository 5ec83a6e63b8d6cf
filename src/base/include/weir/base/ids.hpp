// Strong ids: a camera is not a site, and the compiler knows.
//
// An id given by a user has 1 to 255 bytes of UTF-8 without control characters and is none of the words that stand in
// a route at the place of an id. `parse` is the only way from outside; `trusted` is for values that come from the
// store. A default-constructed id is empty and means "none".
#pragma once

#include "weir/base/result.hpp"

#include <fmt/format.h>

#include <compare>
#include <functional>
#include <string>
#include <string_view>

namespace weir {

// What is wrong with `text` as an id, or "" if nothing is.
std::string_view id_problem(std::string_view text);
bool valid_utf8(std::string_view text);

template <class Tag>
class Id {
 public:
  Id() = default;
  static Id trusted(std::string text) {
    Id id;
    id.text_ = std::move(text);
    return id;
  }
  static Result<Id> parse(std::string_view text) {
    if (auto problem = id_problem(text); !problem.empty())
      return Error{Errc::invalid, "bad_id", fmt::format("{}: {}", Tag::name, problem), {{"field", Tag::name}}};
    return trusted(std::string(text));
  }

  const std::string& str() const { return text_; }
  bool empty() const { return text_.empty(); }
  friend auto operator<=>(const Id&, const Id&) = default;
  friend bool operator==(const Id&, const Id&) = default;
  static constexpr std::string_view field_name = Tag::name;

 private:
  std::string text_;
};

struct CameraTag { static constexpr std::string_view name = "camera_uuid"; };
struct SiteTag { static constexpr std::string_view name = "site_id"; };
struct TenantTag { static constexpr std::string_view name = "tenant_id"; };
struct RunnerTag { static constexpr std::string_view name = "runner_id"; };
struct BootTag { static constexpr std::string_view name = "boot_id"; };

using CameraId = Id<CameraTag>;
using SiteId = Id<SiteTag>;
using TenantId = Id<TenantTag>;
using RunnerId = Id<RunnerTag>;
using BootId = Id<BootTag>;

// What a lease is about: a camera, or another thing that at most one process may speak for (lease::Kind). All kinds
// share the cameras' namespace, so that the id alone names the subject: no stream has a camera's id.
using SubjectId = CameraId;
// A detector cluster is named by the id of its lease.
using ClusterId = SubjectId;

}  // namespace weir

template <class Tag>
struct std::hash<weir::Id<Tag>> {
  size_t operator()(const weir::Id<Tag>& id) const { return std::hash<std::string>()(id.str()); }
};
template <class Tag>
struct fmt::formatter<weir::Id<Tag>> : fmt::formatter<std::string> {
  auto format(const weir::Id<Tag>& id, fmt::format_context& out) const -> decltype(out.out()) {
    return fmt::formatter<std::string>::format(id.str(), out);
  }
};
