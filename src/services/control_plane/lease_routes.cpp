#include "announcer.hpp"
#include "answers.hpp"
#include "lease_by_id.hpp"
#include "page.hpp"
#include "plane.hpp"
#include "request.hpp"

#include "weir/base/log.hpp"

#include <map>

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

// What the asker said of its side is kept for people to read; the lease is granted whether or not that succeeds.
boost::asio::awaitable<void> note_asker(Plane& plane, const SingleAsk& ask, const lease::Answer& answer) {
  if (ask.note == LeaseNote{}) co_return;
  LeaseWord word{.subject = answer.subject, .grant = answer.grant};
  word.shard = ask.note.shard;
  word.config_version = ask.note.config_version;
  word.zone_version = ask.note.zone_version;
  auto noted = co_await plane.leases.note(std::move(word), ask.batch.tenant);
  if (!noted) log::warn("lease.not_noted", noted.error().message).with("camera_uuid", answer.subject);
}

template <lease::Kind kind>
Reply acquire_one(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(single, co_await ask_one(plane, request, caller, Operation::acquire, kind));
  const lease::Answer& answer = single.answer;
  if (!answer.holds()) co_return refusal_error(answer, kind);
  co_await note_asker(plane, single.ask, answer);
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
  if (view.row.kind != lease::Kind::camera) return write_lease(view);
  json::object out = write_lease(view, plane.streams.delivered(view.row));
  std::string shard = plane.streams.shard_of(view.row);
  if (out.contains("shard_id") && !shard.empty()) out["shard_id"] = shard;
  out["stream"] = plane.streams.about(view.row, plane.clock.now());
  return out;
}

// Whoever acquires a lease may say with which configuration; for one who did not it is the present one.
boost::asio::awaitable<json::object> write_whole(Plane& plane, const LeaseView& view) {
  json::object out = write_seen(plane, view);
  if (view.row.kind != lease::Kind::camera || (out.contains("config_version") && out.contains("zone_version")))
    co_return out;
  auto camera = co_await plane.cameras.show_camera(view.row.subject, view.row.tenant);
  if (!camera) co_return out;
  if (!out.contains("config_version")) out["config_version"] = config_version(*camera);
  if (!out.contains("zone_version")) out["zone_version"] = zone_version(camera->config);
  co_return out;
}

Result<lease::Kind> query_kind(const net::Request& request) {
  std::string word = request.query_value("kind").value_or("camera");
  for (const auto& [kind, name] : lease::kKindNames)
    if (name == word) return kind;
  return bad_field("kind", "must be camera, stream or cluster");
}

// A page of the leases that are held, all of them complete.
Reply list_of_runner(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(page, read_page(request));
  CO_TRY(runner, path_id<RunnerId>(request));
  CO_TRY(own, speaks_for(caller, runner));
  LeaseFilter filter;
  filter.tenant = caller.tenant;
  filter.runner = runner;
  filter.boot = caller.boot;
  filter.only_held = true;
  filter.after = SubjectId::trusted(page.after);
  filter.limit = page.ask();
  CO_TRY(found, co_await plane.leases.list(std::move(filter)));
  std::map<SubjectId, json::object> whole;
  for (const LeaseView& view : found) whole.emplace(view.row.subject, co_await write_whole(plane, view));
  co_return net::Response::json(listed(
      found, page, [](const LeaseView& view) { return view.row.subject.str(); },
      [&](const LeaseView& view) { return std::move(whole.at(view.row.subject)); }));
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
  co_return net::Response::json(co_await write_whole(plane, view));
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

// ---- by the id of the tenure ----

struct Named {
  TenureId id;
  LeaseView view;
  bool lasts() const { return view.row.grant == id.grant && !view.row.released; }
};

// The lease that the path names, as it is now; its subject may have another tenure by now.
boost::asio::awaitable<Result<Named>> named(Plane& plane, const net::Request& request, const Caller& caller) {
  CO_TRY(id, read_lease_id(request.param("lease_id")));
  CO_TRY(view, co_await plane.leases.show(id.subject, caller.tenant));
  Named out{std::move(id), std::move(view)};
  co_return std::move(out);
}

// The owner in whose name the caller asks: the tenure's. Of a tenure that is over the store says so to anybody.
Result<lease::Owner> asking_owner(const Named& lease, const Caller& caller) {
  if (lease.view.row.grant != lease.id.grant) return lease::Owner{RunnerId::trusted(caller.sub), BootId()};
  TRY(own, speaks_for(caller, lease.view.row.owner.runner));
  return lease.view.row.owner;
}

boost::asio::awaitable<Result<Single>> ask_named(Plane& plane, net::Request& request, const Caller& caller,
                                                 Operation operation) {
  std::optional<Duration> ttl;
  if (operation == Operation::renew) {
    CO_TRY(wanted, read_renewal(request.body, ttl_bounds(plane)));
    ttl = wanted;
  }
  CO_TRY(lease, co_await named(plane, request, caller));
  CO_TRY(owner, asking_owner(lease, caller));
  SingleAsk ask{ask_by_id(operation, lease.id, lease.view.row.kind, std::move(owner)), lease.view.note};
  ask.batch.tenant = caller.tenant;
  ask.batch.ttl = ttl.value_or(lease.view.row.ttl);
  lease::Batch batch = ask.batch;
  CO_TRY(answers, co_await apply(plane, std::move(batch)));
  WEIR_ASSERT(answers.size() == 1);
  count(plane, operation, deeds_of(plane, ask.batch.kind, ask.batch.owner, answers, request, log::Level::info));
  Single single{std::move(ask), std::move(answers[0])};
  co_return std::move(single);
}

Reply renew_named(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(single, co_await ask_named(plane, request, caller, Operation::renew));
  if (!single.answer.holds()) co_return refusal_error(single.answer, single.ask.batch.kind);
  co_return net::Response::json(write_single(single.ask, single.answer));
}

Reply release_named(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(single, co_await ask_named(plane, request, caller, Operation::release));
  const lease::Answer& answer = single.answer;
  if (answer.outcome != Outcome::released) co_return refusal_error(answer, single.ask.batch.kind);
  co_return net::Response::json(json::object{{"lease_id", request.param("lease_id")},
                                             {lease::id_field(single.ask.batch.kind), answer.subject.str()},
                                             {"released", true},
                                             {"status", "released"},
                                             {"version", answer.version.n}});
}

// The owner lives and says how it fares; this renews nothing.
Reply beat_named(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(id, read_lease_id(request.param("lease_id")));
  CO_TRY(word, read_lease_word(request.body, id));
  CO_TRY(lease, co_await named(plane, request, caller));
  CO_TRY(owner, asking_owner(lease, caller));
  CO_TRY(view, co_await plane.leases.note(std::move(word), caller.tenant));
  lease.view = std::move(view);
  if (lease.lasts()) co_return net::Response::json(co_await write_whole(plane, lease.view));
  lease::Answer over{lease.id.subject, Outcome::lost, lease.view.row.version};
  // "Lost is only a typed answer" with a version above the holder's own.
  if (over.version <= lease.id.grant) over.outcome = Outcome::unknown;
  co_return refusal_error(over, lease.view.row.kind);
}

Reply validate_named(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(lease, co_await named(plane, request, caller));
  const LeaseView& view = lease.view;
  json::object out{{"lease_id", request.param("lease_id")},
                   {lease::id_field(view.row.kind), view.row.subject.str()},
                   {"valid", lease.lasts() && !view.expired},
                   {"status", "expired"}};
  if (view.row.grant == lease.id.grant) {
    CO_TRY(visible, may_see_lease(caller, view.row.owner));
    out["status"] = write_seen(plane, view).at("status");
    out["expires_at"] = to_iso(view.expires_at);
  }
  co_return net::Response::json(out);
}

void add_routes_by_id(net::Router& router, Plane& plane) {
  constexpr std::string_view one = "/v1/leases/{lease_id}";
  auto add = [&](Method method, std::string_view path, Roles roles, GuardedHandler handler) {
    add_guarded(router, plane, method, path, roles, std::move(handler));
  };
  add(Method::post, "/v1/leases/acquire", kRunners, acquire_one<lease::Kind::camera>);
  add(Method::put, fmt::format("{}/renew", one), kRunners, renew_named);
  add(Method::del, fmt::format("{}/release", one), kRunners, release_named);
  add(Method::post, fmt::format("{}/heartbeat", one), kRunners, beat_named);
  add(Method::get, fmt::format("{}/validate", one), kEverybody, validate_named);
  add(Method::get, "/v1/leases/runner/{runner_id}", kEverybody, list_of_runner);
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
  add_routes_by_id(router, plane);
  add_routes<lease::Kind::camera>(router, plane);
  add_routes<lease::Kind::stream>(router, plane);
  add_routes<lease::Kind::cluster>(router, plane);
}

}  // namespace weir::control_plane
