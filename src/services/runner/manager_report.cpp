#include "manager_report.hpp"

#include <array>
#include <cmath>

namespace weir::runner {

namespace {

// After a worker has not answered for so long, its last report no longer tells what its cameras do.
constexpr Duration kAnswersWithin = 2s;
constexpr size_t kWaitingMax = 200;  // cameras that a heartbeat names

std::string_view phase_name(CameraPhase phase) { return kCameraPhaseNames[static_cast<size_t>(phase)].name; }

bool answers(const WorkerProcess& worker, Instant now) { return now - worker.heard < kAnswersWithin; }

double number_in(const json::value& page, const char* name) {
  const json::value* found = page.is_object() ? page.get_object().if_contains(name) : nullptr;
  return found != nullptr && found->is_number() ? found->to_number<double>() : 0.0;
}

const json::array* cameras_in(const WorkerProcess& worker) {
  const json::value* found = worker.page.is_object() ? worker.page.get_object().if_contains("cameras") : nullptr;
  return found == nullptr ? nullptr : found->if_array();
}

void mark_unanswered(json::object& camera) {
  for (const char* name : {"error", "last_frame_age_s"}) camera.erase(name);
  camera["state"] = "NOT_ANSWERING";
  camera["fps"] = 0;
}

// Each camera as its worker described it; where two have it, as the one that speaks for it did.
json::object seen_by(const WorkerProcesses& workers, const Summary& s) {
  std::map<std::string, WorkerNumber, std::less<>> speaker;
  for (const CameraView& view : s.cameras) speaker[view.camera.str()] = view.worker;
  json::object seen;
  for (const auto& [number, worker] : workers.all()) {
    const json::array* cameras = cameras_in(*worker);
    if (cameras == nullptr) continue;
    for (const json::value& each : *cameras) {
      const json::value* id = each.is_object() ? each.get_object().if_contains("camera_uuid") : nullptr;
      if (id == nullptr || !id->is_string()) continue;
      auto speaks = speaker.find(std::string_view(id->get_string()));
      bool its_own = speaks != speaker.end() && speaks->second == number;
      if (!its_own && seen.contains(id->get_string())) continue;
      seen[id->get_string()] = each.get_object();
    }
  }
  return seen;
}

json::array cameras_of(const Summary& s, const WorkerProcesses& workers, Instant now) {
  json::object seen = seen_by(workers, s);
  json::array out;
  for (const CameraView& view : s.cameras) {
    json::object camera{{"camera_uuid", view.camera.str()}};
    if (const json::value* worker = seen.if_contains(view.camera.str())) camera = worker->get_object();
    camera["phase"] = phase_name(view.phase);
    camera["alone"] = view.alone;
    if (WorkerPtr worker = workers.find(view.worker)) {
      camera["pid"] = worker->pid();
      if (worker->ready && !answers(*worker, now)) mark_unanswered(camera);
    }
    if (view.shard >= 0) camera["shard_id"] = fmt::format("shard-{}", view.shard);
    if (view.version.n != 0) camera["lease_version"] = view.version.n;
    if (view.valid_until != Instant{}) camera["lease_valid_s"] = seconds(view.valid_until - now);
    out.push_back(std::move(camera));
  }
  return out;
}

}  // namespace

void measure(net::Metrics& metrics, const RunnerId& runner, const Summary& s) {
  const net::Metrics::Labels own{{"runner_id", runner.str()}};
  metrics.gauge("streams_desired_total", "Enabled cameras within this runner's filter").set(s.desired);
  metrics.gauge("active_leases_total", "Cameras whose lease this runner holds").set(s.owned);
  metrics.gauge("streams_pending_total",
                "Enabled cameras within the filter that no runner holds, as far as this one has heard").set(s.pending);
  metrics.gauge("runner_streams_owned", "Cameras that this runner holds", own).set(s.owned);
  metrics.gauge("runner_shards", "Shards of this runner", own).set(s.shards);
  metrics.gauge("drain_in_progress", "1 while cameras are being handed to others", own).set(s.draining ? 1 : 0);
  metrics.gauge("weir_runner_acquiring", "1 while further cameras are taken").set(s.acquiring ? 1 : 0);
  metrics.gauge("weir_runner_workers", "Worker processes, the idle one included").set(s.workers);
  metrics.gauge("weir_runner_workers_silent", "Worker processes that do not answer").set(s.workers_silent);
  metrics.gauge("weir_runner_cameras_behind", "Cameras that are looked at less often than wanted").set(s.behind);
  std::array<int, kCameraPhaseNames.size()> phases{};
  for (const CameraView& camera : s.cameras) ++phases[static_cast<size_t>(camera.phase)];
  for (const auto& [phase, name] : kCameraPhaseNames)
    metrics
        .gauge("weir_runner_cameras", "Cameras by what the runner is doing about them", {{"phase", std::string(name)}})
        .set(phases[static_cast<size_t>(phase)]);
}

json::array waiting(const Summary& summary) {
  json::array out;
  for (const CameraView& camera : summary.cameras) {
    bool budget = camera.phase == CameraPhase::budget, silent = camera.silent >= kAnswersWithin;
    if ((!budget && !silent) || out.size() == kWaitingMax) continue;
    json::object one{{"camera_uuid", camera.camera.str()}, {"reason", budget ? "budget" : "not_answering"}};
    if (silent) one["for_s"] = std::round(10 * seconds(camera.silent)) / 10;
    out.push_back(std::move(one));
  }
  return out;
}

json::object describe(const Shell& shell, const WorkerProcesses& workers) {
  Summary s = shell.brain.summary();
  Instant now = shell.ports.clock.now();
  double delivering = 0, looked_at = 0, published = 0;
  for (const auto& [shard, worker] : workers.speaking(s)) {
    if (!answers(*worker, now)) continue;
    delivering += number_in(worker->page, "delivering");
    looked_at += number_in(worker->page, "pipeline_fps");
  }
  json::array processes;
  for (const auto& [number, worker] : workers.all()) {
    published += number_in(worker->page, "published");
    const json::array* cameras = cameras_in(*worker);
    processes.push_back(json::object{
        {"shard_id", worker->shard}, {"pid", worker->pid()}, {"cameras", cameras == nullptr ? 0 : cameras->size()}});
  }
  return {{"desired", s.desired},
          {"owned", s.owned},
          {"pending", s.pending},
          {"acquiring", s.acquiring},
          {"why_not_acquiring", s.why_not},
          {"draining", s.draining},
          {"behind", s.behind},
          {"delivering", delivering},
          {"pipeline_fps", looked_at},
          {"published", published},
          {"workers", std::move(processes)},
          {"cameras", cameras_of(s, workers, now)}};
}

}  // namespace weir::runner
