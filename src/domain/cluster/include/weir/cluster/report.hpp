// Report: what a worker's state report means, held against what the master gave to that worker.
//
// The master knows of each worker which subscriptions it gave to it (`given`: all that are assigned to it are among
// them). A report confirms those that run as wanted and misses the others, except the youngest: a worker needs a moment
// until it reports what it was just given. The model's URL is not compared, because it is signed anew for each plan.
// Whatever runs that should not is to be unsubscribed; what this master never gave to the worker is named besides, so
// that a worker which reports what it likes can be marked. What nobody has and somebody wants is left alone: the next
// plan adopts it. Pure functions; any thread.
#pragma once

#include "weir/cluster/worker_protocol.hpp"
#include "weir/placement/world.hpp"

#include <set>

namespace weir::cluster {

inline constexpr Duration kMissingAfter = 5s;

struct ReportJudgement {
  std::vector<std::string> confirmed = {};    // assigned to the worker, and reported as wanted
  std::vector<std::string> missing = {};      // assigned for long enough, and not reported
  std::vector<std::string> differing = {};    // assigned for long enough, and reported with another model or crop
  std::vector<std::string> unwanted = {};     // reported, and nobody's, or another worker's: to be unsubscribed
  std::vector<std::string> never_given = {};  // of those, what this master never gave to this worker
  std::vector<std::string> over = {};         // given once, no longer assigned nor reported: `given` may forget them
};
ReportJudgement judge_report(const std::string& worker, const StateReport& report, const placement::World& world,
                             const DesiredSubscriptions& desired, const std::set<std::string>& given, Instant now,
                             Duration missing_after = kMissingAfter);

// Whether a worker's result may be passed on: only those of the worker that has the subscription are.
enum class ResultVerdict {
  accepted,
  not_its,   // another worker has the subscription, or had it taken from this one
  unwanted,  // nobody wants the subscription
};
ResultVerdict judge_result(const std::string& worker, const std::string& subscription, const placement::World& world);

}  // namespace weir::cluster
