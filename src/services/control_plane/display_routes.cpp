// What detector clusters shall look at: displays, playlists, ad-hoc subscriptions, and all of it together.
#include "display_bodies.hpp"
#include "place.hpp"
#include "record_routes.hpp"

namespace weir::control_plane {

using net::Method;

namespace {

struct OfDisplays {
  using Record = DisplayRecord;
  static constexpr std::string_view kWhat = "display", kIdField = DisplayId::field_name;

  static Result<DisplayId> path_id(const net::Request& request) { return control_plane::path_id<DisplayId>(request); }
  static Status fill_id(json::object& body, const net::Request& request) {
    return fill_from_path(body, kIdField, request.param(kIdField));
  }
  static Result<Record> read(json::object body) { return read_display(std::move(body)); }
  static json::object write(const Record& record) { return write_display(record); }
  static std::string name(const Record& record) { return record.id.str(); }
  static json::object id_member(const Record& record) { return {{kIdField, record.id.str()}}; }
  // What is said of it on the bus besides its tenant.
  static json::object announced(const Record& record) {
    json::object out = id_member(record);
    if (!record.camera.empty()) out["camera_uuid"] = record.camera.str();
    if (!record.playlist.empty()) out["playlist_id"] = record.playlist.str();
    return out;
  }

  static Async<std::vector<Record>> list(Plane& plane, TenantId tenant, const Page& page) {
    return plane.displays.list_displays(std::move(tenant), DisplayId::trusted(page.after), page.ask());
  }
  static Async<Record> show(Plane& plane, DisplayId id, TenantId tenant) {
    return plane.displays.show_display(std::move(id), std::move(tenant));
  }
  static Async<Record> put(Plane& plane, Record record, Put how) {
    return plane.displays.put_display(std::move(record), how);
  }
  static Async<Nothing> remove(Plane& plane, DisplayId id, TenantId tenant) {
    return plane.displays.remove_display(std::move(id), std::move(tenant));
  }
};

struct OfPlaylists {
  using Record = PlaylistRecord;
  static constexpr std::string_view kWhat = "playlist", kIdField = PlaylistId::field_name;

  static Result<PlaylistId> path_id(const net::Request& request) {
    return control_plane::path_id<PlaylistId>(request);
  }
  static Status fill_id(json::object& body, const net::Request& request) {
    return fill_from_path(body, kIdField, request.param(kIdField));
  }
  static Result<Record> read(json::object body) { return read_playlist(std::move(body)); }
  static json::object write(const Record& record) { return write_playlist(record); }
  static std::string name(const Record& record) { return record.id.str(); }
  static json::object id_member(const Record& record) { return {{kIdField, record.id.str()}}; }
  static json::object announced(const Record& record) {
    return {{kIdField, record.id.str()}, {"model_id", record.model}};
  }

  static Async<std::vector<Record>> list(Plane& plane, TenantId tenant, const Page& page) {
    return plane.displays.list_playlists(std::move(tenant), PlaylistId::trusted(page.after), page.ask());
  }
  static Async<Record> show(Plane& plane, PlaylistId id, TenantId tenant) {
    return plane.displays.show_playlist(std::move(id), std::move(tenant));
  }
  static Async<Record> put(Plane& plane, Record record, Put how) {
    return plane.displays.put_playlist(std::move(record), how);
  }
  static Async<Nothing> remove(Plane& plane, PlaylistId id, TenantId tenant) {
    return plane.displays.remove_playlist(std::move(id), std::move(tenant));
  }
};

// ---- ad-hoc subscriptions ----

void note_subscription(Plane& plane, std::string_view what, const SubscriptionRecord& record, const Caller& caller,
                       const net::Request& request) {
  std::string change = fmt::format("subscription.{}", what);
  json::object about{{"subscription_identifier", record.id.str()},
                     {"camera_uuid", record.camera.str()},
                     {"model_id", record.model}};
  plane.announcer.desire(change, record.tenant, record.id.str(), std::move(about));
  log::info(change)
      .with("subscription_identifier", record.id)
      .with("tenant_id", record.tenant)
      .with("by", caller.sub)
      .with("request_id", request.request_id);
}

Reply list_subscriptions(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(page, read_page(request));
  TenantId tenant = caller.tenant;
  SubscriptionId after = SubscriptionId::trusted(page.after);
  CO_TRY(found, co_await plane.displays.list_subscriptions(std::move(tenant), std::move(after), page.ask()));
  co_return net::Response::json(listed(
      found, page, [](const SubscriptionRecord& record) { return record.id.str(); },
      [&](const SubscriptionRecord& record) { return write_subscription(record, caller); }));
}

// A subscription belongs to the tenant of its camera. A camera never changes its tenant, so looking first is safe.
Reply subscribe(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(body, body_object(request));
  CO_TRY(wanted, read_subscription(std::move(body), plane.settings.rules));
  CameraId camera = wanted.camera;
  TenantId tenant = caller.tenant;
  CO_TRY(present, co_await plane.cameras.show_camera(std::move(camera), std::move(tenant)));
  wanted.tenant = present.config.tenant;
  CO_TRY(record, co_await plane.displays.put_subscription(std::move(wanted)));
  note_subscription(plane, "created", record, caller, request);
  co_return net::Response::json(write_subscription(record, caller), 201);
}

Reply unsubscribe(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(id, path_id<SubscriptionId>(request));
  TenantId tenant = caller.tenant;
  CO_TRY(gone, co_await plane.displays.remove_subscription(std::move(id), std::move(tenant)));
  note_subscription(plane, "deleted", gone, caller, request);
  co_return net::Response::json(json::object{{"subscription_identifier", gone.id.str()}, {"deleted", true}});
}

// ---- all together ----

Reply list_desired(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(page, read_page(request));
  CO_TRY(cluster, ClusterId::parse(request.param(lease::id_field(lease::Kind::cluster))));
  TenantId tenant = caller.tenant;
  SubscriptionId after = SubscriptionId::trusted(page.after);
  CO_TRY(found, co_await plane.displays.list_desired(std::move(cluster), std::move(tenant), std::move(after),
                                                     page.ask()));
  co_return net::Response::json(listed(
      found, page, [](const DesiredSubscription& desired) { return desired.id.str(); }, write_desired));
}

}  // namespace

void add_display_routes(net::Router& router, Plane& plane) {
  add_guarded(router, plane, Method::get, "/v1/displays", kReadersAndRunners, list_records<OfDisplays>);
  add_record_routes<OfDisplays>(router, plane);
  add_guarded(router, plane, Method::get, "/v1/playlists", kReadersAndRunners, list_records<OfPlaylists>);
  add_record_routes<OfPlaylists>(router, plane);
  add_guarded(router, plane, Method::get, "/v1/subscriptions", kReadersAndRunners, list_subscriptions);
  add_guarded(router, plane, Method::post, "/v1/subscriptions", kRunners, subscribe);
  add_guarded(router, plane, Method::del, "/v1/subscriptions/{subscription_identifier}", kRunners, unsubscribe);
  add_guarded(router, plane, Method::get, "/v1/clusters/{cluster}/desired", kRunners, list_desired);
}

}  // namespace weir::control_plane
