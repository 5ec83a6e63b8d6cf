// Ears: those who listen, and what waits for each of them between the client's thread and the loop.
//
// The client's thread hands over what it hears; the loop calls the listeners. What waits for one listener is bounded:
// beyond that everything that waits is dropped, and the listener is told that its listening begins anew. Private to
// this folder. `listen` belongs to the loop's thread, the rest to the client's.
#pragma once

#include "weir/redis/coordination.hpp"

#include <deque>
#include <mutex>
#include <set>

namespace weir::redis {

class Ears {
 public:
  Ears(boost::asio::any_io_executor loop, size_t heard_max) : loop_(std::move(loop)), heard_max_(heard_max) {}

  std::unique_ptr<Listening> listen(std::vector<std::string> channels, std::function<void(const Heard&)> each);
  // The channels that anybody listens on.
  std::set<std::string> channels() const;
  void heard(const std::string& channel, const std::string& text);
  // Tells those that their listening begins whose channels are all among `subscribed`, once.
  void begin(const std::set<std::string>& subscribed);
  // The connection is gone: everybody's listening has to begin anew.
  void interrupt();

 private:
  struct Ear;
  class Open;
  std::vector<std::shared_ptr<Ear>> open_ones() const;
  void hand_over(const std::shared_ptr<Ear>& ear, Heard heard);

  const boost::asio::any_io_executor loop_;
  const size_t heard_max_;
  mutable std::mutex mutex_;
  mutable std::vector<std::weak_ptr<Ear>> ears_;
};

}  // namespace weir::redis
