// LeaseKeeper: keeps one lease, that of a cluster, for as long as it is wanted: the shell around lease::step, which
// says what to ask and what an answer means. Loop thread only.
#pragma once

#include "weir/base/alarm.hpp"
#include "weir/base/clock.hpp"
#include "weir/lease/holder.hpp"
#include "weir/ports/cluster_plane.hpp"

#include <functional>

namespace weir::cluster {

class LeaseKeeper {
 public:
  // `changed` is called after the right has changed: granted, renewed under a version, or lost.
  LeaseKeeper(boost::asio::io_context& io, ClusterPlane& plane, Clock& clock, lease::Owner owner, lease::Home home,
              lease::HolderPolicy policy, ClusterId cluster, std::function<void()> changed);

  // Asks until `close` was called and the lease is given back, or `within` has passed since.
  boost::asio::awaitable<void> run(Duration within);
  void close();
  // Asks for a higher version: a camera of the cluster has one that is not below the lease's present version.
  void rotate() { feed(lease::FreshVersionNeeded{}); }
  // Asks for a renewal now: somebody doubts that the lease is still this process's.
  void look();

  // Whether this process may act for the cluster now.
  bool valid() const { return state_.phase == lease::Phase::holding && clock_.now() < state_.valid_until; }
  // Under which it may publish now; 0 while a later version is on its way.
  lease::Version version() const { return valid() && !state_.rotate ? state_.version : lease::Version{}; }
  Instant valid_until() const { return state_.valid_until; }
  bool answered() const { return answered_; }
  // The highest version that the control plane has named, this process's own or another's.
  lease::Version highest() const { return highest_; }
  // The number of the last question. If `renewed` is above it later, the store has answered a renewal asked after now.
  std::uint64_t asked() const { return state_.questions; }
  std::uint64_t renewed() const { return renewed_; }  // the last question that was answered with a renewal

 private:
  void feed(const lease::HolderEvent& event);
  boost::asio::awaitable<void> ask(lease::Question question);

  boost::asio::io_context& io_;
  ClusterPlane& plane_;
  Clock& clock_;
  const lease::Owner owner_;
  const lease::Home home_;
  const lease::HolderPolicy policy_;
  const std::function<void()> changed_;
  lease::HolderState state_;
  Alarm alarm_;
  lease::Version highest_{};
  std::uint64_t renewed_ = 0;
  int asking_ = 0;
  bool answered_ = false, closed_ = false;
};

}  // namespace weir::cluster
