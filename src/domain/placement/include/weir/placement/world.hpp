// World: what a plan is made from: the workers, the subscriptions that are wanted, and who has which now.
//
// A subscription is one camera on one display, named "displayId;cameraId". Its assignment goes through these states:
//
//   pending ── the worker reports it ──▶ active
//      │                                   │   its worker goes offline, or does not report it any more
//      └──────────▶ recovering ◀───────────┘
//                    │   ▲ │
//   another worker ◀─┘   │ └──▶ failed   no worker is online, or `attempts_max` attempts in a row have failed
//   (pending again)      └────────┘      until its row, its model or the set of online workers changes
//
// `plan` (plan.hpp) moves assignments between workers; `confirm` and `refuse` record what a worker made of one. A
// pending or recovering assignment without a worker waits for one, and `reason` says why. Plain values; one thread.
#pragma once

#include "weir/placement/circuit.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace weir::placement {

struct Worker {
  bool online = false;
  std::optional<double> cpu_percent = {};     // unknown counts as 0
  std::optional<double> memory_percent = {};  // the same
  int capacity = 100;                         // subscriptions
  Circuit circuit = {};
  std::vector<std::string> reported = {};     // the subscriptions that it says it runs
};

struct Wanted {
  // Changes with everything that the worker is told of the subscription: its row, its camera, its model.
  std::uint64_t revision = 0;
};

enum class Status { pending, active, failed, recovering };

struct Assignment {
  std::string worker = {};         // its URL; "" where no worker has the subscription
  Status status = Status::pending;
  Instant since{};                 // of the status
  Instant placed{};                // when a plan last gave it to a worker
  int attempts = 0;                // that have failed in a row
  std::uint64_t revision = 0;      // what the worker was told
  std::uint64_t tried_among = 0;   // failed: the set of online workers that it failed among (`workers_online`)
  std::string reason = {};         // in words: why it waits, has failed, or was refused last
  friend bool operator==(const Assignment&, const Assignment&) = default;
};

struct World {
  std::map<std::string, Worker> workers = {};           // by URL
  std::map<std::string, Wanted> desired = {};           // by the subscription's identifier
  std::map<std::string, Assignment> assignments = {};   // the same
  std::optional<Instant> moved = {};                    // when a plan last moved healthy subscriptions
};

struct Policy {
  int attempts_max = 5;
  Duration stable_after = 60s;  // an assignment that was active for so long begins a new row of attempts
  double gain_min = 10;         // points of score by which a move must better a healthy subscription's place
  Duration cooldown = 60s;      // between two plans with moves, and after each subscription's placement
  int moves_max = 10;           // a plan
  CircuitPolicy circuit = {};
  friend bool operator==(const Policy&, const Policy&) = default;
};

// The worker that has the subscription reports it. False where no worker was known to have it.
bool confirm(World& world, const std::string& subscription, Instant now);
// The worker that has the subscription does not run it: an attempt has failed, for the subscription and for the worker.
bool refuse(World& world, const std::string& subscription, std::string reason, Instant now, const Policy& policy);

// A number that differs wherever the set of online workers differs.
std::uint64_t workers_online(const World& world);

}  // namespace weir::placement
