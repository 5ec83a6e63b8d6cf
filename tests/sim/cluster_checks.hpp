// ClusterChecks: what must be true of a detector cluster after every event, judged with knowledge of the whole world.
//
// A process acts for the cluster when it dials a worker, tells it something, writes to Redis or publishes. It may,
// while its right to the cluster's lease lasts, as the store's answers give it to this very process, by its own clock.
// A result is a worker's word about one subscription. Once a master has told another worker to run the subscription, it
// passes none on that it hears later from the first one; what it had heard before may still wait for a bus or a Redis
// that is away. Where an operator took the lease away, or a replica of the store forgot who had it, the master that has
// not heard of it may go on until its right ends: what it publishes then is not accepted, and Redis takes its words
// only until the next master has opened its epoch. Nothing else is left out. One thread.
#pragma once

#include "checks.hpp"

#include <string_view>
#include <vector>

namespace weir::sim {

class ClusterChecks {
 public:
  ClusterChecks(Checks& checks, SimStore& store, SubjectId cluster)
      : checks_(checks), store_(store), cluster_(std::move(cluster)) {}

  // ---- the right ----
  // A process heard a yes: its right really ends then.
  void heard(int process, const lease::Owner& owner, lease::Version version, TrueTime until);
  void let_go(int process);  // it gives the lease back, or is dead
  void revoked() { revoked_above_ = store_.row(cluster_).version; }
  void acts(TrueTime now, int process, std::string_view what);
  bool may_act(TrueTime now, int process) const;

  // ---- workers' results ----
  // Its number.
  int said(int worker, std::string subscription);
  const std::string& subscription_of(int number) const { return results_[static_cast<size_t>(number)].subscription; }
  void given(int process, int worker, const std::string& subscription);
  void taken(int process, int worker, const std::string& subscription);
  void parted(int process, int worker);  // they are not connected any more
  void received(int process, int number);
  // To the bus, to Redis, or to the process's own listeners.
  void passed_on(TrueTime now, int process, int number, std::string_view where);
  // The control plane accepted it; `at` is when it was published.
  void accepted(TrueTime now, int process, int number, const CameraId& camera, lease::Version version, TrueTime at);
  // The last result about a subscription that was accepted.
  TrueTime last_accepted(const std::string& subscription) const;

  // ---- Redis ----
  void opened(TrueTime now, int process, std::int64_t epoch, TrueTime sent);
  void took(TrueTime now, int process, std::int64_t epoch, std::optional<std::int64_t> stored);
  void kept(const std::string& id, int number);
  void emptied(TrueTime now);

  // ---- listeners ----
  void told(TrueTime now, int listener, const std::string& id, int number);
  void told_of_a_gap(TrueTime now, int listener);
  TrueTime last_told(int listener) const;

  // ---- what workers really run ----
  // Two run the same subscription; `counted` where their master could tell them both.
  void both_run(TrueTime now, const std::string& subscription, int one, int other, bool counted);
  void overlaps_looked_at(TrueTime now);

 private:
  struct Right {
    lease::Owner owner = {};
    lease::Version version = {}, over = {};  // up to `over` it was given back
    TrueTime until = -1;
  };
  struct Given {
    int process = 0;
    lease::Version version = {};  // of the decision
    int worker = -1;              // -1: nobody's
  };
  struct Result {
    int worker = 0;
    std::string subscription;
  };
  struct Kept {
    std::int64_t id = 0;
    int number = 0;
  };
  struct Listener {
    std::int64_t place = -1;  // -1: it has been told nothing yet
    bool gap = false;
    TrueTime last = -1;
  };
  struct Overlap {
    TrueTime since = 0, seen = 0;
  };
  const Right* right_of(int process) const;
  bool withdrawn(const Right& right) const;
  std::vector<Kept>::const_iterator first_after(std::int64_t id) const;

  Checks& checks_;
  SimStore& store_;
  const SubjectId cluster_;
  std::map<int, Right> rights_;  // by process
  lease::Version revoked_above_{};
  std::map<std::string, Given> given_;  // by subscription: the newest decision
  std::vector<Result> results_ = {{}};  // by number, from 1 on
  std::set<std::pair<int, int>> barred_, outdated_;  // process and result: it may not pass it on
  std::map<std::string, TrueTime> accepted_;         // by subscription
  std::int64_t highest_opened_ = 0;
  TrueTime emptied_ = -1;
  std::vector<Kept> log_;  // all that Redis ever kept, in order
  std::int64_t gone_ = 0;  // ids up to it were forgotten
  std::map<int, Listener> listeners_;
  std::map<std::tuple<std::string, int, int>, Overlap> overlaps_;
};

}  // namespace weir::sim
