#include "weir/cluster/report.hpp"

namespace weir::cluster {

namespace {

const placement::Assignment* assigned(const placement::World& world, const std::string& subscription) {
  auto found = world.assignments.find(subscription);
  return found == world.assignments.end() ? nullptr : &found->second;
}

bool runs_on(const placement::Assignment* assignment, const std::string& worker) {
  return assignment != nullptr && assignment->worker == worker &&
         (assignment->status == placement::Status::pending || assignment->status == placement::Status::active);
}

// A report without a crop does not say that there is none.
bool as_wanted(const CameraConnection& reported, const DesiredSubscription& wanted) {
  return reported.model_id == wanted.model_id && (!reported.crop || reported.crop == wanted.crop);
}

}  // namespace

ReportJudgement judge_report(const std::string& worker, const StateReport& report, const placement::World& world,
                             const DesiredSubscriptions& desired, const std::set<std::string>& given, Instant now,
                             Duration missing_after) {
  ReportJudgement out;
  std::set<std::string> seen;
  for (const CameraConnection& each : report.cameras) {
    std::string id = each.subscription.text();
    if (!seen.insert(id).second) continue;
    const placement::Assignment* assignment = assigned(world, id);
    auto wanted = desired.find(id);
    if (wanted != desired.end() && runs_on(assignment, worker)) {
      bool young = now - assignment->placed < missing_after;
      if (as_wanted(each, wanted->second)) out.confirmed.push_back(id);
      else if (!young) out.differing.push_back(id);
      continue;
    }
    bool adoptable = wanted != desired.end() && (assignment == nullptr || assignment->worker.empty());
    if (adoptable) continue;
    if (!given.contains(id)) out.never_given.push_back(id);
    out.unwanted.push_back(std::move(id));
  }
  for (const std::string& id : given) {
    if (seen.contains(id)) continue;
    const placement::Assignment* assignment = assigned(world, id);
    if (!runs_on(assignment, worker)) out.over.push_back(id);
    else if (now - assignment->placed >= missing_after) out.missing.push_back(id);
  }
  return out;
}

ResultVerdict judge_result(const std::string& worker, const std::string& subscription, const placement::World& world) {
  const placement::Assignment* assignment = assigned(world, subscription);
  if (assignment == nullptr) return ResultVerdict::unwanted;
  return runs_on(assignment, worker) ? ResultVerdict::accepted : ResultVerdict::not_its;
}

}  // namespace weir::cluster
