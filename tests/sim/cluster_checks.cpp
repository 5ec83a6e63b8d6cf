#include "cluster_checks.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace weir::sim {

using lease::Version;

namespace {

constexpr TrueTime kRounding = 10;  // of a deadline that was computed by one clock and is looked at by another
constexpr TrueTime kOverlapMax = 5 * kSecond;

std::int64_t place_of(const std::string& id) { return std::strtoll(id.c_str(), nullptr, 10); }

}  // namespace

// ---- the right ----

const ClusterChecks::Right* ClusterChecks::right_of(int process) const {
  auto found = rights_.find(process);
  return found == rights_.end() ? nullptr : &found->second;
}

// Whoever has not heard yet that an operator took the lease, or that the store forgot it.
bool ClusterChecks::withdrawn(const Right& right) const {
  return right.version < revoked_above_ || right.version.epoch() < store_.state().epoch;
}

void ClusterChecks::heard(int process, const lease::Owner& owner, Version version, TrueTime until) {
  Right& right = rights_[process];
  if (version <= right.over) return;
  right.owner = owner;
  right.version = std::max(right.version, version);
  right.until = std::max(right.until, until);
  checks_.believes(cluster_, owner, version, until);
}

void ClusterChecks::let_go(int process) {
  Right& right = rights_[process];
  right.over = right.version;
  right.until = -1;
}

bool ClusterChecks::may_act(TrueTime now, int process) const {
  const Right* right = right_of(process);
  return right != nullptr && now <= right->until + kRounding;
}

void ClusterChecks::acts(TrueTime now, int process, std::string_view what) {
  const Right* own = right_of(process);
  if (!may_act(now, process))
    return checks_.fail(now, fmt::format("backend {} {} {} us after its right had ended", process, what,
                                         own == nullptr ? now : now - own->until));
  checks_.used(now, cluster_, own->version, process);
  for (const auto& [other, right] : rights_)
    if (other != process && now <= right.until && !withdrawn(*own) && !withdrawn(right))
      checks_.fail(now, fmt::format("backend {} {} under version {:x} while backend {} has one under {:x}", process,
                                    what, own->version.n, other, right.version.n));
}

// ---- workers' results ----

int ClusterChecks::said(int worker, std::string subscription) {
  results_.push_back({worker, std::move(subscription)});
  return static_cast<int>(results_.size()) - 1;
}

void ClusterChecks::given(int process, int worker, const std::string& subscription) {
  Version version = rights_[process].version;
  Given& newest = given_[subscription];
  if (newest.process == process || newest.version < version) newest = {process, version, worker};
}

void ClusterChecks::taken(int process, int worker, const std::string& subscription) {
  Given& newest = given_[subscription];
  if (newest.process == process && newest.worker == worker) newest.worker = -1;
}

void ClusterChecks::parted(int process, int worker) {
  for (auto& [subscription, newest] : given_)
    if (newest.process == process && newest.worker == worker) newest.worker = -1;
}

void ClusterChecks::received(int process, int number) {
  const Result& result = results_[static_cast<size_t>(number)];
  auto newest = given_.find(result.subscription);
  if (newest == given_.end() || newest->second.worker < 0 || newest->second.worker == result.worker) return;
  if (newest->second.process == process) barred_.emplace(process, number);
  else if (newest->second.version > rights_[process].version) outdated_.emplace(process, number);
}

void ClusterChecks::passed_on(TrueTime now, int process, int number, std::string_view where) {
  const Right* right = right_of(process);
  bool outdated = outdated_.contains({process, number}) && right != nullptr && !withdrawn(*right);
  if (!outdated && !barred_.contains({process, number})) return;
  const Result& result = results_[static_cast<size_t>(number)];
  checks_.fail(now, fmt::format("backend {} passes a result of worker {} on to {}, which it heard after another worker "
                                "was given {}", process, result.worker, where, result.subscription));
}

void ClusterChecks::accepted(TrueTime now, int process, int number, const CameraId& camera, Version version,
                             TrueTime at) {
  const Result& result = results_[static_cast<size_t>(number)];
  if (outdated_.contains({process, number}))
    checks_.fail(now, fmt::format("a result of worker {} was accepted from backend {}, though a later master gave {} "
                                  "to another worker", result.worker, process, result.subscription));
  checks_.accepted(now, camera, version, at);
  accepted_[result.subscription] = now;
}

TrueTime ClusterChecks::last_accepted(const std::string& subscription) const {
  auto found = accepted_.find(subscription);
  return found == accepted_.end() ? -1 : found->second;
}

// ---- Redis ----

// What was under way when Redis was emptied may come after it: Redis cannot tell, and the next refusal mends it.
void ClusterChecks::opened(TrueTime now, int process, std::int64_t epoch, TrueTime sent) {
  if (epoch < highest_opened_ && sent > emptied_)
    checks_.fail(now, fmt::format("backend {} opened epoch {:x} in Redis after {:x}", process, epoch, highest_opened_));
  highest_opened_ = std::max(highest_opened_, epoch);
}

void ClusterChecks::took(TrueTime now, int process, std::int64_t epoch, std::optional<std::int64_t> stored) {
  if (stored != epoch)
    checks_.fail(now, fmt::format("Redis took a word of backend {} under epoch {:x} while it stores {:x}", process,
                                  epoch, stored.value_or(0)));
}

void ClusterChecks::kept(const std::string& id, int number) { log_.push_back({place_of(id), number}); }

void ClusterChecks::emptied(TrueTime now) {
  emptied_ = now;
  if (!log_.empty()) gone_ = log_.back().id;
}

// ---- listeners ----

std::vector<ClusterChecks::Kept>::const_iterator ClusterChecks::first_after(std::int64_t id) const {
  return std::ranges::upper_bound(log_, id, {}, &Kept::id);
}

void ClusterChecks::told(TrueTime now, int listener, const std::string& id, int number) {
  Listener& known = listeners_[listener];
  std::int64_t place = place_of(id);
  auto kept = first_after(place - 1);
  if (kept == log_.end() || kept->id != place || kept->number != number)
    checks_.fail(now, fmt::format("listener {} is told result {} as {}, which Redis never kept", listener, number, id));
  else if (place <= known.place)
    checks_.fail(now, fmt::format("listener {} is told {} after {}", listener, place, known.place));
  else if (known.place >= 0 && !known.gap && kept != first_after(known.place))
    checks_.fail(now, fmt::format("listener {} is told {} after {}, and nothing of what was kept between them",
                                  listener, place, known.place));
  known = {place, false, now};
}

void ClusterChecks::told_of_a_gap(TrueTime now, int listener) {
  Listener& known = listeners_[listener];
  if (known.place > gone_)
    checks_.fail(now, fmt::format("listener {} is told of a gap after {}, though all that followed is kept", listener,
                                  known.place));
  known.gap = true;
}

TrueTime ClusterChecks::last_told(int listener) const {
  auto found = listeners_.find(listener);
  return found == listeners_.end() ? -1 : found->second.last;
}

// ---- what workers really run ----

void ClusterChecks::both_run(TrueTime now, const std::string& subscription, int one, int other, bool counted) {
  if (!counted) return;
  auto [at, begins] = overlaps_.try_emplace({subscription, one, other}, Overlap{now, now});
  at->second.seen = now;
  if (now - at->second.since > kOverlapMax)
    checks_.fail(now, fmt::format("{} runs on the workers {} and {} for {} ms, and their master could have told them",
                                  subscription, one, other, (now - at->second.since) / 1000));
}

void ClusterChecks::overlaps_looked_at(TrueTime now) {
  std::erase_if(overlaps_, [&](const auto& each) { return each.second.seen != now; });
}

}  // namespace weir::sim
