#include "weir/cluster/records.hpp"

#include "wire.hpp"

namespace weir::placement {

constexpr auto enum_names(Status) {
  return std::to_array<json::EnumName<Status>>({{Status::pending, "pending"},
                                                {Status::active, "active"},
                                                {Status::failed, "failed"},
                                                {Status::recovering, "recovering"}});
}

}  // namespace weir::placement

namespace weir::cluster {

namespace {

// A URL as it may be seen by anybody who can read Redis.
template <class V>
void shown_url(V& v, std::string_view name, std::string& url) {
  if constexpr (V::reading) {
    v.required(name, url);
  } else {
    std::string redacted = redact_url(url);
    v.required(name, redacted);
  }
}

}  // namespace

template <class V>
void fields(V& v, WorkerConnectionState& w) {
  std::int64_t count = static_cast<std::int64_t>(w.subscriptions.size());
  shown_url(v, "url", w.url);
  v.required("processId", w.process);
  v.required("online", w.online);
  wire::nullable(v, "cpuUsage", w.cpu_percent);
  wire::nullable(v, "memoryUsage", w.memory_percent);
  wire::nullable(v, "gpuUsage", w.gpu_percent);
  wire::nullable(v, "gpuMemoryUsage", w.gpu_memory_percent);
  v.required("subscriptionCount", count);
  v.required("subscriptions", w.subscriptions);
  wire::moment(v, "lastHeartbeat", w.last_heartbeat);
  wire::moment(v, "connectedAt", w.connected_at);
}

template <class V>
void fields(V& v, ActualCameraSubscription& a) {
  v.required("subscriptionIdentifier", a.subscription);
  shown_url(v, "assignedWorkerUrl", a.worker);
  shown_url(v, "modelUrl", a.model_url);
  v.required("status", a.status);
  wire::moment(v, "assignedAt", a.assigned_at);
  wire::moment(v, "lastSeen", a.last_seen);
  if (V::reading || !a.reason.empty()) v.optional("reason", a.reason);
}

template <class V>
void fields(V& v, SlaveState& s) {
  v.required("slaveId", s.slave);
  v.required("processId", s.process);
  v.required("online", s.online);
  v.required("workload", s.workload);
  wire::moment(v, "lastSeen", s.last_seen);
  if (V::reading || !s.capabilities.empty()) v.optional("capabilities", s.capabilities);
}

std::string write_record(const WorkerConnectionState& record) { return json::to_text(json::write_value(record)); }
std::string write_record(const ActualCameraSubscription& record) { return json::to_text(json::write_value(record)); }
std::string write_record(const SlaveState& record) { return json::to_text(json::write_value(record)); }

std::string write_record(const DesiredSubscription& d) {
  json::Writer writer;
  std::string rtsp = redact_url(d.rtsp_url.reveal());
  std::optional<std::string> snapshot;
  if (d.snapshot_url) snapshot = redact_url(d.snapshot_url->reveal());
  WallTime created = d.created_at;
  auto every = d.snapshot_every;
  auto crop = d.crop;
  writer.required("subscriptionIdentifier", d.id);
  writer.required("rtspUrl", rtsp);
  writer.required("modelId", d.model_id);
  writer.required("modelName", d.model_name);
  wire::moment(writer, "createdAt", created);
  writer.optional("snapshotUrl", snapshot);
  wire::milliseconds(writer, "snapshotInterval", every);
  wire::crop(writer, crop);
  return json::to_text(writer.take());
}

Result<WorkerConnectionState> read_connection_state(std::string_view text) {
  return json::read_text<WorkerConnectionState>(text);
}
Result<ActualCameraSubscription> read_actual_subscription(std::string_view text) {
  return json::read_text<ActualCameraSubscription>(text);
}
Result<SlaveState> read_slave_state(std::string_view text) { return json::read_text<SlaveState>(text); }

}  // namespace weir::cluster
