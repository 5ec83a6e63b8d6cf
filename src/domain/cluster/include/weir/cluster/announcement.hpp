// Announcement: what the cluster's processes tell each other over Redis.
//
// Each is one JSON object with a `type`, a time and the master's epoch: the version of the cluster's lease, which only
// ever rises. Whatever a master that was replaced still sends carries a lower epoch than its successor's, and an
// EpochJudge drops it. A detection that was kept as well carries the id under which it is kept (`streamId`), so that
// its listener can later ask for what followed. Plain values and pure functions; any thread.
#pragma once

#include "weir/cluster/worker_protocol.hpp"

namespace weir::cluster {

// A worker's detection, on its way to the slave that the worker's detections are routed to.
struct DetectionRouted {
  std::string worker;
  ImageDetection detection;
  friend bool operator==(const DetectionRouted&, const DetectionRouted&) = default;
};
// Which slave each worker's detections are routed to from now on.
struct AssignmentsUpdated {
  std::map<std::string, std::string> slave_of = {};
  friend bool operator==(const AssignmentsUpdated&, const AssignmentsUpdated&) = default;
};
// Rows have changed: the master makes the desired state anew.
struct RegenerateSubscriptions {
  std::string reason;
  std::string triggered_by;
  friend bool operator==(const RegenerateSubscriptions&, const RegenerateSubscriptions&) = default;
};
// Something that listeners at every process are told: "worker:online" {url}, "slave-registered" {slaveId}, …
struct ClusterHappened {
  std::string event;
  json::object payload = {};
  friend bool operator==(const ClusterHappened&, const ClusterHappened&) = default;
};
// A worker wants a session changed; listeners at every process are told.
struct PatchRequested {
  std::int64_t session = 0;
  json::value data = nullptr;
  friend bool operator==(const PatchRequested&, const PatchRequested&) = default;
};
// What a slave asks the master for. The master answers each with a CommandResponse that has the same number.
struct SessionSet {
  std::string slave;
  std::int64_t request = 0;
  std::string display;
  std::optional<std::int64_t> session = {};
  friend bool operator==(const SessionSet&, const SessionSet&) = default;
};
struct PatchAnswered {
  std::string slave;
  std::int64_t request = 0;
  PatchSessionResult result = {};
  friend bool operator==(const PatchAnswered&, const PatchAnswered&) = default;
};
struct CameraResubscribed {
  std::string slave;
  std::int64_t request = 0;
  std::string camera;
  friend bool operator==(const CameraResubscribed&, const CameraResubscribed&) = default;
};
// To the slave that asked. Where it was refused, `reason` and `message` are those of an Error.
struct CommandResponse {
  std::string slave;
  std::int64_t request = 0;
  bool success = true;
  std::string reason = {}, message = {};
  friend bool operator==(const CommandResponse&, const CommandResponse&) = default;
};
// What a slave tells the master every few seconds: how many listeners it has.
struct Heartbeat {
  std::string slave;
  std::int64_t listeners = 0;
  friend bool operator==(const Heartbeat&, const Heartbeat&) = default;
};
using Saying = std::variant<DetectionRouted, AssignmentsUpdated, RegenerateSubscriptions, ClusterHappened,
                            PatchRequested, SessionSet, PatchAnswered, CameraResubscribed, CommandResponse, Heartbeat>;

struct Announcement {
  std::int64_t epoch = 0;  // the sender's; 0 where a slave knows of no master yet
  WallTime timestamp{};
  Saying what;
  std::string stream_id = {};
  friend bool operator==(const Announcement&, const Announcement&) = default;
};

std::string write_announcement(const Announcement& announcement);
Result<Announcement> read_announcement(std::string_view text);

// ---- where they are told ----
inline constexpr std::string_view kMasterCommands = "worker:master:commands";          // RegenerateSubscriptions
inline constexpr std::string_view kAssignmentsChanged = "worker:assignments:changed";  // AssignmentsUpdated
// SessionSet, PatchAnswered, CameraResubscribed, Heartbeat
inline constexpr std::string_view kUpstream = "worker:messages:upstream";
inline constexpr std::string_view kEvents = "worker:events";                           // ClusterHappened, PatchRequested
// DetectionRouted, CommandResponse
inline std::string slave_channel(std::string_view slave) { return "worker:slave:" + std::string(slave); }

// Knows the highest epoch that was seen, and admits nothing below it.
class EpochJudge {
 public:
  bool admit(std::int64_t epoch) {
    if (epoch < highest_) return false;
    highest_ = epoch;
    return true;
  }
  std::int64_t highest() const { return highest_; }

 private:
  std::int64_t highest_ = 0;
};

}  // namespace weir::cluster
