#include "advice.hpp"
#include "answers.hpp"
#include "camera_edit.hpp"
#include "page.hpp"
#include "place.hpp"
#include "plane.hpp"
#include "request.hpp"

#include "weir/base/log.hpp"

#include <charconv>

// Zones are part of a camera's configuration. These routes show and change them one by one: under their camera, and
// under their site, where a zone carries its camera's id.
namespace weir::control_plane {

using net::Method;

namespace {

constexpr std::string_view kOfCamera = "/v1/cameras/{camera_uuid}/zones";
constexpr std::string_view kOfSite = "/v1/tenants/{tenant_id}/sites/{site_id}/zones";
constexpr int kCamerasAtOnce = 500;
constexpr int kLooksMax = 8;  // for one page of a site's zones; the cursor goes on from there

struct ZonePlace {
  CameraId camera;
  std::int64_t zone_id = 0;
};

// ---- finding ----

CameraFilter cameras_of(const Place& place, CameraId after) {
  return {place.tenant, place.site, {}, std::move(after), kCamerasAtOnce};
}

// The one camera of a site that has this zone.
boost::asio::awaitable<Result<CameraId>> camera_of_zone(Plane& plane, const Place& place, std::int64_t zone_id) {
  CameraId owner, after;
  for (;;) {
    CameraFilter filter = cameras_of(place, after);
    CO_TRY(cameras, co_await plane.cameras.list_cameras(std::move(filter)));
    for (const CameraRecord& record : cameras) {
      if (find_zone(record.config, zone_id) == nullptr) continue;
      if (!owner.empty())
        co_return bad_field("camera_uuid", "is required: more than one camera of this site has this zone");
      owner = record.config.camera;
    }
    if (static_cast<int>(cameras.size()) < kCamerasAtOnce) break;
    after = cameras.back().config.camera;
  }
  if (owner.empty()) co_return no_such_zone();
  co_return owner;
}

// The camera a route is about: from the path, from the query or body, or found by the zone.
boost::asio::awaitable<Result<CameraId>> camera_for(Plane& plane, const net::Request& request, const Place& place,
                                                    CameraId said, std::int64_t zone_id) {
  if (!place.nested()) {
    CO_TRY(camera, path_id<CameraId>(request));
    if (!said.empty() && said != camera) co_return bad_field("camera_uuid", "must equal the one in the path");
    co_return std::move(camera);
  }
  if (!said.empty()) co_return std::move(said);
  if (zone_id == 0) co_return bad_field("camera_uuid", "is required");
  co_return co_await camera_of_zone(plane, place, zone_id);
}

boost::asio::awaitable<Result<CameraRecord>> record_at(Plane& plane, const Place& place, CameraId camera) {
  TenantId tenant = place.tenant;
  CO_TRY(record, co_await plane.cameras.show_camera(std::move(camera), std::move(tenant)));
  CO_TRY(here, stands_at(record, place));
  co_return std::move(record);
}

// ---- reading ----

struct ZoneBody {
  camera::Zone zone;
  CameraId camera;  // empty: not said
};

Result<ZoneBody> read_zone_body(const net::Request& request, std::optional<std::int64_t> zone_id) {
  TRY(body, body_object(request));
  ZoneBody out;
  if (const json::value* camera = body.if_contains("camera_uuid"); camera != nullptr && !camera->is_null()) {
    json::Context ctx;
    json::read_value(*camera, out.camera, "camera_uuid", ctx);
    if (!ctx.problems.empty()) return json::problems_error(ctx.problems);
  }
  body.erase("camera_uuid");
  body.erase("warnings");  // an answer may come back
  if (zone_id && !body.contains("zone_id")) body["zone_id"] = *zone_id;
  TRY(zone, camera::read_zone(json::value(std::move(body))));
  if (zone_id && zone.zone_id != *zone_id) return bad_field("zone_id", "must equal the one in the path");
  out.zone = std::move(zone);
  return out;
}

// ---- showing ----

// The zone with its warnings. A route that advises has called learn_models before.
json::object write_shown(const Plane& plane, const camera::Config& config, const camera::Zone& zone,
                         const Caller& caller) {
  json::object out = write_zone_of(config.camera, zone);
  if (is_advised(caller)) out["warnings"] = warnings_on(plane, config, zone);
  return out;
}


Reply list_of_camera(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(place, place_of(request, caller));
  CO_TRY(page, read_page(request));
  CO_TRY(camera, path_id<CameraId>(request));
  CO_TRY(record, co_await record_at(plane, place, std::move(camera)));
  // A camera has at most as many zones as fit on a page.
  json::array items;
  if (is_advised(caller)) (void)co_await learn_models(plane);
  for (const camera::Zone& zone : record.config.zones) items.push_back(write_shown(plane, record.config, zone, caller));
  co_return net::Response::json(json::object{{"items", std::move(items)}, {"next_cursor", nullptr}});
}

// A cursor of a site's zones: the camera, and its last zone that was shown.
std::string zone_cursor(const CameraId& camera, std::int64_t zone_id) {
  return cursor_of(fmt::format("{}\n{}", camera.str(), zone_id));
}

Result<ZonePlace> read_zone_cursor(const std::string& after) {
  ZonePlace place;
  if (after.empty()) return place;
  size_t split = after.rfind('\n');
  if (split == std::string::npos) return bad_field("cursor", "must be the next_cursor of an earlier answer");
  const char* end = after.data() + after.size();
  auto [stopped, failed] = std::from_chars(after.data() + split + 1, end, place.zone_id);
  std::string_view camera(after.data(), split);
  if (failed != std::errc() || stopped != end || !id_problem(camera).empty())
    return bad_field("cursor", "must be the next_cursor of an earlier answer");
  place.camera = CameraId::trusted(std::string(camera));
  return place;
}

// Collects zones in the order of (camera, zone_id) until the page is full.
class ZoneCollector {
 public:
  ZoneCollector(const Plane& plane, const Caller& caller, int limit)
      : plane_(plane), caller_(caller), limit_(static_cast<size_t>(limit)) {}

  // False when the page was full before the camera's last zone.
  bool add(const camera::Config& config, std::int64_t after) {
    std::vector<const camera::Zone*> zones;
    for (const camera::Zone& zone : config.zones)
      if (zone.zone_id > after) zones.push_back(&zone);
    std::ranges::sort(zones, {}, &camera::Zone::zone_id);
    for (const camera::Zone* zone : zones) {
      if (items_.size() == limit_) return false;
      items_.push_back(write_shown(plane_, config, *zone, caller_));
      last_ = {config.camera, zone->zone_id};
    }
    last_ = {config.camera, INT32_MAX};
    return true;
  }
  json::object take(bool more) {
    json::value next = nullptr;
    if (more) next = zone_cursor(last_.camera, last_.zone_id);
    return {{"items", std::move(items_)}, {"next_cursor", std::move(next)}};
  }

 private:
  const Plane& plane_;
  const Caller& caller_;
  const size_t limit_;
  json::array items_;
  ZonePlace last_;
};

// The rest of the camera at which the last page ended. It may be gone by now, or unreadable.
boost::asio::awaitable<Result<bool>> collect_rest(Plane& plane, const Place& place, ZonePlace from,
                                                  ZoneCollector& zones) {
  if (from.camera.empty()) co_return true;
  auto record = co_await record_at(plane, place, from.camera);
  if (record) co_return zones.add(record->config, from.zone_id);
  if (record.error().code == Errc::not_found || record.error().reason == kBadStoredConfig) co_return true;
  co_return std::move(record).error();
}

Reply list_of_site(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(place, place_of(request, caller));
  CO_TRY(page, read_page(request));
  CO_TRY(from, read_zone_cursor(page.after));
  SiteId site = place.site;
  TenantId tenant = place.tenant;
  CO_TRY(exists, co_await plane.sites.show_site(std::move(site), std::move(tenant)));
  if (is_advised(caller)) (void)co_await learn_models(plane);
  ZoneCollector zones(plane, caller, page.limit);
  CO_TRY(room, co_await collect_rest(plane, place, from, zones));
  bool more = !room;
  CameraId after = from.camera;
  for (int looks = 0; !more; ++looks) {
    if (looks == kLooksMax) {
      more = true;
      break;
    }
    CameraFilter filter = cameras_of(place, after);
    CO_TRY(cameras, co_await plane.cameras.list_cameras(std::move(filter)));
    for (const CameraRecord& record : cameras) {
      more = !zones.add(record.config, 0);
      if (more) break;
      after = record.config.camera;
    }
    if (static_cast<int>(cameras.size()) < kCamerasAtOnce) break;
  }
  co_return net::Response::json(zones.take(more));
}

// ---- one zone ----

Reply show_zone(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(place, place_of(request, caller));
  CO_TRY(zone_id, path_zone_id(request));
  CO_TRY(said, query_id<CameraId>(request));
  CO_TRY(camera, co_await camera_for(plane, request, place, std::move(said), zone_id));
  CO_TRY(record, co_await record_at(plane, place, std::move(camera)));
  const camera::Zone* zone = find_zone(record.config, zone_id);
  if (zone == nullptr) co_return no_such_zone();
  if (is_advised(caller)) (void)co_await learn_models(plane);
  co_return net::Response::json(write_shown(plane, record.config, *zone, caller));
}

boost::asio::awaitable<Result<CameraRecord>> edit_zones(Plane& plane, Place place, CameraId camera,
                                                        std::function<Result<camera::Config>(camera::Config)> change) {
  TenantId tenant = place.tenant;
  Cameras::CameraEdit edit = [place = std::move(place),
                              change = std::move(change)](const CameraRecord& present) -> Result<camera::Config> {
    TRY(here, stands_at(present, place));
    return change(present.config);
  };
  co_return co_await plane.cameras.edit_camera(std::move(camera), std::move(tenant), std::move(edit));
}

void note_zones(Plane& plane, const CameraRecord& record, std::int64_t zone_id, const Caller& caller,
                const net::Request& request) {
  plane.announcer.camera("updated", record);
  log::info("camera.updated", "the camera's zones changed")
      .with("camera_uuid", record.config.camera)
      .with("site_id", record.config.site)
      .with("tenant_id", record.config.tenant)
      .with("zone_id", zone_id)
      .with("by", caller.sub)
      .with("request_id", request.request_id);
}

template <ZoneWrite write>
Reply write_zone(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(place, place_of(request, caller));
  std::optional<std::int64_t> in_path;
  if (write == ZoneWrite::replace) {
    CO_TRY(zone_id, path_zone_id(request));
    in_path = zone_id;
  }
  CO_TRY(body, read_zone_body(request, in_path));
  camera::Zone zone = body.zone;
  CO_TRY(camera, co_await camera_for(plane, request, place, body.camera, in_path.value_or(0)));
  std::function<Result<camera::Config>(camera::Config)> change = [zone](camera::Config config) {
    return with_zone(std::move(config), zone, write);
  };
  CO_TRY(record, co_await edit_zones(plane, place, std::move(camera), std::move(change)));
  note_zones(plane, record, zone.zone_id, caller, request);
  (void)co_await learn_models(plane);
  co_return net::Response::json(write_shown(plane, record.config, zone, caller), write == ZoneWrite::add ? 201 : 200);
}

Reply remove_zone(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(place, place_of(request, caller));
  CO_TRY(zone_id, path_zone_id(request));
  CO_TRY(said, query_id<CameraId>(request));
  CO_TRY(camera, co_await camera_for(plane, request, place, std::move(said), zone_id));
  std::int64_t doomed = zone_id;
  std::function<Result<camera::Config>(camera::Config)> change = [doomed](camera::Config config) {
    return without_zone(std::move(config), doomed);
  };
  CO_TRY(record, co_await edit_zones(plane, place, std::move(camera), std::move(change)));
  note_zones(plane, record, zone_id, caller, request);
  co_return net::Response::json(
      json::object{{"camera_uuid", record.config.camera.str()}, {"zone_id", zone_id}, {"deleted", true}});
}

}  // namespace

void add_zone_routes(net::Router& router, Plane& plane) {
  add_guarded(router, plane, Method::get, kOfCamera, kReadersAndRunners, list_of_camera);
  add_guarded(router, plane, Method::get, kOfSite, kReadersAndRunners, list_of_site);
  for (std::string_view base : {kOfCamera, kOfSite}) {
    std::string one = std::string(base) + "/{zone_id}";
    add_guarded(router, plane, Method::post, base, kAdmins, write_zone<ZoneWrite::add>);
    add_guarded(router, plane, Method::get, one, kReadersAndRunners, show_zone);
    add_guarded(router, plane, Method::put, one, kAdmins, write_zone<ZoneWrite::replace>);
    add_guarded(router, plane, Method::del, one, kAdmins, remove_zone);
  }
}

}  // namespace weir::control_plane
