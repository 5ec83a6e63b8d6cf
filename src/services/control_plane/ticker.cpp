#include "weir/base/log.hpp"
#include "weir/control_plane/plane.hpp"
#include "weir/lease/lease_time.hpp"

#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/this_coro.hpp>

namespace weir::control_plane {

namespace asio = boost::asio;

namespace {

// What the last tick told about the store; speaks at the edges only.
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

}  // namespace

asio::awaitable<void> ControlPlane::ticker() {
  co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
  co_await asio::this_coro::throw_if_cancelled(false);
  StoreWatch watch(plane_->instruments);
  for (;;) {
    Result<TickReport> report = co_await plane_->leases.tick();
    if ((co_await asio::this_coro::cancellation_state).cancelled() != asio::cancellation_type::none) co_return;
    watch.note(report);
    co_await plane_->clock.wait(lease::kTickEvery);
    if ((co_await asio::this_coro::cancellation_state).cancelled() != asio::cancellation_type::none) co_return;
  }
}

}  // namespace weir::control_plane
