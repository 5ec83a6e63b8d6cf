// Ear: who listens to detections, at a process of a cluster or at Redis, and notes when each came.
//
// Detections are told apart by the number in their licence plate, "seen-000000000007", which is searched for as text: the
// generator shares its cores with what it measures. A thread of its own; the functions below may be called from any
// thread.
#pragma once

#include "load.hpp"

#include <atomic>
#include <thread>

namespace weir::bench {

class Ear {
 public:
  // `where` is "redis:PORT", for all channels worker:slave:…, or the URL of a WebSocket, opened with this token.
  Ear(const std::string& where, const std::string& token, size_t detections);
  ~Ear();
  Ear(const Ear&) = delete;

  // Whether it listens; it says why not on standard error.
  bool listens() const { return listens_; }
  size_t count() const { return count_; }  // of different ones
  size_t repeated() const { return repeated_; }
  bool got(size_t n) const { return arrived_[n] != Moment{}; }
  Moment arrived(size_t n) const { return arrived_[n]; }

 private:
  void hear_redis(int port);
  void hear_socket(const std::string& url, const std::string& token);
  // What is left at the end may be the beginning of a mark.
  void note(std::string& text);

  std::vector<Moment> arrived_;
  std::atomic<size_t> count_{0}, repeated_{0};
  std::atomic<bool> listens_{false}, failed_{false}, over_{false};
  std::thread thread_;
};

}  // namespace weir::bench
