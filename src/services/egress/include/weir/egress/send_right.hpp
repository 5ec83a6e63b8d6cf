// SendRight: this forwarder's right to send, if it was given one that ends.
//
// A version and two points on this machine's CLOCK_BOOTTIME. Until `valid_until` the process may do everything. From then
// until `keep_until` it may keep the connections that stand, but opens none and publishes no event: so a control plane
// that is silent for a while interrupts no stream. A supervisor extends both; another one that comes later extends them
// under a higher version, and from then on the older one is refused. A forwarder whose right runs out has been
// replaced, or will be. Without an end the right is for ever. Any thread.
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <optional>

namespace weir::egress {

class SendRight {
 public:
  struct Ends {
    Instant valid_until, keep_until;
  };
  SendRight(std::int64_t version, std::optional<Instant> valid_until) : version_(version) {
    if (valid_until) ends_ = Ends{*valid_until, *valid_until};
  }

  bool valid(Instant now) const {
    std::lock_guard lock(mutex_);
    return !ends_ || now < ends_->valid_until;
  }
  // Whether connections that stand may be kept.
  bool keeps(Instant now) const {
    std::lock_guard lock(mutex_);
    return !ends_ || now < ends_->keep_until;
  }
  // `stale_version` where a supervisor has used a higher version. Under one version neither end comes closer.
  Status extend(std::int64_t version, Instant valid_until) { return extend(version, {valid_until, valid_until}); }
  Status extend(std::int64_t version, Ends ends) {
    std::lock_guard lock(mutex_);
    if (version < version_)
      return Error{Errc::conflict, "stale_version", "a supervisor with a higher version has this forwarder"};
    if (version == version_ && ends_) {
      ends.valid_until = std::max(ends.valid_until, ends_->valid_until);
      ends.keep_until = std::max(ends.keep_until, ends_->keep_until);
    }
    ends.keep_until = std::max(ends.keep_until, ends.valid_until);
    ends_ = ends;
    version_ = version;
    return ok();
  }
  std::int64_t version() const {
    std::lock_guard lock(mutex_);
    return version_;
  }
  std::optional<Ends> ends() const {
    std::lock_guard lock(mutex_);
    return ends_;
  }

 private:
  mutable std::mutex mutex_;
  std::int64_t version_;
  std::optional<Ends> ends_ = {};
};

}  // namespace weir::egress
