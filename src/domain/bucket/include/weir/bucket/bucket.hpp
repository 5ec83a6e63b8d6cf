// Bucket: how many first connections to a site may start now, so that a recorder is never stormed.
//
// Tokens come back continuously at `refill_per_min`, computed from the time that has passed since the last request; a
// minute's worth is never released at once. Time is lease time: neither an outage nor a clock that somebody sets
// refills the bucket. Plain value.
#pragma once

#include "weir/base/time.hpp"

#include <algorithm>
#include <cmath>

namespace weir::bucket {

struct Bucket {
  double tokens = 10;
  double capacity = 10;
  double refill_per_min = 60;
  LeaseTime updated{};
  friend bool operator==(const Bucket&, const Bucket&) = default;
};

inline Bucket refilled(Bucket bucket, LeaseTime now) {
  double passed = std::max(0.0, seconds(now - bucket.updated));
  bucket.tokens = std::min(bucket.capacity, bucket.tokens + passed * bucket.refill_per_min / 60.0);
  bucket.updated = std::max(bucket.updated, now);
  return bucket;
}

struct Consumed {
  Bucket next;
  bool granted;
  Duration retry_after;  // not granted: when the next token will be there, if nobody else takes it
};

inline Consumed consume(const Bucket& bucket, LeaseTime now) {
  Bucket next = refilled(bucket, now);
  if (next.tokens >= 1.0) {
    next.tokens -= 1.0;
    return {next, true, Duration(0)};
  }
  if (next.refill_per_min <= 0) return {next, false, std::chrono::minutes(1)};
  return {next, false, from_seconds(std::ceil((1.0 - next.tokens) * 60.0 / next.refill_per_min * 1000) / 1000)};
}

}  // namespace weir::bucket
