// Network: how requests of a host's processes reach the control planes before the store, and their answers the
// processes: late, twice, or not at all. One thread.
#pragma once

#include "rng.hpp"
#include "timeline.hpp"

namespace weir::sim {

struct NetworkFaults {
  bool loss = false, delay = false, duplication = false;
};

inline constexpr Duration kHarmless = 450ms;  // a delay of either way that must not cost anybody a lease

// A host's end of the network.
struct Wire {
  TrueTime cut_out_until = 0, cut_in_until = 0, unauthorized_until = 0;
  TrueTime trouble = -kForever;   // the last time when something was wrong with this host or its messages

  // A shorter trouble does not end a longer one.
  void in_trouble_until(TrueTime when) { trouble = std::max(trouble, when); }
};

// What is wrong with everybody, and until when anything may be.
struct Troubles {
  TrueTime faults_end = 0;
  TrueTime store_down_until = 0, store_stalled_until = 0;
  std::vector<std::pair<TrueTime, TrueTime>> away = {};  // when the store was not there

  bool store_answers(TrueTime now) const { return now >= store_down_until && now >= store_stalled_until; }
};

class Network {
 public:
  // What reaches the process that asked.
  using Reply = std::function<void()>;

  // `served` is called after each request that the store has answered.
  Network(Timeline& time, Rng& rng, const NetworkFaults& faults, const Troubles& troubles, std::function<void()> served)
      : time_(time), rng_(rng), faults_(faults), troubles_(troubles), served_(std::move(served)) {}

  bool faulty() const { return time_.now() < troubles_.faults_end; }
  Duration latency();
  bool lost(Wire& wire);
  // A message between the processes of a host, which do not answer for a moment or have no descriptor left.
  bool fails() { return faulty() && faults_.loss && rng_.chance(0.03); }
  // `work` runs where the store is and returns what the reply shall do; `refused` is the reply that says nothing.
  void request(Wire& wire, const std::shared_ptr<Process>& from, std::function<Reply()> work, Reply refused);

 private:
  void serve(Wire& wire, const std::shared_ptr<Process>& from, const std::function<Reply()>& work, const Reply& refused,
             TrueTime arrived);

  Timeline& time_;
  Rng& rng_;
  const NetworkFaults& faults_;
  const Troubles& troubles_;
  const std::function<void()> served_;
};

}  // namespace weir::sim
