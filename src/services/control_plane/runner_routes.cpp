#include "answers.hpp"
#include "page.hpp"
#include "plane.hpp"
#include "request.hpp"
#include "runner_bodies.hpp"

#include "weir/base/log.hpp"
#include "weir/base/random.hpp"

namespace weir::control_plane {

using net::Method;

namespace {

constexpr size_t kWillBytes = 32;
constexpr int kAssignedMax = 1000;

// ---- a runner speaks ----

Reply register_runner(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(body, body_value(request));
  CO_TRY(runner, read_registration(body));
  CO_TRY(own, speaks_for(caller, runner.id));
  CO_TRY(tenant, tenant_for(caller, runner.tenant));
  runner.tenant = tenant;
  // The leases that the runner holds are read first: after the registration nothing may fail any more, or the will
  // would be lost.
  LeaseFilter filter;
  filter.tenant = caller.tenant;
  filter.runner = runner.id;
  filter.only_held = true;
  filter.limit = kAssignedMax;
  CO_TRY(held, co_await plane.leases.list(std::move(filter)));
  Secret will;
  std::string will_sha256;
  if (!runner.boot.empty()) {
    will = Secret(random_hex(kWillBytes));
    will_sha256 = net::sha256_hex(will.reveal());
  }
  TenantId asking = caller.tenant;
  CO_TRY(known, co_await plane.runners.register_runner(std::move(runner), std::move(will_sha256), std::move(asking)));
  plane.models.add(known);
  log::info("runner.registered")
      .with("runner_id", known.id)
      .with("boot_id", known.boot)
      .with("tenant_id", known.tenant)
      .with("host", known.address.host)
      .with("capacity_streams", known.capacity)
      .with("request_id", request.request_id);
  json::array assigned;
  for (const LeaseView& view : held) assigned.push_back(json::value(view.row.subject.str()));
  json::object out{{"runner_id", known.id.str()},
                   {"registered_at", to_iso(known.registered_at)},
                   {"status", "active"},
                   {"assigned_cameras", std::move(assigned)},
                   {"cordoned", known.cordoned},
                   {"drain_mode", json::write_value(known.drain)},
                   {"capacity_streams", known.capacity},
                   {"heartbeat_timeout_s", number(seconds(plane.settings.runner_live))}};
  if (!will.empty()) out["will"] = will.reveal();
  co_return net::Response::json(out);
}

constexpr int kRunnersAsked = 1000;

// How many cameras the other runners could take, as far as the first thousand tell. This does not look at the cameras
// that leave: where the draining runner is bound to a tenant or a site all are from there, otherwise they may be from
// anywhere. So another runner counts only if it may take every camera that leaves: where it is bound, the draining
// one must be bound to the same.
boost::asio::awaitable<Result<int>> room_elsewhere(Plane& plane, RunnerId runner, TenantId tenant) {
  RunnerId id = runner;
  CO_TRY(own, co_await plane.runners.show_runner(std::move(id), std::move(tenant)));
  CO_TRY(all, co_await plane.runners.list_runners(TenantId(), RunnerId(), kRunnersAsked));
  int room = 0;
  for (const Runner& each : all) {
    bool works = each.id != runner && each.live && !each.cordoned && each.drain == DrainMode::none;
    bool may_take = (each.tenant.empty() || each.tenant == own.tenant) && (each.site.empty() || each.site == own.site);
    if (works && may_take) room += std::max(0, each.capacity - each.leases_held);
  }
  co_return room;
}

// A program that knows no registration is known from its first heartbeat on, with what a runner has that says nothing.
// One that names its boot has registered it; where the store does not know it any more, it must do that again.
Async<RunnerOrders> hear(Plane& plane, const RunnerId& runner, const Heartbeat& heartbeat, const Caller& caller) {
  auto tell = [&] {
    return plane.runners.heartbeat(runner, caller.tenant, heartbeat.kept, heartbeat.streams_owned);
  };
  auto orders = co_await tell();
  bool unknown = !orders && orders.error().code == Errc::not_found;
  if (!unknown || caller.role != net::Role::runner || !heartbeat.boot.empty()) co_return std::move(orders);
  Runner fresh;
  fresh.id = runner;
  fresh.tenant = caller.tenant;
  auto known = co_await plane.runners.register_runner(std::move(fresh), std::string(), caller.tenant);
  if (!known && known.error().code == Errc::conflict) co_return std::move(orders);  // another tenant's
  if (!known) co_return std::move(known).error();
  log::info("runner.registered", "by its first heartbeat")
      .with("runner_id", known->id)
      .with("tenant_id", known->tenant);
  co_return co_await tell();
}

boost::asio::awaitable<Result<net::Response>> beat(Plane& plane, RunnerId runner, Heartbeat heartbeat,
                                                   const Caller& caller) {
  CO_TRY(own, speaks_for(caller, runner));
  CO_TRY(orders, co_await hear(plane, runner, heartbeat, caller));
  json::object out{{"runner_id", runner.str()},
                   {"status", "active"},
                   {"cordoned", orders.cordoned},
                   {"drain_mode", json::write_value(orders.drain)},
                   {"capacity_streams", orders.capacity},
                   {"heartbeat_timeout_s", number(seconds(plane.settings.runner_live))}};
  if (heartbeat.draining) {
    CO_TRY(room, co_await room_elsewhere(plane, runner, caller.tenant));
    out["spare_streams"] = room;
  }
  co_return net::Response::json(out);
}

Reply heartbeat_in_body(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(body, body_value(request));
  CO_TRY(heartbeat, read_heartbeat(body));
  if (heartbeat.runner.empty()) co_return bad_field("runner_id", "is required");
  RunnerId runner = heartbeat.runner;
  co_return co_await beat(plane, std::move(runner), std::move(heartbeat), caller);
}

Reply heartbeat_in_path(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(runner, path_id<RunnerId>(request));
  CO_TRY(body, request.body.empty() ? Result<json::value>(json::value(json::object())) : body_value(request));
  CO_TRY(heartbeat, read_heartbeat(body));
  if (!heartbeat.runner.empty() && heartbeat.runner != runner)
    co_return bad_field("runner_id", "must equal the one in the path");
  co_return co_await beat(plane, std::move(runner), std::move(heartbeat), caller);
}

// The last will. Its secret is the only credential; a wrong one and an unknown boot look the same.
Reply release_all(Plane& plane, net::Request& request) {
  CO_TRY(runner, path_id<RunnerId>(request));
  CO_TRY(body, body_value(request));
  CO_TRY(will, read_will(body));
  if (auto header = credential_of(request.header("authorization"), "Will")) will.secret = Secret(std::string(*header));
  if (will.secret.empty())
    co_return Error{Errc::unauthorized, "will_missing", "this route needs the will's secret", {{"field", "will"}}};
  lease::Owner owner{runner, will.boot};
  std::string hashed = net::sha256_hex(will.secret.reveal());
  auto released = co_await plane.leases.release_all(std::move(owner), std::move(hashed));
  if (!released) {
    Errc code = released.error().code;
    if (code == Errc::unauthorized || code == Errc::forbidden || code == Errc::not_found)
      co_return Error{Errc::unauthorized, "will_refused", "this is not the will of that runner and boot"};
    co_return std::move(released).error();
  }
  log::info("lease.released", "the last will of a boot was carried out")
      .with("runner_id", runner)
      .with("boot_id", will.boot)
      .with("released", released->size())
      .with("request_id", request.request_id);
  for (const lease::LeaseRow& row : *released) plane.announcer.lease(change_of("released", row, kLastWill));
  co_return net::Response::json(
      json::object{{"runner_id", runner.str()}, {"boot_id", will.boot.str()}, {"released", released->size()}});
}

// ---- an operator looks and acts ----

Reply list_runners(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(page, read_page(request));
  TenantId tenant = caller.tenant;
  CO_TRY(found, co_await plane.runners.list_runners(std::move(tenant), RunnerId::trusted(page.after), page.ask()));
  co_return net::Response::json(listed(
      found, page, [](const Runner& runner) { return runner.id.str(); }, write_runner));
}

Reply show_runner(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(id, path_id<RunnerId>(request));
  CO_TRY(own, speaks_for(caller, id));
  auto runner = co_await plane.runners.show_runner(id, caller.tenant);
  // A runner may ask for its orders before it has said anything of itself.
  bool own_first = !runner && runner.error().code == Errc::not_found && caller.role == net::Role::runner;
  if (!runner && !own_first) co_return std::move(runner).error();
  Runner nothing_known;
  nothing_known.id = id;
  nothing_known.tenant = caller.tenant;
  co_return net::Response::json(write_runner(runner ? *runner : nothing_known));
}

Reply change_runner(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(id, path_id<RunnerId>(request));
  CO_TRY(body, body_value(request));
  CO_TRY(change, read_runner_change(body));
  TenantId tenant = caller.tenant;
  CO_TRY(runner, co_await plane.runners.change_runner(std::move(id), std::move(tenant), change));
  std::string_view event = !change.cordoned   ? (change.drain ? "runner.drain" : "runner.changed")
                           : *change.cordoned ? "runner.cordoned"
                                              : "runner.uncordoned";
  log::info(event)
      .with("runner_id", runner.id)
      .with("cordoned", runner.cordoned)
      .with("drain_mode", kDrainModeNames[static_cast<size_t>(runner.drain)].name)
      .with("capacity_streams", runner.capacity)
      .with("by", caller.sub)
      .with("request_id", request.request_id);
  plane.announcer.runner(runner);
  co_return net::Response::json(write_runner(runner));
}

Reply remove_runner(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(id, path_id<RunnerId>(request));
  RunnerId doomed = id;
  TenantId tenant = caller.tenant;
  CO_TRY(gone, co_await plane.runners.remove_runner(std::move(doomed), std::move(tenant)));
  log::info("runner.deleted").with("runner_id", id).with("by", caller.sub).with("request_id", request.request_id);
  co_return net::Response::json(json::object{{"runner_id", id.str()}, {"deleted", true}});
}

}  // namespace

void add_runner_routes(net::Router& router, Plane& plane) {
  add_guarded(router, plane, Method::post, "/v1/runners/register", kRunners, register_runner);
  add_guarded(router, plane, Method::post, "/v1/runners/heartbeat", kRunners, heartbeat_in_body);
  add_guarded(router, plane, Method::put, "/v1/runners/{runner_id}/heartbeat", kRunners, heartbeat_in_path);
  add_guarded(router, plane, Method::post, "/v1/runners/{runner_id}/heartbeat", kRunners, heartbeat_in_path);
  add_open(router, plane, Method::post, "/v1/runners/{runner_id}/release-all", release_all);
  add_guarded(router, plane, Method::get, "/v1/runners", kReaders, list_runners);
  add_guarded(router, plane, Method::get, "/v1/runners/{runner_id}", kReadersAndRunners, show_runner);
  add_guarded(router, plane, Method::patch, "/v1/runners/{runner_id}", kAdmins, change_runner);
  add_guarded(router, plane, Method::del, "/v1/runners/{runner_id}", kAdmins, remove_runner);
}

}  // namespace weir::control_plane
