#include "manager_spools.hpp"

#include "weir/base/elapsed.hpp"
#include "weir/base/log.hpp"

namespace weir::runner {

namespace asio = boost::asio;

namespace {
constexpr Duration kEvery = 15s;
}  // namespace

asio::awaitable<void> LeftSpools::keep(std::function<bool()> listed) {
  while (!shell_.over()) {
    if (listed()) co_await drop_left();
    co_await wait_elapsed(shell_.ports.clock, listed() ? kEvery : Duration(1s), [this] { return shell_.over(); });
  }
}

// The tenure under which this runner holds the camera; none where it does not.
lease::Tenure LeftSpools::tenure_of(const CameraId& camera) const {
  const lease::HolderState* holder = shell_.brain.holder(camera);
  bool held = holder != nullptr && holder->phase == lease::Phase::holding;
  return held ? lease::Tenure{shell_.owner.boot, holder->grant} : lease::Tenure{};
}

// The spool of a dead worker waits for its tenure to go on. Where another owner came in between, nobody will publish
// it, and the camera may never come back to this host ("Unknown is not lost" in docs/lease-protocol.md).
asio::awaitable<void> LeftSpools::drop_left() {
  std::vector<SpoolContent> found = co_await shell_.ports.disk.spools();
  std::erase_if(found, [&](const SpoolContent& each) { return each.tenure == tenure_of(each.camera); });
  if (found.empty()) co_return;
  auto rows = co_await shell_.ports.plane.leases();
  if (!rows) co_return;
  std::map<CameraId, lease::LeaseRow> row_of;
  for (lease::LeaseRow& row : *rows) row_of.emplace(row.subject, std::move(row));
  for (const SpoolContent& left : found) {
    auto row = row_of.find(left.camera);  // unknown is not lost
    if (shell_.over() || row == row_of.end() || !lease::is_over(left.tenure, row->second, shell_.owner.boot)) continue;
    bool enabled_again = !row->second.assignable && tenure_of(left.camera) != lease::Tenure{};
    if (enabled_again) continue;
    std::uint64_t events = co_await shell_.ports.disk.drop(left);
    if (events == 0) continue;  // a worker still writes it, and will hear of the loss itself
    shell_.metrics.counter("weir_events_dropped_total", "Events that were given up, by the reason", {{"reason", "lost"}})
        .add(static_cast<double>(events));
    log::warn("spool.dropped", row->second.assignable
                                   ? "another owner has had this camera since: its events are dropped"
                                   : "this camera is disabled or deleted: its events are dropped")
        .with("camera_uuid", left.camera)
        .with("events", events);
  }
}

}  // namespace weir::runner
