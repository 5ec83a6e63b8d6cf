// Courier: brings what workers see to Redis, where each detection is kept and published in one step.
//
// Many are under way at once, so that none waits for another's answer; they are sent in the order in which they came.
// What was not taken is sent again, in order, as soon as the pen is ready. What waits is bounded: the oldest is told to
// this process's own listeners, left out, and counted. While Redis is away each detection is told to them at once. Loop
// thread only.
#pragma once

#include "crew.hpp"
#include "pen.hpp"

namespace weir::cluster {

class Courier {
 public:
  // `slave_of` names the slave that a worker's detections are routed to; "" while none is announced.
  Courier(Crew& crew, Pen& pen, net::Metrics& metrics, std::function<std::string(const std::string&)> slave_of,
          std::function<void(const DetectionRouted&)> tell_here);

  void take(const std::string& worker, const ImageDetection& detection);
  // Sends what may be sent: to be called whenever that may have changed.
  void go_on();
  size_t waiting() const { return waiting_.size(); }

 private:
  boost::asio::awaitable<void> bring(std::uint64_t number, std::string channel, std::string text);
  void leave_out_oldest();
  void send();
  void tell_here_what_waits();

  Crew& crew_;
  Pen& pen_;
  net::Metrics& metrics_;
  const std::function<std::string(const std::string&)> slave_of_;
  const std::function<void(const DetectionRouted&)> tell_here_;
  std::map<std::uint64_t, Announcement> waiting_;  // those under way too
  std::uint64_t newest_ = 0;
  std::uint64_t next_ = 1;  // the first that is not under way
  std::uint64_t told_ = 1;  // every detection before it was taken by Redis, or told to this process's own listeners
  size_t under_way_ = 0;
  bool sending_ = false;
  bool again_ = false;  // something was not taken: nothing more is sent until nothing is under way
};

}  // namespace weir::cluster
