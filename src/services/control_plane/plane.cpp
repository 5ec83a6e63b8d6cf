#include "plane.hpp"

#include "answers.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace weir::control_plane {

namespace asio = boost::asio;

namespace {
constexpr size_t kOpenBodyBytesMax = 16 << 10;  // anybody may send one, and it is read before anything is known of them
}  // namespace

asio::awaitable<Status> Readiness::ask(Duration limit) {
  using namespace asio::experimental::awaitable_operators;
  std::shared_ptr<State> state = state_;
  auto executor = co_await asio::this_coro::executor;
  if (!state->answered) state->answered.emplace(executor, asio::steady_timer::time_point::max());
  std::uint64_t before = state->answers;
  if (!state->asking) {
    state->asking = true;
    auto question = [](std::shared_ptr<State> to) -> asio::awaitable<void> {
      Result<Nothing> answer = co_await to->store.ping();
      to->last = std::move(answer);
    };
    auto ended = [state](std::exception_ptr failure) {
      if (failure) state->last = Error{Errc::unavailable, "store_unavailable", "the store does not answer"};
      state->asking = false;
      ++state->answers;
      state->answered->cancel();
    };
    asio::co_spawn(executor, question(state), std::move(ended));
  }
  if (state->answers == before)
    co_await (state->answered->async_wait(asio::as_tuple(asio::use_awaitable)) || clock_.wait(limit));
  if (state->answers == before)
    co_return Error{Errc::unavailable, "store_unavailable",
                    fmt::format("the store did not answer within {} s", seconds(limit))};
  co_return state->last;
}

const event::Place* CameraPlaces::find(const CameraId& camera, Instant now) const {
  auto at = known_.find(camera);
  return at == known_.end() || now - at->second.at > kBelieved ? nullptr : &at->second.place;
}

const event::Place* CameraPlaces::keep(event::Place place, Instant now) {
  if (known_.size() >= kMax) known_.clear();
  CameraId camera = place.camera;
  return &known_.insert_or_assign(std::move(camera), Known{std::move(place), now}).first->second.place;
}

Plane::Plane(LeaseStore& lease_store, Catalog& catalog, EventLog& event_log, Keys& key_store, Pictures& picture_store,
             ModelDisk& disk, Clock& time, net::TokenKey key, net::Metrics& registry, ControlPlaneSettings chosen)
    : leases(lease_store, registry, time),
      sites(catalog, registry, time),
      cameras(catalog, registry, time),
      runners(catalog, registry, time),
      published(catalog, registry, time),
      cluster_models(catalog, registry, time),
      displays(catalog, registry, time),
      events(event_log, registry, time),
      keys(key_store, registry, time),
      pictures(picture_store),
      model_disk(disk),
      clock(time),
      metrics(registry),
      settings(std::move(chosen)),
      gate(std::move(key), time),
      logins(keys, time),
      instruments(registry),
      readiness(catalog, registry, time),
      feed(events, time, instruments, settings.event_window_bytes),
      announcer(events, feed, instruments, time) {
  feed.watch(streams);
  feed.watch(heartbeats);
}

namespace {
// Who asks, by a token or by an API key.
asio::awaitable<Result<Caller>> admitted(Plane& plane, const net::Request& request, Roles roles) {
  auto bearer = credential_of(request.header("authorization"), "Bearer");
  if (!bearer || !bearer->starts_with(kKeyPrefix)) co_return plane.gate.admit(request, roles);
  Secret key{std::string(*bearer)};
  CO_TRY(caller, co_await plane.logins.log_in(std::move(key)));
  if (!roles.has(caller.role)) co_return role_forbidden();
  co_return std::move(caller);
}
}  // namespace

void add_guarded(net::Router& router, Plane& plane, net::Method method, std::string_view pattern, Roles roles,
                 GuardedHandler handler, std::optional<net::StreamedBody> body) {
  using Answer = asio::awaitable<net::Response>;
  auto guarded = [&plane, roles, handler = std::move(handler)](net::Request& request) -> Answer {
    Result<Caller> caller = co_await admitted(plane, request, roles);
    Result<net::Response> reply = Error{};
    if (caller) {
      reply = co_await handler(plane, request, *caller);
    } else {
      reply = std::move(caller).error();
    }
    if (reply) co_return *std::move(reply);
    plane.gate.report(request, reply.error());
    co_return failed(reply.error());
  };
  router.add(method, pattern, std::move(guarded), std::move(body));
}

void add_open(net::Router& router, Plane& plane, net::Method method, std::string_view pattern, OpenHandler handler) {
  auto open = [&plane, handler = std::move(handler)](net::Request& request) -> asio::awaitable<net::Response> {
    Result<net::Response> reply = Error{Errc::too_large, "too_large", "the body is larger than this route accepts"};
    if (request.body.size() <= kOpenBodyBytesMax) reply = co_await handler(plane, request);
    if (reply) co_return *std::move(reply);
    plane.gate.report(request, reply.error());
    co_return failed(reply.error());
  };
  router.add(method, pattern, std::move(open));
}

}  // namespace weir::control_plane
