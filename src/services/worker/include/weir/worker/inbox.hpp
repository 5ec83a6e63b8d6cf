// Inbox: what other threads hand to a publisher, in the order of their calls, until its thread takes it.
//
// Events are bounded; status changes are few and matter most, so they find room where a detection no longer does. The
// other way the publisher shows its counters. Once it is closed, nothing is taken any more. Any thread.
#pragma once

#include "weir/base/time.hpp"
#include "weir/event/event.hpp"
#include "weir/worker/publisher_counters.hpp"

#include <deque>
#include <functional>
#include <mutex>
#include <utility>
#include <variant>

namespace weir::worker {

class Inbox {
 public:
  using Action = std::function<void()>;
  struct Said {
    CameraId camera;
    event::Event event;
    Instant decoded;
  };
  using Entries = std::deque<std::variant<Said, Action>>;
  enum class Put { refused, waits, first };  // first: nothing waited, so the publisher must be woken

  explicit Inbox(size_t events_max) : events_max_(events_max) {}

  Put put(Said said) {
    std::lock_guard lock(mutex_);
    size_t most = events_max_ * (said.event.kind == event::Kind::status ? 2 : 1);
    if (closed_ || events_ >= most) {
      ++(closed_ ? late_ : overflowed_);
      return Put::refused;
    }
    ++events_;
    return keep(std::move(said));
  }
  Put put(Action action) {
    std::lock_guard lock(mutex_);
    return closed_ ? Put::refused : keep(std::move(action));
  }
  Entries take(bool close = false) {
    std::lock_guard lock(mutex_);
    closed_ |= close;
    events_ = 0;
    return std::exchange(entries_, {});
  }
  void show(const PublisherCounters& counters) {
    std::lock_guard lock(mutex_);
    shown_ = counters;
  }
  // As they were last shown, and what became of the events since.
  PublisherCounters counters() const {
    std::lock_guard lock(mutex_);
    PublisherCounters counters = shown_;
    counters.drop(Drop::inbox_full, overflowed_);
    counters.drop(Drop::stopped, late_);
    counters.queued += events_;
    return counters;
  }

 private:
  template <class Entry>
  Put keep(Entry entry) {
    entries_.emplace_back(std::move(entry));
    return entries_.size() == 1 ? Put::first : Put::waits;
  }

  const size_t events_max_;
  mutable std::mutex mutex_;
  Entries entries_;
  size_t events_ = 0;
  bool closed_ = false;
  std::uint64_t overflowed_ = 0, late_ = 0;
  PublisherCounters shown_;
};

}  // namespace weir::worker
