#include "answers.hpp"
#include "lease_bodies.hpp"
#include "page.hpp"
#include "plane.hpp"
#include "request.hpp"

#include "weir/base/log.hpp"

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

void log_subject(log::Level level, lease::Kind kind, const lease::Owner& owner, const lease::Answer& answer,
                 const net::Request& request) {
  bool granted = answer.outcome == Outcome::granted;
  log::Entry(level, granted ? "lease.granted" : "lease.released", "")
      .with(lease::id_field(kind), answer.subject)
      .with("runner_id", owner.runner)
      .with("boot_id", owner.boot)
      .with("version", answer.version.n)
      .with("stolen", answer.stolen)
      .with("request_id", request.request_id);
}

// The control plane that made a grant may have died before it announced it, so a replay announces it again: the
// event's id makes that harmless for as long as the log remembers the first announcement. The simplest clients replay
// their grant for as long as they have it.
bool told_again(const Plane& plane, const lease::Answer& answer) {
  return answer.outcome == Outcome::granted && answer.replayed &&
         plane.clock.wall() - answer.acquired_at < kEventsRemembered;
}

Deeds deeds_of(Plane& plane, lease::Kind kind, const lease::Owner& owner, std::span<const lease::Answer> answers,
               const net::Request& request, log::Level each) {
  Deeds deeds;
  for (const lease::Answer& answer : answers) {
    ++deeds.outcomes[static_cast<size_t>(answer.outcome)];
    bool released = answer.outcome == Outcome::released;
    bool granted = answer.outcome == Outcome::granted && !answer.replayed;
    if (granted) {
      ++deeds.granted;
      deeds.stolen += answer.stolen ? 1 : 0;
      bool changed = answer.stolen || (answer.previous && answer.previous->boot != owner.boot);
      deeds.owner_changes += changed && kind == lease::Kind::camera ? 1 : 0;
    }
    if ((granted || released) && log::enabled(each)) log_subject(each, kind, owner, answer, request);
    // A renewal that a new epoch answers with a grant leaves the camera with its owner, and its answer names no place.
    // A cluster of all tenants never has one.
    bool placed = !answer.tenant.empty() || kind == lease::Kind::cluster;
    if ((granted || released || told_again(plane, answer)) && placed) {
      std::string_view what = released ? "released" : answer.stolen ? "stolen" : "granted";
      plane.announcer.lease({what, {answer.tenant, answer.site, answer.subject}, owner, answer.version, kind});
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

// ---- one subject ----

// An asker speaks for its own runner, and makes subjects in its own tenant.
Status may_ask(const Caller& caller, lease::Batch& batch) {
  TRY(own, speaks_for(caller, batch.owner.runner));
  batch.tenant = caller.tenant;
  if (batch.kind == lease::Kind::cluster && batch.home.tenant.empty()) batch.home.tenant = caller.tenant;
  bool elsewhere = lease::makes_rows(batch) && !caller.tenant.empty() && batch.home.tenant != caller.tenant;
  if (!elsewhere) return ok();
  return Error{Errc::forbidden, "not_yours", "this token is another tenant's", {{"field", "tenant_id"}}};
}

struct Single {
  SingleAsk ask;
  lease::Answer answer;
};

boost::asio::awaitable<Result<Single>> ask_one(Plane& plane, net::Request& request, const Caller& caller,
                                               Operation operation, lease::Kind kind) {
  CO_TRY(body, body_value(request));
  CO_TRY(ask, read_single(body, operation, ttl_bounds(plane), kind));
  CO_TRY(own, may_ask(caller, ask.batch));
  lease::Batch batch = ask.batch;
  CO_TRY(answers, co_await apply(plane, std::move(batch)));
  WEIR_ASSERT(answers.size() == 1);
  count(plane, operation, deeds_of(plane, kind, ask.batch.owner, answers, request, log::Level::info));
  Single single{std::move(ask), std::move(answers[0])};
  co_return std::move(single);
}

template <lease::Kind kind>
Reply acquire_one(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(single, co_await ask_one(plane, request, caller, Operation::acquire, kind));
  const lease::Answer& answer = single.answer;
  if (!answer.holds()) co_return refusal_error(answer, kind);
  co_return net::Response::json(write_single(single.ask, answer));
}

template <lease::Kind kind>
Reply renew_one(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(single, co_await ask_one(plane, request, caller, Operation::renew, kind));
  // A store that opened a new epoch answers a renewal with a new grant.
  if (!single.answer.holds()) co_return refusal_error(single.answer, kind);
  co_return net::Response::json(write_single(single.ask, single.answer));
}

template <lease::Kind kind>
Reply release_one(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(single, co_await ask_one(plane, request, caller, Operation::release, kind));
  const lease::Answer& answer = single.answer;
  bool released = answer.outcome == Outcome::released;
  if (!released && answer.outcome != Outcome::kept) co_return refusal_error(answer, kind);
  json::object out{{lease::id_field(kind), answer.subject.str()}, {"released", released}, {"version", answer.version.n}};
  out["result"] = released ? "released" : "kept";
  co_return net::Response::json(out);
}

// ---- many subjects ----

template <lease::Kind kind, Operation operation>
Reply ask_many(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(body, body_value(request));
  CO_TRY(batch, read_batch(body, operation, ttl_bounds(plane), kind));
  CO_TRY(own, may_ask(caller, batch));
  lease::Owner owner = batch.owner;
  CO_TRY(answers, co_await apply(plane, std::move(batch)));
  Deeds deeds = deeds_of(plane, kind, owner, answers, request, log::Level::debug);
  count(plane, operation, deeds);
  log_batch(owner, deeds, request);
  net::Response response;
  response.body = write_batch(answers, kind);
  co_return std::move(response);
}

// ---- as an operator sees them ----

// A list shows a runner its own leases, a worker those of the runner and boot it works for; the filter may say so but
// need not. A runner that asks for all leases learns no more than the lease feed tells it anyway.
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

// The lease with what its owner published last about the stream.
json::object write_seen(const Plane& plane, const LeaseView& view) {
  json::object out = write_lease(view);
  if (view.row.kind == lease::Kind::camera) out["stream"] = plane.streams.about(view.row, plane.clock.now());
  return out;
}

Result<lease::Kind> query_kind(const net::Request& request) {
  std::string word = request.query_value("kind").value_or("camera");
  for (const auto& [kind, name] : lease::kKindNames)
    if (name == word) return kind;
  return bad_field("kind", "must be camera, stream or cluster");
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
  CO_TRY(kind, query_kind(request));
  filter.kind = kind;
  filter.after = SubjectId::trusted(page.after);
  filter.limit = page.ask();
  CO_TRY(found, co_await plane.leases.list(std::move(filter)));
  co_return net::Response::json(listed(
      found, page, [](const LeaseView& view) { return view.row.subject.str(); },
      [&](const LeaseView& view) { return write_seen(plane, view); }));
}

// The subject that the path names, if it is of this kind: ids of all kinds share one namespace.
template <lease::Kind kind>
boost::asio::awaitable<Result<LeaseView>> shown(Plane& plane, const net::Request& request, const Caller& caller) {
  CO_TRY(id, SubjectId::parse(request.param(lease::id_field(kind))));
  TenantId tenant = caller.tenant;
  CO_TRY(view, co_await plane.leases.show(std::move(id), std::move(tenant)));
  if (view.row.kind != kind) co_return no_such(lease::to_string(kind), lease::id_field(kind));
  co_return std::move(view);
}

template <lease::Kind kind>
Reply show_lease(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(view, co_await shown<kind>(plane, request, caller));
  CO_TRY(visible, may_see_lease(caller, view.row.owner));
  co_return net::Response::json(write_seen(plane, view));
}

template <lease::Kind kind>
Reply revoke_lease(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(seen, co_await shown<kind>(plane, request, caller));
  TenantId tenant = caller.tenant;
  CO_TRY(view, co_await plane.leases.revoke(std::move(seen.row.subject), std::move(tenant)));
  log::info("lease.revoked")
      .with(lease::id_field(kind), view.row.subject)
      .with("runner_id", view.row.owner.runner)
      .with("version", view.row.version.n)
      .with("by", caller.sub)
      .with("request_id", request.request_id);
  if (view.row.revoked) plane.announcer.lease(change_of("revoked", view.row, "operator"));
  co_return net::Response::json(write_lease(view));
}

template <lease::Kind kind>
void add_routes(net::Router& router, Plane& plane) {
  std::string base = fmt::format("/v1/leases/{}", lease::to_string(kind));
  auto add = [&](Method method, std::string_view path, Roles roles, GuardedHandler handler) {
    add_guarded(router, plane, method, base + std::string(path), roles, std::move(handler));
  };
  add(Method::post, "/acquire", kRunners, acquire_one<kind>);
  add(Method::post, "/renew", kRunners, renew_one<kind>);
  add(Method::post, "/release", kRunners, release_one<kind>);
  add(Method::post, "/acquire-batch", kRunners, ask_many<kind, Operation::acquire>);
  add(Method::post, "/renew-batch", kRunners, ask_many<kind, Operation::renew>);
  add(Method::post, "/release-batch", kRunners, ask_many<kind, Operation::release>);
  std::string one = fmt::format("/{{{}}}", lease::id_field(kind));
  add(Method::get, one, kEverybody, show_lease<kind>);
  add(Method::post, one + "/revoke", kAdmins, revoke_lease<kind>);
}

}  // namespace

void add_lease_routes(net::Router& router, Plane& plane) {
  add_guarded(router, plane, Method::get, "/v1/leases", kEverybody, list_leases);
  add_routes<lease::Kind::camera>(router, plane);
  add_routes<lease::Kind::stream>(router, plane);
  add_routes<lease::Kind::cluster>(router, plane);
}

}  // namespace weir::control_plane
