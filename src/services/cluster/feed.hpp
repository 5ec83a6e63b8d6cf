// Feed: one process's listeners, and how they hear of the whole cluster.
//
// While anybody listens, the feed listens to the cluster's events and to the channels of all slaves that detections are
// routed to; otherwise it costs nothing. Each listener has a place: the id of the last detection that it was told. When
// listening begins, was interrupted, or new routes were announced, each listener is held and reads what is kept after
// its place, as fast as it has room; then it goes on with what was heard meanwhile. What carries a lower epoch than was
// seen is dropped. Such a detection is told only if Redis, which compares epochs too, has kept it. Loop thread only.
#pragma once

#include "crew.hpp"

#include "weir/cluster/announcement.hpp"
#include "weir/cluster/front.hpp"
#include "weir/net/metrics.hpp"
#include "weir/ports/coordination.hpp"

namespace weir::cluster {

class Feed {
 public:
  // `audience` is called when somebody begins or ends listening.
  Feed(boost::asio::io_context& io, Coordination& on, Clock& clock, EpochJudge& judge, net::Metrics& metrics,
       std::function<void()> audience);
  ~Feed();
  Feed(const Feed&) = delete;

  std::unique_ptr<Hearing> listen(std::string after, std::function<void(const Notice&)> each,
                                  std::function<bool()> has_room);
  std::int64_t listeners() const;
  // To everybody who listens at this process, at once.
  void tell(const Notice& notice);
  // Nothing is told any more; returns when nothing of it runs.
  boost::asio::awaitable<void> end();

 private:
  struct Listener;
  struct Parts;
  class Open;
  std::shared_ptr<Parts> parts_;
};

}  // namespace weir::cluster
