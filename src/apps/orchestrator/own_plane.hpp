// OwnPlane: the orchestrator's own store in the place of a control plane, for one orchestrator on one host.
//
// Leases, records and events lie in state_dir/orchestrator.db; its lock keeps a second orchestrator out of this folder.
// Two orchestrators on two hosts need a control plane: their stores would know nothing of each other. Orders come from
// the orchestrator's own HTTP routes, by `order`; they wait until `follow` hands them on, at most kOrdersMax, and one
// that does not fit is refused. `run` is what a control plane does unasked. Loop thread only; it must outlive its
// running calls.
#pragma once

#include "weir/base/clock.hpp"
#include "weir/ports/stream_plane.hpp"
#include "weir/sqlite/store.hpp"

#include <boost/asio/steady_timer.hpp>

#include <deque>
#include <memory>
#include <optional>
#include <string>

namespace weir::apps {

class OwnPlane final : public StreamPlane {
 public:
  static constexpr size_t kOrdersMax = 1000;

  // Makes the folder where it is missing. `ttl_max` bounds the leases that are asked for.
  static Result<std::unique_ptr<OwnPlane>> open(const std::string& state_dir, RunnerId orchestrator, Clock& clock,
                                                Duration ttl_max = 60s);

  Async<std::vector<lease::Answer>> apply(lease::Batch batch) override { return store_->apply(std::move(batch)); }
  Async<StreamRecord> record(SubjectId id) override;
  Async<std::vector<StreamRecord>> records() override;
  Async<Nothing> tell(StreamTold told) override { return streams().tell_stream(std::move(told)); }
  Async<Nothing> publish(event::Event event) override;
  // Never ends by itself.
  boost::asio::awaitable<Status> follow(std::function<void(const StreamOrder&)> each) override;

  // What the orchestrator's routes need.
  Streams& streams() { return store_->catalog(); }
  EventLog& events() { return *store_; }
  Status order(StreamOrder order);

  // Watches whether the store answers, and forgets old events, until it is cancelled.
  boost::asio::awaitable<void> run();

 private:
  OwnPlane(std::unique_ptr<sqlite::SqliteStore> store, RunnerId orchestrator, Clock& clock)
      : store_(std::move(store)), orchestrator_(std::move(orchestrator)), clock_(clock) {}
  boost::asio::awaitable<void> watch_store();
  boost::asio::awaitable<void> forget_events();

  // Constant after construction.
  const std::unique_ptr<sqlite::SqliteStore> store_;
  const RunnerId orchestrator_;
  Clock& clock_;
  // Loop thread only.
  std::deque<StreamOrder> orders_;
  std::optional<boost::asio::steady_timer> ordered_;  // never expires; cancelled by each order
};

}  // namespace weir::apps
