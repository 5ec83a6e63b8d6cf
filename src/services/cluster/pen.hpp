// Pen: with which the master of a cluster writes and publishes, under its epoch.
//
// The epoch is the version of the cluster's lease. Redis takes writes only under the epoch that is stored there; the pen
// stores its own (it "opens" it) after a renewal that was asked for since it became the master's, or since a write was
// refused. So a master that was replaced, or paused, opens nothing, whatever became of Redis meanwhile. Where a later
// epoch is stored, the pen writes nothing and asks the control plane, whose answer decides. Each word asks the right
// (`may_act`) just before it is sent. While Redis is away nothing is tried but a look at whether it is back.
// Loop thread only.
#pragma once

#include "lease_keeper.hpp"

#include "weir/base/log_limit.hpp"
#include "weir/cluster/announcement.hpp"
#include "weir/net/metrics.hpp"
#include "weir/ports/coordination.hpp"

namespace weir::cluster {

class Pen {
 public:
  // `changed` is called when it became ready, or ceased to be.
  Pen(boost::asio::io_context& io, Coordination& on, LeaseKeeper& lease, Clock& clock, net::Metrics& metrics,
      std::function<bool()> may_act, std::function<void()> changed);

  // Whether Redis takes this master's writes: its epoch is stored there, Redis answers, and the lease is valid.
  bool ready() const { return open_ && !away_ && epoch_ == lease_.version().n && may_act_(); }
  // Redis did not answer, and nobody knows what of the last words it took.
  bool away() const { return away_; }
  bool may_act() const { return may_act_(); }
  std::int64_t epoch() const { return epoch_; }
  // Rises whenever everything has to be written anew.
  std::uint64_t opened() const { return opened_; }

  Async<Nothing> write(std::vector<TableChange> changes);
  Async<Nothing> publish(std::string channel, Saying what);
  // A text that is `stamped`; the id under which it is kept.
  Async<std::string> deliver(std::string channel, std::string text);
  // Its text with the present epoch and time.
  std::string stamped(Announcement& announcement) const;

  // Opens the epoch, and again whenever that is needed, until `stop`.
  boost::asio::awaitable<void> keep_open();
  void look() { alarm_.ring(); }  // the lease has changed
  void stop() {
    stopping_ = true;
    alarm_.ring();
  }

 private:
  boost::asio::awaitable<void> open();
  boost::asio::awaitable<void> see_whether_it_is_back();
  void close();
  void heard(const Error* error, std::int64_t under);

  Coordination& on_;
  LeaseKeeper& lease_;
  Clock& clock_;
  net::Metrics& metrics_;
  const std::function<bool()> may_act_;
  const std::function<void()> changed_;
  Alarm alarm_;
  LogLimit refusals_{10s};
  std::int64_t epoch_ = 0;
  std::uint64_t opened_ = 0;
  std::uint64_t after_ = 0;  // the epoch may be stored only after a renewal whose question has a higher number
  Instant looked_{};
  bool open_ = false, away_ = false, stopping_ = false;
};

}  // namespace weir::cluster
