// Records: what the cluster's tables hold, one JSON object a field.
//
// No credential and no signed URL leaves through here: `write_record` writes every URL through `redact_url`. A worker
// is named by its URL without credentials, in the tables' fields as well. Plain values and pure functions; any thread.
#pragma once

#include "weir/cluster/subscription.hpp"
#include "weir/placement/world.hpp"

namespace weir::cluster {

struct WorkerConnectionState {
  std::string url;
  std::string process;  // of the master that holds the connection
  bool online = false;
  std::optional<double> cpu_percent = {}, memory_percent = {}, gpu_percent = {}, gpu_memory_percent = {};
  std::vector<std::string> subscriptions = {};  // their count is written beside them
  WallTime last_heartbeat{};
  WallTime connected_at{};
  friend bool operator==(const WorkerConnectionState&, const WorkerConnectionState&) = default;
};

struct ActualCameraSubscription {
  Identifier subscription;
  std::string worker;     // "" where none has it
  std::string model_url;  // without its signature
  placement::Status status = placement::Status::pending;
  WallTime assigned_at{};
  WallTime last_seen{};
  std::string reason = {};  // why it waits or has failed, in words
  friend bool operator==(const ActualCameraSubscription&, const ActualCameraSubscription&) = default;
};

struct SlaveState {
  std::string slave;
  std::string process;
  bool online = true;
  std::int64_t workload = 0;  // workers whose detections are routed to it
  WallTime last_seen{};
  json::object capabilities = {};
  friend bool operator==(const SlaveState&, const SlaveState&) = default;
};

std::string write_record(const WorkerConnectionState& record);
std::string write_record(const ActualCameraSubscription& record);
std::string write_record(const SlaveState& record);
// What people and other programs may see of the desired state; Weir itself always takes it from the rows.
std::string write_record(const DesiredSubscription& record);

Result<WorkerConnectionState> read_connection_state(std::string_view text);
Result<ActualCameraSubscription> read_actual_subscription(std::string_view text);
Result<SlaveState> read_slave_state(std::string_view text);

}  // namespace weir::cluster
