#include "weir/base/log.hpp"
#include "weir/control_plane/answers.hpp"
#include "weir/control_plane/lease_bodies.hpp"
#include "weir/control_plane/page.hpp"
#include "weir/control_plane/plane.hpp"
#include "weir/control_plane/request.hpp"

namespace weir::control_plane {

using lease::Operation;
using lease::Outcome;
using net::Method;

namespace {

TtlBounds ttl_bounds(const Plane& plane) { return {plane.settings.ttl_min, plane.settings.ttl_max}; }

// What a batch did, for the log, the metrics and the bus: recorded once, right after the store's answer.
struct Deeds {
  std::array<int, lease::kOutcomeNames.size()> outcomes{};
  int granted = 0;  // without replays
  int stolen = 0;
  int owner_changes = 0;
  int released() const { return outcomes[static_cast<size_t>(Outcome::released)]; }
};

void log_camera(log::Level level, const lease::Owner& owner, const lease::Answer& answer, const net::Request& request) {
  bool granted = answer.outcome == Outcome::granted;
  log::Entry(level, granted ? "lease.granted" : "lease.released", "")
      .with("camera_uuid", answer.camera)
      .with("runner_id", owner.runner)
      .with("boot_id", owner.boot)
      .with("version", answer.version.n)
      .with("stolen", answer.stolen)
      .with("request_id", request.request_id);
}

Deeds deeds_of(Plane& plane, const lease::Owner& owner, std::span<const lease::Answer> answers,
               const net::Request& request, log::Level each) {
  Deeds deeds;
  for (const lease::Answer& answer : answers) {
    ++deeds.outcomes[static_cast<size_t>(answer.outcome)];
    bool released = answer.outcome == Outcome::released;
    bool granted = answer.outcome == Outcome::granted && plane.seen_grants.first_time(answer.grant);
    if (granted) {
      ++deeds.granted;
      deeds.stolen += answer.stolen ? 1 : 0;
      bool changed = answer.stolen || (answer.previous && answer.previous->boot != owner.boot);
      deeds.owner_changes += changed ? 1 : 0;
    }
    if ((granted || released) && log::enabled(each)) log_camera(each, owner, answer, request);
    // A renewal that a new epoch answers with a grant changes no hands, and says no place.
    if ((granted || released) && !answer.tenant.empty()) {
      std::string_view what = released ? "released" : answer.stolen ? "stolen" : "granted";
      plane.announcer.lease({what, {answer.tenant, answer.site, answer.camera}, owner, answer.version});
    }
  }
  return deeds;
}

void count(Plane& plane, Operation operation, const Deeds& deeds) {
  for (size_t i = 0; i < deeds.outcomes.size(); ++i)
    if (deeds.outcomes[i] > 0) plane.instruments.lease_results(operation, static_cast<Outcome>(i), deeds.outcomes[i]);
  if (deeds.owner_changes > 0) plane.instruments.owner_changed(deeds.owner_changes);
}

void log_batch(const lease::Owner& owner, const Deeds& deeds, const net::Request& request) {
  if (deeds.granted > 0)
    log::info("lease.granted")
        .with("runner_id", owner.runner)
        .with("boot_id", owner.boot)
        .with("granted", deeds.granted)
        .with("stolen", deeds.stolen)
        .with("request_id", request.request_id);
  if (deeds.released() > 0)
    log::info("lease.released")
        .with("runner_id", owner.runner)
        .with("boot_id", owner.boot)
        .with("released", deeds.released())
        .with("request_id", request.request_id);
}

boost::asio::awaitable<Result<std::vector<lease::Answer>>> apply(Plane& plane, lease::Batch batch) {
  Operation operation = batch.operation;
  int asked = static_cast<int>(batch.asks.size());
  auto answers = co_await plane.leases.apply(std::move(batch));
  if (!answers) plane.instruments.lease_failed(operation, asked);
  co_return answers;
}

// ---- one camera ----

struct Single {
  SingleAsk ask;
  lease::Answer answer;
};

boost::asio::awaitable<Result<Single>> ask_one(Plane& plane, net::Request& request, const Caller& caller,
                                               Operation operation) {
  CO_TRY(body, body_value(request));
  CO_TRY(ask, read_single(body, operation, ttl_bounds(plane)));
  CO_TRY(own, speaks_for(caller, ask.batch.owner.runner));
  ask.batch.tenant = caller.tenant;
  lease::Batch batch = ask.batch;
  CO_TRY(answers, co_await apply(plane, std::move(batch)));
  WEIR_ASSERT(answers.size() == 1);
  count(plane, operation, deeds_of(plane, ask.batch.owner, answers, request, log::Level::info));
  Single single{std::move(ask), std::move(answers[0])};
  co_return std::move(single);
}

Reply acquire_one(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(single, co_await ask_one(plane, request, caller, Operation::acquire));
  const lease::Answer& answer = single.answer;
  bool yours = answer.outcome == Outcome::granted || (answer.outcome == Outcome::held && answer.yours);
  if (!yours) co_return refusal_error(answer);
  // Tenant, site and time stand in the row only. The lease is granted whether or not this second look succeeds.
  CameraId camera = answer.camera;
  TenantId tenant = caller.tenant;
  auto seen = co_await plane.leases.show(std::move(camera), std::move(tenant));
  co_return net::Response::json(write_single(single.ask, answer, seen ? &*seen : nullptr));
}

Reply renew_one(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(single, co_await ask_one(plane, request, caller, Operation::renew));
  // A store that opened a new epoch answers a renewal with a new grant.
  bool renewed = single.answer.outcome == Outcome::renewed || single.answer.outcome == Outcome::granted;
  if (!renewed) co_return refusal_error(single.answer);
  co_return net::Response::json(write_single(single.ask, single.answer, nullptr));
}

Reply release_one(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(single, co_await ask_one(plane, request, caller, Operation::release));
  const lease::Answer& answer = single.answer;
  bool released = answer.outcome == Outcome::released;
  if (!released && answer.outcome != Outcome::kept) co_return refusal_error(answer);
  json::object out{{"camera_uuid", answer.camera.str()}, {"released", released}, {"version", answer.version.n}};
  out["result"] = released ? "released" : "kept";
  co_return net::Response::json(out);
}

// ---- many cameras ----

template <Operation operation>
Reply ask_many(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(body, body_value(request));
  CO_TRY(batch, read_batch(body, operation, ttl_bounds(plane)));
  CO_TRY(own, speaks_for(caller, batch.owner.runner));
  batch.tenant = caller.tenant;
  lease::Owner owner = batch.owner;
  CO_TRY(answers, co_await apply(plane, std::move(batch)));
  Deeds deeds = deeds_of(plane, owner, answers, request, log::Level::debug);
  count(plane, operation, deeds);
  log_batch(owner, deeds, request);
  net::Response response;
  response.body = write_batch(answers);
  co_return std::move(response);
}

// ---- as an operator sees them ----

// A list shows a runner its own leases, a worker those of the runner and boot it works for; the filter may say so but
// need not. A runner that asks for everybody's sees what it hears on the lease feed anyway.
Result<RunnerId> visible_runner(const Caller& caller, const RunnerId& wanted, bool everybody) {
  bool bound = caller.role == net::Role::runner || caller.role == net::Role::worker;
  if (!bound || (everybody && caller.role == net::Role::runner)) return wanted;
  if (wanted.empty()) return RunnerId::parse(caller.sub);
  TRY(own, speaks_for(caller, wanted));
  return wanted;
}

// A worker sees the lease it works under, not its neighbours'.
Status may_see_lease(const Caller& caller, const lease::Owner& owner) {
  if (caller.role != net::Role::worker) return ok();
  if (caller.boot.empty() || caller.boot == owner.boot) return speaks_for(caller, owner.runner);
  return Error{Errc::forbidden, "not_yours", "this token was minted for another boot of the runner"};
}

// With what its owner said last about the stream.
json::object write_seen(const Plane& plane, const LeaseView& view) {
  json::object out = write_lease(view);
  out["stream"] = plane.streams.about(view.row, plane.clock.now());
  return out;
}

Reply list_leases(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(page, read_page(request));
  CO_TRY(wanted, query_id<RunnerId>(request));
  CO_TRY(held, query_flag(request, "held"));
  CO_TRY(everybody, query_flag(request, "everybody"));
  CO_TRY(runner, visible_runner(caller, wanted, everybody.value_or(false)));
  LeaseFilter filter;
  filter.tenant = caller.tenant;
  filter.runner = runner;
  filter.boot = caller.boot;
  filter.only_held = held.value_or(true);
  filter.after = CameraId::trusted(page.after);
  filter.limit = page.ask();
  CO_TRY(found, co_await plane.leases.list(std::move(filter)));
  co_return net::Response::json(listed(
      found, page, [](const LeaseView& view) { return view.row.camera.str(); },
      [&](const LeaseView& view) { return write_seen(plane, view); }));
}

Reply show_lease(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(camera, path_id<CameraId>(request));
  TenantId tenant = caller.tenant;
  CO_TRY(view, co_await plane.leases.show(std::move(camera), std::move(tenant)));
  CO_TRY(visible, may_see_lease(caller, view.row.owner));
  co_return net::Response::json(write_seen(plane, view));
}

Reply revoke_lease(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(camera, path_id<CameraId>(request));
  TenantId tenant = caller.tenant;
  CO_TRY(view, co_await plane.leases.revoke(std::move(camera), std::move(tenant)));
  log::info("lease.revoked")
      .with("camera_uuid", view.row.camera)
      .with("runner_id", view.row.owner.runner)
      .with("version", view.row.version.n)
      .with("by", caller.sub)
      .with("request_id", request.request_id);
  if (view.row.revoked) plane.announcer.lease(change_of("revoked", view.row, "operator"));
  co_return net::Response::json(write_lease(view));
}

}  // namespace

void add_lease_routes(net::Router& router, Plane& plane) {
  add_guarded(router, plane, Method::post, "/v1/leases/camera/acquire", kRunners, acquire_one);
  add_guarded(router, plane, Method::post, "/v1/leases/camera/renew", kRunners, renew_one);
  add_guarded(router, plane, Method::post, "/v1/leases/camera/release", kRunners, release_one);
  add_guarded(router, plane, Method::post, "/v1/leases/camera/acquire-batch", kRunners, ask_many<Operation::acquire>);
  add_guarded(router, plane, Method::post, "/v1/leases/camera/renew-batch", kRunners, ask_many<Operation::renew>);
  add_guarded(router, plane, Method::post, "/v1/leases/camera/release-batch", kRunners, ask_many<Operation::release>);
  add_guarded(router, plane, Method::get, "/v1/leases", kEverybody, list_leases);
  add_guarded(router, plane, Method::get, "/v1/leases/camera/{camera_uuid}", kEverybody, show_lease);
  add_guarded(router, plane, Method::post, "/v1/leases/camera/{camera_uuid}/revoke", kAdmins, revoke_lease);
}

}  // namespace weir::control_plane
