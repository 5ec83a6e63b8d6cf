#include "weir/base/log.hpp"
#include "weir/control_plane/answers.hpp"
#include "weir/control_plane/camera_edit.hpp"
#include "weir/control_plane/page.hpp"
#include "weir/control_plane/place.hpp"
#include "weir/control_plane/plane.hpp"
#include "weir/control_plane/request.hpp"

namespace weir::control_plane {

using net::Method;

namespace {

constexpr std::string_view kFlat = "/v1/cameras";
constexpr std::string_view kNested = "/v1/tenants/{tenant_id}/sites/{site_id}/cameras";

camera::Credentials credentials_for(const Caller& caller) {
  return sees_credentials(caller) ? camera::Credentials::shown : camera::Credentials::redacted;
}

void log_change(std::string_view event, const camera::Config& config, const Caller& caller,
                const net::Request& request) {
  log::info(event)
      .with("camera_uuid", config.camera)
      .with("site_id", config.site)
      .with("tenant_id", config.tenant)
      .with("by", caller.sub)
      .with("request_id", request.request_id);
}

// The path's place and the query's filters together; nothing when they contradict each other or the caller's tenant.
Result<std::optional<CameraFilter>> read_filter(const net::Request& request, const Caller& caller, const Place& place,
                                                const Page& page) {
  TRY(tenant, query_id<TenantId>(request));
  TRY(site, query_id<SiteId>(request));
  TRY(enabled, query_flag(request, "enabled"));
  CameraFilter filter{place.tenant, place.site, enabled, CameraId::trusted(page.after), page.ask()};
  if (!tenant_for(caller, tenant)) return std::optional<CameraFilter>();
  if (!tenant.empty() && !filter.tenant.empty() && tenant != filter.tenant) return std::optional<CameraFilter>();
  if (!site.empty() && !filter.site.empty() && site != filter.site) return std::optional<CameraFilter>();
  if (!tenant.empty()) filter.tenant = tenant;
  if (!site.empty()) filter.site = site;
  return std::optional<CameraFilter>(std::move(filter));
}

Reply list_cameras(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(place, place_of(request, caller));
  CO_TRY(page, read_page(request));
  CO_TRY(filter, read_filter(request, caller, place, page));
  std::vector<CameraRecord> found;
  if (filter) {
    CO_TRY(cameras, co_await plane.catalog.list_cameras(*std::move(filter)));
    found = std::move(cameras);
  }
  if (found.empty() && place.nested()) {
    // An empty list and a site that does not exist are different answers.
    SiteId site = place.site;
    TenantId tenant = place.tenant;
    CO_TRY(exists, co_await plane.catalog.show_site(std::move(site), std::move(tenant)));
  }
  camera::Credentials credentials = credentials_for(caller);
  co_return net::Response::json(listed(
      found, page, [](const CameraRecord& record) { return record.config.camera.str(); },
      [&](const CameraRecord& record) { return write_camera(record, credentials); }));
}

Reply add_camera(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(place, place_of(request, caller));
  CO_TRY(body, body_object(request));
  if (place.nested()) {
    CO_TRY(tenant_agrees, fill_from_path(body, TenantId::field_name, place.tenant.str()));
    CO_TRY(site_agrees, fill_from_path(body, SiteId::field_name, place.site.str()));
  } else if (!caller.tenant.empty() && !body.contains(TenantId::field_name)) {
    body[TenantId::field_name] = caller.tenant.str();
  }
  CO_TRY(config, read_camera(std::move(body), plane.settings.rules));
  CO_TRY(tenant, tenant_for(caller, config.tenant));
  CO_TRY(record, co_await plane.catalog.add_camera(std::move(config)));
  log_change("camera.created", record.config, caller, request);
  co_return net::Response::json(write_camera(record, credentials_for(caller)), 201);
}

Reply show_camera(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(place, place_of(request, caller));
  CO_TRY(id, path_id<CameraId>(request));
  TenantId tenant = place.tenant;
  CO_TRY(record, co_await plane.catalog.show_camera(std::move(id), std::move(tenant)));
  CO_TRY(here, stands_at(record, place));
  co_return net::Response::json(write_camera(record, credentials_for(caller)));
}

template <EditKind kind>
Reply change_camera(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(place, place_of(request, caller));
  CO_TRY(id, path_id<CameraId>(request));
  CO_TRY(body, body_object(request));
  if (place.nested()) {
    CO_TRY(camera_agrees, fill_from_path(body, CameraId::field_name, id.str()));
    CO_TRY(tenant_agrees, fill_from_path(body, TenantId::field_name, place.tenant.str()));
    CO_TRY(site_agrees, fill_from_path(body, SiteId::field_name, place.site.str()));
  }
  Catalog::CameraEdit edit = [body = std::move(body), place,
                              rules = plane.settings.rules](const CameraRecord& present) -> Result<camera::Config> {
    TRY(here, stands_at(present, place));
    return edit_camera(present, body, kind, rules);
  };
  TenantId tenant = place.tenant;
  CO_TRY(record, co_await plane.catalog.edit_camera(std::move(id), std::move(tenant), std::move(edit)));
  log_change("camera.updated", record.config, caller, request);
  co_return net::Response::json(write_camera(record, credentials_for(caller)));
}

Reply remove_camera(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(place, place_of(request, caller));
  CO_TRY(id, path_id<CameraId>(request));
  CameraId looked = id, doomed = id;
  TenantId tenant = place.tenant, again = place.tenant;
  // A camera never changes its place, so looking first is safe.
  CO_TRY(record, co_await plane.catalog.show_camera(std::move(looked), std::move(tenant)));
  CO_TRY(here, stands_at(record, place));
  CO_TRY(gone, co_await plane.catalog.remove_camera(std::move(doomed), std::move(again)));
  log_change("camera.deleted", record.config, caller, request);
  co_return net::Response::json(json::object{{"camera_uuid", id.str()}, {"deleted", true}});
}

}  // namespace

void add_camera_routes(net::Router& router, Plane& plane) {
  for (std::string_view base : {kFlat, kNested}) {
    std::string one = std::string(base) + "/{camera_uuid}";
    add_guarded(router, plane, Method::get, base, kReadersAndRunners, list_cameras);
    add_guarded(router, plane, Method::post, base, kAdmins, add_camera);
    add_guarded(router, plane, Method::get, one, kReadersAndRunners, show_camera);
    add_guarded(router, plane, Method::put, one, kAdmins, change_camera<EditKind::replace>);
    add_guarded(router, plane, Method::patch, one, kAdmins, change_camera<EditKind::merge>);
    add_guarded(router, plane, Method::del, one, kAdmins, remove_camera);
  }
}

}  // namespace weir::control_plane
