#include "weir/placement/plan.hpp"

#include "seats.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>

namespace weir::placement {

double score(double load_percent, std::optional<double> cpu_percent, std::optional<double> memory_percent) {
  // Written so that a number which is none counts as 0 too.
  auto share = [](std::optional<double> percent) { return percent > 0.0 ? std::min(*percent, 100.0) : 0.0; };
  return 0.4 * load_percent + 0.35 * share(cpu_percent) + 0.25 * share(memory_percent);
}

std::string_view name_of(Why why) {
  constexpr std::array<std::string_view, 6> names = {"added", "adopted", "changed", "orphaned", "retried", "crowded"};
  return names[static_cast<size_t>(why)];
}

namespace {

// A subscription that looks for a place.
struct Unplaced {
  const std::string* id = nullptr;
  const Wanted* wanted = nullptr;
  const Assignment* before = nullptr;  // null: the subscription is new
  Why why = Why::added;
  bool placed = false;

  // It had a place, or looked for another one already.
  bool recovering() const {
    return before != nullptr && (before->status != Status::pending || !before->worker.empty());
  }
  // Last come those that a worker did not run: if they are to blame, the one place of a worker on trial is better given
  // to another, whose success ends the trial.
  int turn() const {
    bool tried = before != nullptr && before->status != Status::failed && before->revision == wanted->revision &&
                 before->attempts > 0;
    return tried ? 2 : recovering() ? 0 : 1;
  }
  std::string from() const { return before == nullptr ? std::string() : before->worker; }
};

class Planner {
 public:
  Planner(const World& world, Instant now, const Policy& policy)
      : world_(world), now_(now), policy_(policy), online_(workers_online(world)), seats_(world, now) {}

  Plan adopt_alone() {
    keep_what_may_stay();
    plan_ = {};
    if (!unplaced_.empty()) adopt();
    return std::move(plan_);
  }

  Plan make() {
    keep_what_may_stay();
    std::ranges::stable_sort(unplaced_, {}, &Unplaced::turn);
    if (!unplaced_.empty()) adopt();
    for (Unplaced& each : unplaced_)
      if (!each.placed) place(each);
    rebalance();
    return std::move(plan_);
  }

 private:
  // Both maps stand in the order of the identifiers, so one walk over the two finds what belongs together.
  void keep_what_may_stay() {
    auto have = world_.assignments.begin();
    for (const auto& [id, wanted] : world_.desired) {
      for (; have != world_.assignments.end() && have->first < id; ++have) drop(*have);
      bool known = have != world_.assignments.end() && have->first == id;
      look_at(id, wanted, known ? &have->second : nullptr);
      if (known) ++have;
    }
    for (; have != world_.assignments.end(); ++have) drop(*have);
  }

  void drop(const std::pair<const std::string, Assignment>& had) {
    plan_.drop.push_back({had.first, had.second.worker});
  }

  void look_at(const std::string& id, const Wanted& wanted, const Assignment* has) {
    auto unplaced = [&](Why why) { unplaced_.push_back({&id, &wanted, has, why}); };
    if (has == nullptr) return unplaced(Why::added);
    bool changed = has->revision != wanted.revision;
    if (has->status == Status::failed) {
      if (changed || has->tried_among != online_) unplaced(changed ? Why::changed : Why::orphaned);
      return;
    }
    if (has->status == Status::recovering && !has->worker.empty()) {
      if (has->attempts < policy_.attempts_max || changed) return unplaced(changed ? Why::changed : Why::retried);
      plan_.fail.push_back({id, has->worker, fmt::format("{} attempts failed; the last one: {}", has->attempts,
                                                         has->reason)});
      return;
    }
    if (has->worker.empty()) return unplaced(has->status == Status::recovering ? Why::orphaned : Why::added);
    Seat* seat = seats_.of(has->worker);
    if (seat == nullptr) return unplaced(Why::orphaned);
    if (seat->full()) return unplaced(Why::crowded);
    seat->keep(has->status == Status::pending || changed);
    if (changed) plan_.assign.push_back({id, has->worker, has->worker, Why::changed});
    else if (has->status == Status::active && now_ - has->placed >= policy_.cooldown) seat->movable.push_back(&id);
  }

  void adopt() {
    std::unordered_map<std::string_view, Unplaced*> by_id;
    for (Seat& seat : seats_)
      for (const std::string& id : seat.worker->reported) {
        if (by_id.empty())
          for (Unplaced& each : unplaced_) by_id.emplace(*each.id, &each);
        auto found = by_id.find(id);
        if (found != by_id.end() && !found->second->placed && !seat.full())
          settle(*found->second, seat, Why::adopted);
      }
  }

  void place(Unplaced& each) {
    // A worker that has just not run the subscription gets it again only where there is no other.
    const Seat* last = each.why == Why::retried ? seats_.of(each.before->worker) : nullptr;
    if (Seat* best = seats_.best(last)) return settle(each, *best, each.why);
    if (seats_.empty() && each.recovering()) return fail(each, "no worker is online");
    wait(each, seats_.why_none());
  }

  void settle(Unplaced& each, Seat& seat, Why why) {
    each.placed = true;
    seats_.take(seat);
    plan_.assign.push_back({*each.id, each.from(), *seat.url, why});
  }

  void fail(const Unplaced& each, std::string_view reason) {
    const Assignment& before = *each.before;
    bool same = before.status == Status::failed && before.tried_among == online_ && before.reason == reason &&
                before.revision == each.wanted->revision;
    if (!same) plan_.fail.push_back({*each.id, each.from(), std::string(reason)});
  }

  void wait(const Unplaced& each, std::string_view reason) {
    Status status = each.recovering() ? Status::recovering : Status::pending;
    const Assignment* before = each.before;
    bool same = before != nullptr && before->worker.empty() && before->status == status && before->reason == reason &&
                before->revision == each.wanted->revision;
    if (!same) plan_.wait.push_back({*each.id, each.from(), std::string(reason), status});
  }

  // The best of all moves is the one from the worst worker to the best one.
  void rebalance() {
    if (world_.moved && now_ - *world_.moved < policy_.cooldown) return;
    for (int moves = 0; moves < policy_.moves_max; ++moves) {
      Seat* worst = seats_.worst_movable();
      Seat* best = worst == nullptr ? nullptr : seats_.best(worst);
      if (best == nullptr || best == worst) return;
      double gain = worst->score() - best->score_with(1);
      if (gain <= policy_.gain_min) return;
      plan_.move.push_back({*worst->movable.back(), *worst->url, *best->url, gain});
      worst->movable.pop_back();
      seats_.give(*worst);
      seats_.take(*best);
    }
  }

  const World& world_;
  const Instant now_;
  const Policy& policy_;
  const std::uint64_t online_;
  Seats seats_;
  std::vector<Unplaced> unplaced_;
  Plan plan_;
};

}  // namespace

Plan plan(const World& world, Instant now, const Policy& policy) { return Planner(world, now, policy).make(); }
Plan adopt(const World& world, Instant now, const Policy& policy) { return Planner(world, now, policy).adopt_alone(); }

}  // namespace weir::placement
