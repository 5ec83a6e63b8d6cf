#include "weir/placement/plan.hpp"

namespace weir::placement {

namespace {

std::uint64_t wanted_revision(const World& world, const std::string& subscription) {
  auto found = world.desired.find(subscription);
  return found == world.desired.end() ? 0 : found->second.revision;
}

// What was tried under another revision, or before the set of workers changed, is forgiven.
Assignment& fresh(World& world, const std::string& subscription, Status status, Instant now) {
  Assignment& assignment = world.assignments[subscription];
  std::uint64_t revision = wanted_revision(world, subscription);
  if (assignment.status == Status::failed || assignment.revision != revision) assignment.attempts = 0;
  assignment.revision = revision;
  assignment.status = status;
  assignment.since = now;
  return assignment;
}

void put(World& world, const std::string& subscription, const std::string& worker, Instant now) {
  Assignment& assignment = fresh(world, subscription, Status::pending, now);
  assignment.worker = worker;
  assignment.placed = now;
}

}  // namespace

void apply(World& world, const Plan& plan, Instant now) {
  for (const Drop& each : plan.drop) world.assignments.erase(each.subscription);
  for (const Assign& each : plan.assign) put(world, each.subscription, each.worker, now);
  for (const Move& each : plan.move) put(world, each.subscription, each.worker, now);
  if (!plan.move.empty()) world.moved = now;
  for (const Fail& each : plan.fail) {
    Assignment& assignment = fresh(world, each.subscription, Status::failed, now);
    assignment.worker.clear();
    assignment.tried_among = workers_online(world);
    assignment.reason = each.reason;
  }
  for (const Wait& each : plan.wait) {
    Assignment& assignment = fresh(world, each.subscription, each.status, now);
    assignment.worker.clear();
    assignment.reason = each.reason;
  }
}

}  // namespace weir::placement
