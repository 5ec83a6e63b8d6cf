#include "advice.hpp"
#include "answers.hpp"
#include "camera_edit.hpp"
#include "page.hpp"
#include "place.hpp"
#include "plane.hpp"
#include "request.hpp"

#include "weir/base/log.hpp"

namespace weir::control_plane {

using net::Method;

namespace {

constexpr std::string_view kFlat = "/v1/cameras";
constexpr std::string_view kNested = "/v1/tenants/{tenant_id}/sites/{site_id}/cameras";

camera::Credentials credentials_for(const Caller& caller) {
  return sees_credentials(caller) ? camera::Credentials::shown : camera::Credentials::redacted;
}

// The camera with warnings about its configuration, for callers that can mend it.
boost::asio::awaitable<net::Response> shown(Plane& plane, const CameraRecord& record, const Caller& caller,
                                            int status = 200) {
  json::object out = write_camera(record, credentials_for(caller));
  if (is_advised(caller)) {
    (void)co_await learn_models(plane);
    out["warnings"] = warnings_on(plane, record.config);
  }
  co_return net::Response::json(out, status);
}

void note_change(Plane& plane, std::string_view what, const CameraRecord& record, const Caller& caller,
                 const net::Request& request) {
  const camera::Config& config = record.config;
  plane.announcer.camera(what, record);
  log::info(fmt::format("camera.{}", what))
      .with("camera_uuid", config.camera)
      .with("site_id", config.site)
      .with("tenant_id", config.tenant)
      .with("by", caller.sub)
      .with("request_id", request.request_id);
}

// The runner that held a camera which may no longer be leased has lost it by the step just made. That step's version
// names the announcement, so a lease that ended earlier is not announced again. A camera that has a version and no
// owner left its cluster by the last step that gave it one.
boost::asio::awaitable<void> announce_loss(Plane& plane, CameraId camera, std::string_view reason) {
  TenantId any;
  auto seen = co_await plane.leases.show(std::move(camera), std::move(any));
  if (!seen) co_return;
  const lease::LeaseRow& row = seen->row;
  if (row.revoked) plane.announcer.lease(change_of("revoked", row, reason));
  if (row.owner.runner.empty() && row.version.n > 0) plane.announcer.left_cluster(row, reason);
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
    CO_TRY(cameras, co_await plane.cameras.list_cameras(*std::move(filter)));
    found = std::move(cameras);
  }
  if (found.empty() && place.nested()) {
    // An empty list and a site that does not exist are different answers.
    SiteId site = place.site;
    TenantId tenant = place.tenant;
    CO_TRY(exists, co_await plane.sites.show_site(std::move(site), std::move(tenant)));
  }
  camera::Credentials credentials = credentials_for(caller);
  bool advised = is_advised(caller);
  if (advised) (void)co_await learn_models(plane);
  co_return net::Response::json(listed(
      found, page, [](const CameraRecord& record) { return record.config.camera.str(); },
      [&](const CameraRecord& record) {
        json::object out = write_camera(record, credentials);
        if (advised) out["warnings"] = warnings_on(plane, record.config);
        return out;
      }));
}

// The tenant and the site that a camera names, where they do not exist. Another tenant's site stays that tenant's, and
// then no tenant is made for it.
Async<Nothing> create_places(Plane& plane, const camera::Config& config, const Caller& caller,
                             const net::Request& request) {
  auto made = [&](std::string_view what) {
    log::info(what, "for a camera that was added there")
        .with("tenant_id", config.tenant)
        .with("site_id", config.site)
        .with("by", caller.sub)
        .with("request_id", request.request_id);
  };
  if (caller.tenant.empty()) {
    auto known = co_await plane.sites.show_site(config.site, caller.tenant);
    if (known) co_return ok();
    if (known.error().code != Errc::not_found) co_return std::move(known).error();
    Tenant tenant{config.tenant};
    auto added = co_await plane.sites.add_tenant(std::move(tenant));
    if (!added && added.error().code != Errc::conflict) co_return std::move(added).error();
    if (added) made("tenant.created");
  }
  Site site = new_site(plane.settings, config.site, config.tenant);
  auto added = co_await plane.sites.add_site(std::move(site));
  if (!added && added.error().code != Errc::conflict) co_return std::move(added).error();
  if (added) made("site.created");
  co_return ok();
}

Reply add_camera(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(place, place_of(request, caller));
  CO_TRY(may_create, query_flag(request, "create_places"));
  CO_TRY(body, body_object(request));
  if (place.nested()) {
    CO_TRY(tenant_agrees, fill_from_path(body, TenantId::field_name, place.tenant.str()));
    CO_TRY(site_agrees, fill_from_path(body, SiteId::field_name, place.site.str()));
  } else if (!caller.tenant.empty() && !body.contains(TenantId::field_name)) {
    body[TenantId::field_name] = caller.tenant.str();
  }
  CO_TRY(config, read_camera(std::move(body), plane.settings.rules));
  CO_TRY(tenant, tenant_for(caller, config.tenant));
  auto record = co_await plane.cameras.add_camera(config);
  if (!record && record.error().reason == "site_not_found" && plane.settings.create_places && may_create.value_or(true)) {
    CO_TRY(there, co_await create_places(plane, config, caller, request));
    record = co_await plane.cameras.add_camera(config);
  }
  if (!record) co_return std::move(record).error();
  note_change(plane, "created", *record, caller, request);
  co_return co_await shown(plane, *record, caller, 201);
}

Reply show_camera(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(place, place_of(request, caller));
  CO_TRY(id, path_id<CameraId>(request));
  TenantId tenant = place.tenant;
  CO_TRY(record, co_await plane.cameras.show_camera(std::move(id), std::move(tenant)));
  CO_TRY(here, stands_at(record, place));
  co_return co_await shown(plane, record, caller);
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
  Cameras::CameraEdit edit = [body = std::move(body), place,
                              rules = plane.settings.rules](const CameraRecord& present) -> Result<camera::Config> {
    TRY(here, stands_at(present, place));
    return edit_camera(present, body, kind, rules);
  };
  TenantId tenant = place.tenant;
  CO_TRY(record, co_await plane.cameras.edit_camera(std::move(id), std::move(tenant), std::move(edit)));
  note_change(plane, "updated", record, caller, request);
  if (!record.config.assignable()) co_await announce_loss(plane, record.config.camera, "camera_disabled");
  co_return co_await shown(plane, record, caller);
}

// What is known of a camera that is to be deleted. Where its configuration cannot be read, its lease tells where it
// stands.
boost::asio::awaitable<Result<CameraRecord>> doomed_camera(Plane& plane, CameraId id, TenantId tenant) {
  CameraId looked = id;
  TenantId again = tenant;
  auto record = co_await plane.cameras.show_camera(std::move(looked), std::move(tenant));
  if (record || record.error().reason != kBadStoredConfig) co_return std::move(record);
  CO_TRY(seen, co_await plane.leases.show(std::move(id), std::move(again)));
  CameraRecord known;
  known.config.camera = seen.row.subject;
  known.config.tenant = seen.row.tenant;
  known.config.site = seen.row.site;
  co_return std::move(known);
}

Reply remove_camera(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(place, place_of(request, caller));
  CO_TRY(id, path_id<CameraId>(request));
  CameraId looked = id, doomed = id;
  TenantId tenant = place.tenant, again = place.tenant;
  // A camera never changes its place, so looking first is safe.
  CO_TRY(record, co_await doomed_camera(plane, std::move(looked), std::move(tenant)));
  CO_TRY(here, stands_at(record, place));
  CO_TRY(gone, co_await plane.cameras.remove_camera(std::move(doomed), std::move(again)));
  note_change(plane, "deleted", record, caller, request);
  co_await announce_loss(plane, id, "camera_deleted");
  co_return net::Response::json(json::object{{"camera_uuid", id.str()}, {"deleted", true}});
}

struct CrashReport {
  RunnerId runner;
  BootId boot;
  std::string config_version;
};
template <class V>
void fields(V& v, CrashReport& r) {
  v.required("runner_id", r.runner);
  v.required("boot_id", r.boot);
  v.optional("config_version", r.config_version);
}

// Only a worker of the camera's owner can have crashed by the camera. The crash may have cost its runner the lease,
// so the tenure before counts too; the store keeps only the boot of that tenure.
bool had_the_camera(const CrashReport& report, const lease::LeaseRow& row) {
  return row.owner.runner == report.runner || (row.previous && row.previous->boot == report.boot);
}

// A worker crashed by this camera. A crash under a configuration that was replaced since says nothing about the new
// one.
Reply count_crash(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(place, place_of(request, caller));
  CO_TRY(id, path_id<CameraId>(request));
  CO_TRY(report, body_as<CrashReport>(request));
  CO_TRY(own, speaks_for(caller, report.runner));
  CameraId looked = id, leased = id, counted = id;
  TenantId tenant = place.tenant, same = place.tenant, again = place.tenant;
  CO_TRY(record, co_await plane.cameras.show_camera(std::move(looked), std::move(tenant)));
  CO_TRY(lease, co_await plane.leases.show(std::move(leased), std::move(same)));
  int crashes = record.crashes;
  bool present = report.config_version.empty() || report.config_version == config_version(record);
  if (present && had_the_camera(report, lease.row)) {
    CO_TRY(now, co_await plane.cameras.count_crash(std::move(counted), std::move(again)));
    crashes = now;
    log::warn("camera.crashed_worker")
        .with("camera_uuid", id)
        .with("runner_id", report.runner)
        .with("boot_id", report.boot)
        .with("crashes", crashes)
        .with("request_id", request.request_id);
  }
  co_return net::Response::json(json::object{{"camera_uuid", id.str()}, {"crashes", crashes}});
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
  add_guarded(router, plane, Method::post, "/v1/cameras/{camera_uuid}/crashes", kRunners, count_crash);
}

}  // namespace weir::control_plane
