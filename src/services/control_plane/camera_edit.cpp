#include "camera_edit.hpp"

#include "weir/ports/store_errors.hpp"

#include <algorithm>

namespace weir::control_plane {

namespace {

bool given(const json::object& body, std::string_view field) {
  const json::value* v = body.if_contains(field);
  return v != nullptr && !v->is_null();
}

// Fills a fixed field from the present record, or refuses another value. A wrong type is left to the reader.
Status keep(json::object& body, std::string_view field, const std::string& present) {
  if (!given(body, field)) {
    body[field] = present;
    return ok();
  }
  const json::value& v = body.at(field);
  if (!v.is_string() || std::string_view(v.get_string()) == present) return ok();
  return Error{
      Errc::unprocessable, "fixed_field", fmt::format("{} of a camera cannot change", field), {{"field", field}}};
}

Result<camera::Config> checked(camera::Config config) {
  auto problems = camera::relation_problems(config);
  if (problems.empty()) return config;
  // The client sent one zone, not the list that holds it: paths of problems name the zone's own fields.
  for (json::Problem& problem : problems)
    if (size_t dot = problem.path.find("]."); dot != std::string::npos) problem.path.erase(0, dot + 2);
  return json::problems_error(problems);
}

}  // namespace

Result<camera::Config> read_camera(json::object body, const camera::Rules& rules) {
  for (std::string_view ours : {"created_at", "updated_at", "config_version", "zone_version", "crashes", "warnings"})
    body.erase(ours);
  TRY(config, camera::read_config(json::value(std::move(body))));
  if (auto problems = camera::rule_problems(config, rules); !problems.empty()) return json::problems_error(problems);
  return std::move(config);
}

Result<camera::Config> edit_camera(const CameraRecord& present, json::object body, EditKind kind,
                                   const camera::Rules& rules) {
  TRY(same_camera, keep(body, "camera_uuid", present.config.camera.str()));
  TRY(same_tenant, keep(body, "tenant_id", present.config.tenant.str()));
  TRY(same_site, keep(body, "site_id", present.config.site.str()));
  if (kind == EditKind::replace) return read_camera(std::move(body), rules);
  json::object merged = camera::write_config(present.config, camera::Credentials::shown);
  for (auto& member : body) merged[member.key()] = member.value();
  return read_camera(std::move(merged), rules);
}

const camera::Zone* find_zone(const camera::Config& config, std::int64_t zone_id) {
  auto found = std::ranges::find(config.zones, zone_id, &camera::Zone::zone_id);
  return found == config.zones.end() ? nullptr : &*found;
}

Error no_such_zone() { return no_such("zone", "zone_id"); }

Result<camera::Config> with_zone(camera::Config config, camera::Zone zone, ZoneWrite write) {
  auto found = std::ranges::find(config.zones, zone.zone_id, &camera::Zone::zone_id);
  bool there = found != config.zones.end();
  if (write == ZoneWrite::add) {
    if (there) return exists_already("zone", "zone_id");
    config.zones.push_back(std::move(zone));
  } else {
    if (!there) return no_such_zone();
    *found = std::move(zone);
  }
  return checked(std::move(config));
}

Result<camera::Config> without_zone(camera::Config config, std::int64_t zone_id) {
  if (std::erase_if(config.zones, [&](const camera::Zone& zone) { return zone.zone_id == zone_id; }) == 0)
    return no_such_zone();
  return config;
}

}  // namespace weir::control_plane
