// What a manager says about itself: metrics, its state for a person, and the list of cameras that it keeps on disk.
#include "worker_process.hpp"

#include "weir/base/log.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

namespace weir::runner {

namespace {

std::string cache_file(const std::string& folder) { return folder + "/cameras.json"; }

// A worker that has not answered for so long knows no longer what its cameras do.
constexpr Duration kAnswersWithin = 2s;
constexpr size_t kWaitingMax = 200;  // cameras that a heartbeat names

json::object unanswered(json::object camera) {
  for (const char* name : {"error", "last_frame_age_s"}) camera.erase(name);
  camera["state"] = "NOT_ANSWERING";
  camera["fps"] = 0;
  return camera;
}

// As a whole or not at all.
void replace_file(const std::string& path, const std::string& text) {
  std::string fresh = path + ".new";
  int file = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return;
  bool written = ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::close(file);
  if (written) ::rename(fresh.c_str(), path.c_str());
}

std::string_view phase_name(CameraPhase phase) { return kCameraPhaseNames[static_cast<size_t>(phase)].name; }

}  // namespace

void Manager::measure() {
  Summary s = brain_.summary();
  const net::Metrics::Labels own{{"runner_id", owner_.runner.str()}};
  metrics_.gauge("streams_desired_total", "Enabled cameras within this runner's filter").set(s.desired);
  metrics_.gauge("active_leases_total", "Cameras whose lease this runner holds").set(s.owned);
  metrics_.gauge("streams_pending_total", "Enabled cameras within the filter that no runner holds, as far as this one has heard").set(s.pending);
  metrics_.gauge("runner_streams_owned", "Cameras that this runner holds", own).set(s.owned);
  metrics_.gauge("runner_shards", "Shards of this runner", own).set(s.shards);
  metrics_.gauge("drain_in_progress", "1 while cameras are being handed to others", own).set(s.draining ? 1 : 0);
  metrics_.gauge("weir_runner_acquiring", "1 while further cameras are taken").set(s.acquiring ? 1 : 0);
  metrics_.gauge("weir_runner_workers", "Worker processes, the idle one included").set(s.workers);
  metrics_.gauge("weir_runner_workers_silent", "Worker processes that do not answer").set(s.workers_silent);
  metrics_.gauge("weir_runner_cameras_behind", "Cameras that are looked at less often than wanted").set(s.behind);
  std::array<int, kCameraPhaseNames.size()> phases{};
  for (const CameraView& camera : s.cameras) ++phases[static_cast<size_t>(camera.phase)];
  for (const auto& [phase, name] : kCameraPhaseNames)
    metrics_.gauge("weir_runner_cameras", "Cameras by what the runner is doing about them", {{"phase", std::string(name)}})
        .set(phases[static_cast<size_t>(phase)]);
}

json::array Manager::waiting(const Summary& summary) {
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

json::object Manager::state() const {
  Summary s = brain_.summary();
  Instant now = clock_.now();
  json::object seen;
  json::array workers;
  double delivering = 0, looked_at = 0, published = 0;
  auto count = [](const json::value& state, const char* name) {
    const json::value* found = state.is_object() ? state.get_object().if_contains(name) : nullptr;
    return found != nullptr && found->is_number() ? found->to_number<double>() : 0.0;
  };
  auto answers = [&](const WorkerPtr& worker) { return now - worker->heard < kAnswersWithin; };
  for (const auto& [shard, worker] : speaking(s)) {
    if (!answers(worker)) continue;
    delivering += count(worker->state, "delivering");
    looked_at += count(worker->state, "pipeline_fps");
  }
  std::map<std::string, WorkerNumber, std::less<>> speaker;
  for (const CameraView& view : s.cameras) speaker[view.camera.str()] = view.worker;
  for (const auto& [number, worker] : workers_) {
    published += count(worker->state, "published");
    json::object about{{"shard_id", worker->shard}, {"pid", worker->pid()}, {"cameras", 0}};
    const json::value* cameras = worker->state.is_object() ? worker->state.get_object().if_contains("cameras") : nullptr;
    if (cameras != nullptr && cameras->is_array()) {
      about.at("cameras") = cameras->get_array().size();
      for (const json::value& each : cameras->get_array()) {
        const json::value* id = each.is_object() ? each.get_object().if_contains("camera_uuid") : nullptr;
        if (id == nullptr || !id->is_string()) continue;
        auto speaks = speaker.find(std::string_view(id->get_string()));
        bool its_own = speaks != speaker.end() && speaks->second == number;
        if (!its_own && seen.contains(id->get_string())) continue;
        seen[id->get_string()] = answers(worker) ? each.get_object() : unanswered(each.get_object());
      }
    }
    workers.push_back(std::move(about));
  }
  json::array cameras;
  for (const CameraView& view : s.cameras) {
    json::object camera{{"camera_uuid", view.camera.str()}, {"phase", phase_name(view.phase)}};
    if (const json::value* worker = seen.if_contains(view.camera.str())) camera = worker->get_object();
    camera["phase"] = phase_name(view.phase);
    camera["alone"] = view.alone;
    if (auto worker = workers_.find(view.worker); worker != workers_.end()) camera["pid"] = worker->second->pid();
    if (view.shard >= 0) camera["shard_id"] = fmt::format("shard-{}", view.shard);
    if (view.version.n != 0) camera["lease_version"] = view.version.n;
    if (view.valid_until != Instant{}) camera["lease_valid_s"] = seconds(view.valid_until - now);
    cameras.push_back(std::move(camera));
  }
  return {{"runner_id", owner_.runner.str()}, {"boot_id", owner_.boot.str()},   {"registered", registered_},
          {"listed", listed_},
          {"desired", s.desired},             {"owned", s.owned},               {"pending", s.pending},
          {"acquiring", s.acquiring},         {"why_not_acquiring", s.why_not}, {"draining", s.draining},
          {"behind", s.behind},
          {"delivering", delivering},         {"pipeline_fps", looked_at},      {"published", published},
          {"workers", std::move(workers)},    {"cameras", std::move(cameras)},  {"happened", happened_}};
}

// Only for explanations: leases decide, and without the control plane there are none.
void Manager::remember_cameras(const std::vector<DesiredCamera>& cameras) {
  json::array list;
  for (const DesiredCamera& camera : cameras) list.push_back(camera::write_config(camera.config, camera::Credentials::shown));
  std::string listed = json::to_text(list);
  size_t hash = std::hash<std::string>()(listed);
  if (hash == remembered_) return;
  if (writing_.exchange(true)) return;  // the disk hangs, or will have the next list
  remembered_ = hash;
  std::string text = json::to_text(json::object{{"listed_at", to_iso(clock_.wall())}, {"cameras", std::move(list)}});
  boost::asio::post(disk_, [this, text = std::move(text)] {
    replace_file(cache_file(settings_.folder), text);
    writing_ = false;
  });
}

void Manager::explain_outage(const Error& why) {
  std::ifstream file(cache_file(settings_.folder));
  std::stringstream text;
  text << file.rdbuf();
  std::string known = "no camera is known from before";
  if (auto parsed = json::parse_text(text.str()); parsed && parsed->is_object()) {
    const json::value* cameras = parsed->get_object().if_contains("cameras");
    const json::value* when = parsed->get_object().if_contains("listed_at");
    if (cameras != nullptr && cameras->is_array() && when != nullptr && when->is_string())
      known = fmt::format("{} cameras were known at {}", cameras->get_array().size(), std::string_view(when->get_string()));
  }
  log::warn("runner.waiting",
            fmt::format("the control plane {} ({}); nothing can be started without its leases; {}", what_it_does(why),
                        why.message, known))
      .with("error_code", why.reason);
}

}  // namespace weir::runner
