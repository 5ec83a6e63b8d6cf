// Load: many Wires, one epoll, one thread; what was asked, when it was due, and how long it took.
//
// A latency counts from the moment a request was due, not from when it was sent: a server that falls behind cannot
// hide it by slowing the client down. One thread.
#pragma once

#include "wire.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

namespace weir::bench {

using Moment = std::chrono::steady_clock::time_point;
using Span = std::chrono::nanoseconds;
inline Moment moment() { return std::chrono::steady_clock::now(); }

class Latencies {
 public:
  void add(Span took) { micros_.push_back(static_cast<std::uint32_t>(std::max<std::int64_t>(0, took.count() / 1000))); }
  size_t count() const { return micros_.size(); }
  // {"count":…,"p50_ms":…,"p90_ms":…,"p95_ms":…,"p99_ms":…,"max_ms":…}
  std::string json();

 private:
  std::vector<std::uint32_t> micros_;
};

class Load {
 public:
  using Answered = std::function<void(size_t wire, const Answer&)>;
  explicit Load(Answered answered);
  ~Load();
  Load(const Load&) = delete;

  // The new connection's number.
  size_t connect(std::uint16_t port);
  Wire& wire(size_t n) { return *wires_[n]; }
  size_t size() const { return wires_.size(); }
  void send(size_t wire, std::string_view request);
  int waiting() const { return waiting_; }
  // Waits for answers until `until` and hands each to `answered`; returns after the first ones.
  void turn(Moment until);

 private:
  const Answered answered_;
  int epoll_ = -1;
  int waiting_ = 0;
  std::vector<std::unique_ptr<Wire>> wires_;
};

}  // namespace weir::bench
