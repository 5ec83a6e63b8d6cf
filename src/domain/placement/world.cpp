#include "weir/placement/world.hpp"

#include <utility>

namespace weir::placement {

namespace {

// The assignment, where a worker is on it.
Assignment* running(World& world, const std::string& subscription) {
  auto found = world.assignments.find(subscription);
  if (found == world.assignments.end() || found->second.worker.empty()) return nullptr;
  Assignment& assignment = found->second;
  bool on_it = assignment.status == Status::pending || assignment.status == Status::active;
  return on_it ? &assignment : nullptr;
}

Circuit* circuit_of(World& world, const std::string& worker) {
  auto found = world.workers.find(worker);
  return found == world.workers.end() ? nullptr : &found->second.circuit;
}

}  // namespace

bool confirm(World& world, const std::string& subscription, Instant now) {
  Assignment* assignment = running(world, subscription);
  if (assignment == nullptr) return false;
  if (assignment->status == Status::active) return true;
  assignment->status = Status::active;
  assignment->since = now;
  assignment->reason.clear();
  if (Circuit* circuit = circuit_of(world, assignment->worker)) circuit->succeeded();
  return true;
}

bool refuse(World& world, const std::string& subscription, std::string reason, Instant now, const Policy& policy) {
  Assignment* assignment = running(world, subscription);
  if (assignment == nullptr) return false;
  bool was_stable = assignment->status == Status::active && now - assignment->since >= policy.stable_after;
  assignment->attempts = was_stable ? 1 : assignment->attempts + 1;
  assignment->status = Status::recovering;
  assignment->since = now;
  assignment->reason = std::move(reason);
  if (Circuit* circuit = circuit_of(world, assignment->worker)) circuit->failed(now, policy.circuit);
  return true;
}

// FNV-1a over the URLs, each ended by a byte that no URL holds.
std::uint64_t workers_online(const World& world) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  auto add = [&hash](unsigned char byte) { hash = (hash ^ byte) * 0x100000001b3u; };
  for (const auto& [url, worker] : world.workers) {
    if (!worker.online) continue;
    for (char c : url) add(static_cast<unsigned char>(c));
    add('\n');
  }
  return hash;
}

}  // namespace weir::placement
