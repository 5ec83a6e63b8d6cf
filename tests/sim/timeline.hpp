// Timeline: everything that is going to happen in a simulated world, in one queue, in order of true time; the trace of
// what has happened, and its hash. One thread.
#pragma once

#include "weir/base/time.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <string>
#include <utility>
#include <vector>

namespace weir::sim {

using TrueTime = std::int64_t;  // microseconds since the world began; no simulated part can read it

inline constexpr TrueTime kSecond = 1'000'000;
inline constexpr TrueTime kForever = INT64_MAX / 4;

// A process that can be stopped: what reaches it meanwhile waits, as in a socket's buffer.
struct Process {
  bool alive = true;
  bool paused = false;
  std::vector<std::function<void()>> waiting;
};

// The clocks of one host, as fast as its quartz and counting from its own beginning.
struct HostClock {
  double rate = 1.0;
  Duration offset{};
};

class Timeline {
 public:
  explicit Timeline(bool traced) : traced_(traced) {}
  Timeline(const Timeline&) = delete;

  TrueTime now() const { return now_; }
  std::uint64_t events() const { return events_; }
  std::uint64_t hash() const { return hash_; }

  void at(TrueTime when, std::function<void()> what) {
    queue_.push({std::max(when, now_), ++sequence_, std::move(what)});
  }
  void in(Duration delay, std::function<void()> what) { at(now_ + delay.count(), std::move(what)); }
  // Lets the next thing happen; false where nothing is left.
  bool go_on() {
    if (queue_.empty()) return false;
    Scheduled next = std::move(const_cast<Scheduled&>(queue_.top()));
    queue_.pop();
    now_ = next.when;
    ++events_;
    next.what();
    return true;
  }

  Instant local(const HostClock& host) const { return local(host, now_); }
  static Instant local(const HostClock& host, TrueTime when) {
    return Instant(host.offset + Duration(static_cast<Duration::rep>(static_cast<double>(when) * host.rate)));
  }
  static TrueTime true_time(const HostClock& host, Instant when) {
    return static_cast<TrueTime>(static_cast<double>((when.time_since_epoch() - host.offset).count()) / host.rate);
  }

  void note(std::uint64_t what) { hash_ = (hash_ ^ (what + static_cast<std::uint64_t>(now_))) * 0x100000001B3ull; }
  bool traced() const { return traced_; }
  template <class... T>
  void trace(fmt::format_string<T...> text, T&&... values) {
    if (!traced_) return;
    std::string line = fmt::format(text, std::forward<T>(values)...);
    fmt::print("{:10.6f} {}\n", static_cast<double>(now_) / 1e6, line);
  }

  // Runs `what` in the process, or when it goes on again.
  static void deliver(const std::shared_ptr<Process>& to, std::function<void()> what) {
    if (!to->alive) return;
    if (to->paused) to->waiting.push_back(std::move(what));
    else what();
  }
  void pause(const std::shared_ptr<Process>& process, Duration how_long);
  // Work that waits for a process that never went on keeps that process alive: the circle is cut here.
  void forget_paused() {
    for (auto& each : paused_)
      if (auto process = each.lock()) process->waiting.clear();
  }

 private:
  struct Scheduled {
    TrueTime when;
    std::uint64_t order;
    std::function<void()> what;
    bool operator<(const Scheduled& other) const {
      return when != other.when ? when > other.when : order > other.order;
    }
  };

  const bool traced_;
  TrueTime now_ = 0;
  std::uint64_t sequence_ = 0, hash_ = 0xCBF29CE484222325ull, events_ = 0;
  std::priority_queue<Scheduled> queue_;
  std::vector<std::weak_ptr<Process>> paused_;
};

inline void Timeline::pause(const std::shared_ptr<Process>& process, Duration how_long) {
  if (!process || process->paused || !process->alive) return;
  process->paused = true;
  paused_.push_back(process);
  in(how_long, [process] {
    process->paused = false;
    auto waiting = std::exchange(process->waiting, {});
    for (auto& each : waiting)
      if (process->alive) each();
  });
}

}  // namespace weir::sim
