// What a control plane does unasked: moves lease time on, announces expired leases, deletes old events.
#include "plane.hpp"

#include "weir/base/log.hpp"
#include "weir/lease/lease_time.hpp"

#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/this_coro.hpp>

#include <map>

namespace weir::control_plane {

namespace asio = boost::asio;

namespace {

// What the last tick told about the store; logs only when the store goes away or comes back.
class StoreWatch {
 public:
  explicit StoreWatch(Instruments& instruments) : instruments_(instruments) {}

  void note(const Result<TickReport>& report) {
    bool up = static_cast<bool>(report);
    if (up != up_) {
      if (up) {
        log::info("store.reachable", "the store answers again");
      } else {
        log::warn("store.unreachable", report.error().message).with("error_code", report.error().reason);
      }
      up_ = up;
    }
    instruments_.store_up(up);
    if (!up) return;
    instruments_.epoch(report->epoch);
    if (report->hold_opened)
      log::warn("store.hold", "the store was away: expired leases of others cannot be taken for a while");
    if (report->epoch_opened)
      log::warn("store.epoch", "the store may have lost commits: a new epoch was opened").with("epoch", report->epoch);
  }

 private:
  Instruments& instruments_;
  bool up_ = true;
};

asio::awaitable<bool> cancelled() {
  co_return (co_await asio::this_coro::cancellation_state).cancelled() != asio::cancellation_type::none;
}

asio::awaitable<void> move_lease_time(Plane& plane) {
  co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
  co_await asio::this_coro::throw_if_cancelled(false);
  StoreWatch watch(plane.instruments);
  for (;;) {
    Result<TickReport> report = co_await plane.leases.tick();
    if (co_await cancelled()) co_return;
    watch.note(report);
    co_await plane.clock.wait(lease::kTickEvery);
    if (co_await cancelled()) co_return;
  }
}

// Announces expired leases to the runners that could take the cameras. An announcement that is lost after the store
// marked it as made, because this process ends or the queue is full, is made up for by the runners' periodic listing.
asio::awaitable<void> announce_expiries(Plane& plane) {
  constexpr int kStep = 500;
  co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
  co_await asio::this_coro::throw_if_cancelled(false);
  std::map<RunnerId, int> unrenewed;
  while (!co_await cancelled()) {
    auto expired = co_await plane.leases.take_expired(kStep);
    if (expired)
      for (const lease::LeaseRow& row : *expired) {
        plane.announcer.lease(change_of("expired", row));
        ++unrenewed[row.owner.runner];
      }
    if (expired && expired->size() == kStep) continue;
    for (const auto& [runner, leases] : std::exchange(unrenewed, {}))
      log::warn("lease.expired", "a runner did not renew its leases in time; others may take the cameras")
          .with("runner_id", runner)
          .with("leases", leases);
    if (co_await cancelled()) co_return;
    co_await plane.clock.wait(kExpiryEvery);
  }
}

// Deletes old events in small steps, so that no lease request waits long behind one; while there is more to do,
// quickly enough to keep up with the events that can come in.
asio::awaitable<void> forget_events(Plane& plane) {
  constexpr int kStep = 2000;
  constexpr Duration kSoon = 200ms, kLater = 5s;
  co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
  co_await asio::this_coro::throw_if_cancelled(false);
  while (!co_await cancelled()) {
    auto forgotten = co_await plane.events.trim(plane.settings.retention, kStep);
    if (forgotten) plane.instruments.events_forgotten(*forgotten);
    if (co_await cancelled()) co_return;
    co_await plane.clock.wait(forgotten && *forgotten == kStep ? kSoon : kLater);
  }
}

asio::awaitable<void> listen_for_heartbeats(Plane& plane) {
  constexpr Duration kEvery = 500ms;
  co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
  co_await asio::this_coro::throw_if_cancelled(false);
  while (!co_await cancelled()) {
    for (const RunnerWatch::Silence& silence : plane.heartbeats.newly_silent(plane.clock.now())) {
      log::warn("runner.silent", "a runner's heartbeats stopped: it ended, hangs, or cannot reach the event bus")
          .with("runner_id", silence.runner)
          .with("last_heartbeat", silence.last_ts);
      plane.announcer.silent(silence);
    }
    plane.instruments.runners_silent(plane.heartbeats.silent());
    co_await plane.clock.wait(kEvery);
  }
}

}  // namespace

asio::awaitable<void> ControlPlane::ticker() {
  using namespace asio::experimental::awaitable_operators;
  co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
  co_await (move_lease_time(*plane_) && announce_expiries(*plane_) && forget_events(*plane_) &&
            plane_->announcer.run() && plane_->feed.run() && listen_for_heartbeats(*plane_));
}

}  // namespace weir::control_plane
