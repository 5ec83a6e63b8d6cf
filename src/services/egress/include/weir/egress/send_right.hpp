// SendRight: this forwarder's right to send, if it was given one that ends.
//
// A version and a point on this machine's CLOCK_BOOTTIME until which it counts. A supervisor extends it; another one
// that comes later extends it under a higher version, and from then on the older one is refused. A forwarder whose
// right runs out has been replaced, or will be. Without an end the right is for ever. Any thread.
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"

#include <cstdint>
#include <mutex>
#include <optional>

namespace weir::egress {

class SendRight {
 public:
  SendRight(std::int64_t version, std::optional<Instant> valid_until) : version_(version), valid_until_(valid_until) {}

  bool valid(Instant now) const {
    std::lock_guard lock(mutex_);
    return !valid_until_ || now < *valid_until_;
  }
  // `stale_version` where a supervisor has used a higher version. The end never comes closer under one version.
  Status extend(std::int64_t version, Instant valid_until) {
    std::lock_guard lock(mutex_);
    if (version < version_)
      return Error{Errc::conflict, "stale_version", "a supervisor with a higher version has this forwarder"};
    bool shorter = version == version_ && valid_until_ && valid_until < *valid_until_;
    if (!shorter) valid_until_ = valid_until;
    version_ = version;
    return ok();
  }
  std::int64_t version() const {
    std::lock_guard lock(mutex_);
    return version_;
  }
  std::optional<Instant> valid_until() const {
    std::lock_guard lock(mutex_);
    return valid_until_;
  }

 private:
  mutable std::mutex mutex_;
  std::int64_t version_;
  std::optional<Instant> valid_until_;
};

}  // namespace weir::egress
