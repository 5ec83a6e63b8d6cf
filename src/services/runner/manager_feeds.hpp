// Feeds: what the manager learns about cameras: which there are and what is wanted of them, who has them, and of
// which a client wants a picture.
//
// It follows the bus's feeds of leases and cameras, and lists both periodically, because a feed may miss something. It
// keeps the list of cameras on disk, so that a runner restarted during an outage can say what it waits for.
// Loop thread only.
#pragma once

#include "manager_membership.hpp"

namespace weir::runner {

class Feeds {
 public:
  Feeds(Shell& shell, WorkerProcesses& workers, Membership& membership)
      : shell_(shell), workers_(workers), membership_(membership), due_(shell.io, shell.ports.clock) {}

  boost::asio::awaitable<void> list_cameras();
  boost::asio::awaitable<void> follow(std::string pattern);
  // The control plane has said which cameras there are.
  bool listed() const { return listed_; }

 private:
  void list_again();
  void remember(const std::vector<DesiredCamera>& cameras);
  boost::asio::awaitable<void> learn_holders();
  void hear(const DeliveredEvent& event);
  void hear_lease(std::string_view key, const json::object& said);
  boost::asio::awaitable<void> send_picture(CameraId camera, std::string request);

  Shell& shell_;
  WorkerProcesses& workers_;
  Membership& membership_;
  Alarm due_;                       // the next list of cameras
  bool listed_ = false;
  bool changed_meanwhile_ = false;  // the cameras, since they were last asked for
  Instant holders_due_{};           // not listed again before
  size_t remembered_ = 0;           // what was written to disk last
  int pictures_under_way_ = 0;
};

}  // namespace weir::runner
