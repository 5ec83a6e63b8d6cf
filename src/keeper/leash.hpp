// Leash: until when a keeper lets everything below it live.
//
// Three things end it, and the earliest counts: the deadline (with the backstop of a child that knows its deadline
// itself), the grace after an order to stop, and the same grace after the child's own end, for what the child left
// behind. An extension moves the deadline alone. Pure: the time comes in as an argument. One thread.
#pragma once

#include "task.hpp"

#include <algorithm>

namespace weir::keeper {

enum class Extended { yes, stale_version, too_late };

class Leash {
 public:
  explicit Leash(const Task& task)
      : stop_grace_(task.stop_grace),
        backstop_(task.backstop),
        version_(task.version),
        valid_until_(task.valid_until) {}

  // Under one version the deadline never comes closer. What has ended, or is being ended, is not extended.
  Extended extend(std::int64_t version, Micros valid_until) {
    if (version < version_) return Extended::stale_version;
    if (child_ended_ || over_) return Extended::too_late;
    valid_until_ = version == version_ ? std::max(valid_until_, valid_until) : valid_until;
    version_ = version;
    return Extended::yes;
  }
  void stop(Micros now) { end_ = std::min(end_, now + stop_grace_); }
  void kill(Micros now) { end_ = std::min(end_, now); }
  void child_ended(Micros now) {
    child_ended_ = true;
    stop(now);
  }

  // Whether everything must be killed now. Once this was said, nothing takes it back.
  bool over(Micros now) { return over_ = over_ || now >= kill_at(); }
  Micros kill_at() const { return std::min(end_, valid_until_ + backstop_); }
  std::int64_t version() const { return version_; }
  Micros valid_until() const { return valid_until_; }

 private:
  const Micros stop_grace_, backstop_;
  std::int64_t version_;
  Micros valid_until_;
  Micros end_ = Micros::max();
  bool child_ended_ = false, over_ = false;
};

}  // namespace weir::keeper
