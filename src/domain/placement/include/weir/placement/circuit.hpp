// Circuit: whether a worker that keeps failing is given anything now (a circuit breaker).
//
//   closed ── `tolerated` failures in a row ──▶ open ── its pause is over ──▶ on trial ── success ──▶ closed
//                                                ▲                              │
//                                                └── failure; a longer pause ───┘
//
// An open worker is given nothing; one on trial is given one subscription at a time. What a worker has already, it
// keeps: the circuit says nothing about subscriptions that run. Pure: the time comes in. Plain value; one thread.
#pragma once

#include "weir/base/backoff.hpp"

namespace weir::placement {

struct CircuitPolicy {
  int tolerated = 3;
  Backoff pause = {.first = 10s, .cap = 5min, .factor = 2.0, .jitter = 0.0};
  friend bool operator==(const CircuitPolicy&, const CircuitPolicy&) = default;
};

enum class Admits { everything, one, nothing };

struct Circuit {
  int failures = 0;  // in a row, while closed
  int openings = 0;  // in a row; 0: closed
  Instant until{};   // the end of the pause

  Admits admits(Instant now) const {
    if (openings == 0) return Admits::everything;
    return now < until ? Admits::nothing : Admits::one;
  }
  // A failure during the pause belongs to what was begun before it, and does not make the pause longer.
  void failed(Instant now, const CircuitPolicy& policy) {
    if (admits(now) == Admits::nothing) return;
    if (openings == 0 && ++failures < policy.tolerated) return;
    failures = 0;
    until = now + policy.pause.delay(openings++, 0.0);
  }
  void succeeded() { *this = {}; }
  friend bool operator==(const Circuit&, const Circuit&) = default;
};

}  // namespace weir::placement
