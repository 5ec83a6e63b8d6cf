#include "weir/worker/worker.hpp"

#include "weir/base/log.hpp"

#include <unistd.h>

#include <algorithm>
#include <system_error>

namespace weir::worker {

namespace asio = boost::asio;

namespace {

constexpr Duration kLookEvery = 250ms;
constexpr Duration kFreshFrame = 3s;

// Snapshot cameras are asked only now and then: twice their interval is still fresh.
bool delivers(const Source& source, const CameraView& view, Instant now) {
  Duration fresh = kFreshFrame;
  if (source.snapshots) fresh = std::max(fresh, from_seconds(2 * source.config.snapshot->interval_s));
  return view.state == StreamState::streaming && view.last_frame && now - *view.last_frame < fresh;
}

json::value rounded(double v) { return std::round(v * 1000) / 1000; }

// Two connections to one camera see the same picture at slightly different times: what follows the last one that was
// reported by less than half an interval is taken for that one. A picture too few is better than one twice.
Duration same_picture(double fps) { return std::clamp(from_seconds(fps > 0 ? 0.5 / fps : 0.05), Duration(20ms), Duration(100ms)); }

// No exception may leave the constructor: the cameras' threads that run already use what it would destroy, and their
// crash would be blamed on a camera.
[[noreturn]] void end_without_threads(size_t running, size_t cameras, const std::system_error& why) {
  log::error("worker.no_threads",
             fmt::format("no more threads: {} of {} cameras have theirs, and the system says: {}. Allow more (TasksMax= "
                         "of the service, pids.max of a container, ulimit -u), or give this host fewer cameras",
                         running, cameras, why.code().message()));
  ::_exit(kExitNoThreads);
}

}  // namespace

Worker::Worker(Clock& clock, net::Metrics& metrics, Outlet& outlet, const ShardConfig& shard,
               WorkerSettings settings, SourceFactory open, DetectorFactory detectors)
    : clock_(clock),
      outlet_(outlet),
      settings_(settings),
      max_fps_(shard.max_fps),
      open_(std::move(open)),
      reporter_(outlet, metrics, shard.runner, shard.shard),
      dials_(settings.dials_at_once, settings.dials_file),
      standby_(shard.standby) {
  auto status_of = [this](const CameraId& camera) -> std::shared_ptr<CameraStatus> {
    std::lock_guard guard(statuses_mutex_);
    auto found = statuses_.find(camera);
    return found == statuses_.end() ? nullptr : found->second;
  };
  try {
    pool_ = std::make_unique<InferencePool>(scheduler_, reporter_, std::move(detectors), status_of,
                                            settings_.inference_threads, shard.preload);
    for (const Source& source : shard.sources) add(source);
  } catch (const std::system_error& lacking) {
    end_without_threads(tasks_.size(), shard.sources.size(), lacking);
  }
}

Worker::~Worker() {
  for (auto& [id, camera] : tasks_) camera.task->stop();
}

void Worker::start(Source source, std::optional<LeaseGrant> lease, std::shared_ptr<Custody> custody,
                   std::shared_ptr<CameraTask> before) {
  CameraId id = source.config.camera;
  auto status = std::make_shared<CameraStatus>(clock_.now());
  {
    std::lock_guard guard(statuses_mutex_);
    statuses_[id] = status;
  }
  reporter_.take_on(id);
  // The last status of a lost camera's thread is dropped: another owner has published since.
  if (lost_.erase(id) > 0) outlet_.forget(id);
  CameraParts parts{open_, dials_, scheduler_, reporter_, settings_.adaptive_keyframe_max_s,
                    settings_.patience, custody};
  auto task = std::make_shared<CameraTask>(std::move(source), status, parts, std::move(before));
  tasks_[id] = Camera{task, status, std::move(custody), std::move(lease), false,
                      clock_.now() + settings_.summary_interval};
}

void Worker::add(Source source) {
  CameraId id = source.config.camera;
  auto lease = source.lease;
  auto found = tasks_.find(id);
  if (found != tasks_.end() && source.same_dial(*found->second.task->source())) {
    log::info("source.changed", "configuration taken over without a new connection").with("camera_uuid", id);
    found->second.task->change(std::move(source));
    found->second.status->update([](CameraView& view) { view.blind.reset(); });  // perhaps another model
  } else {
    log::info(found == tasks_.end() ? "source.added" : "source.replaced").with("camera_uuid", id);
    std::optional<LeaseGrant> kept;
    std::shared_ptr<CameraTask> before = ending(id);
    auto custody = std::make_shared<Custody>();
    if (found != tasks_.end()) {
      kept = found->second.lease;
      custody = found->second.custody;
      before = found->second.task;
      stop_task(id);
    }
    start(std::move(source), kept, std::move(custody), std::move(before));
  }
  if (lease) grant(*lease);
}

void Worker::stop_task(CameraId camera) {
  auto found = tasks_.find(camera);
  found->second.task->stop();
  ending_.push_back(found->second.task);
  tasks_.erase(found);
  scheduler_.withdraw(camera);
  std::lock_guard guard(statuses_mutex_);
  statuses_.erase(camera);
}

void Worker::give_up(CameraId camera) {
  tasks_.at(camera).custody->end();
  stop_task(camera);
}

// The latest task that had the camera and has not ended.
std::shared_ptr<CameraTask> Worker::ending(const CameraId& camera) const {
  auto of_it = [&](const auto& task) { return !task->ended() && task->source()->config.camera == camera; };
  auto found = std::find_if(ending_.rbegin(), ending_.rend(), of_it);
  return found == ending_.rend() ? nullptr : *found;
}

asio::awaitable<std::optional<WallTime>> Worker::remove(CameraId camera) {
  if (tasks_.contains(camera)) give_up(camera);
  return follow_out(std::move(camera));
}

asio::awaitable<std::optional<WallTime>> Worker::follow_out(CameraId camera) {
  // The camera's last event is the status that its thread reports when it ends. A second request that comes while the
  // first is under way is not answered sooner.
  auto task = ending(camera);
  for (Instant until = clock_.now() + 1s; task && !task->ended() && clock_.now() < until;) co_await clock_.wait(5ms);
  if (tasks_.contains(camera)) co_return std::nullopt;  // added again meanwhile: another task has the camera
  std::optional<WallTime> last = co_await outlet_.silence(camera);
  if (tasks_.contains(camera)) co_return last;  // added again meanwhile
  outlet_.forget(camera);
  reporter_.forget(camera);
  log::info("source.removed").with("camera_uuid", camera);
  co_return last;
}

asio::awaitable<std::optional<WallTime>> Worker::silence(CameraId camera) {
  if (auto found = tasks_.find(camera); found != tasks_.end()) found->second.lease.reset();
  // A camera that is being removed may still have an event on its way.
  co_return co_await outlet_.silence(camera);
}

void Worker::grant(const LeaseGrant& lease) {
  auto found = tasks_.find(lease.camera);
  if (found == tasks_.end()) return;
  found->second.lease = lease;
  LeaseGrant right = lease;
  if (right.after) *right.after += same_picture(found->second.status->view(clock_.now()).fps);
  outlet_.set_right(right);
  look_after(found->second, clock_.now());
}

void Worker::lose(const CameraId& camera) {
  outlet_.lost(camera);
  if (!tasks_.contains(camera)) return;
  // Only the control plane knows which of these reasons it is.
  log::warn("lease.lost", "the lease is gone: taken by another, revoked, or the camera was disabled or removed. The "
                          "camera is stopped and what waited on disk for it is dropped; `weir lease events` says why")
      .with("camera_uuid", camera);
  give_up(camera);
  reporter_.forget(camera);
  lost_.insert(camera);
  lost_any_ = true;
}

void Worker::refused(const CameraId& camera, lease::Version version) {
  auto found = tasks_.find(camera);
  if (found != tasks_.end() && found->second.lease && found->second.lease->version == version) lose(camera);
}

// An owner whose manager has been silent for the whole grace stops decoding, and keeps its spool for the answer.
void Worker::look_after(Camera& camera, Instant now) {
  bool abandoned = camera.lease && now > camera.lease->valid_until + with_recovery(settings_.outage_grace);
  if (abandoned == camera.paused) return;
  camera.paused = abandoned;
  camera.task->pause(abandoned);
  const CameraId& id = camera.task->source()->config.camera;
  if (abandoned)
    log::warn("outage.paused", "no lease was confirmed for the whole outage_grace_s; decoding pauses")
        .with("camera_uuid", id);
  else
    log::info("outage.over", "the lease was confirmed; decoding goes on").with("camera_uuid", id);
}

Readiness Worker::readiness() const {
  Instant now = clock_.now();
  Readiness r{.cameras = static_cast<int>(tasks_.size())};
  for (const auto& [id, camera] : tasks_)
    if (delivers(*camera.task->source(), camera.status->view(now), now)) ++r.delivering;
  r.ready = !draining_ && r.delivering * 100 >= settings_.readiness_quorum_pct * r.cameras;
  return r;
}

std::vector<Trouble> Worker::troubles() const {
  Instant now = clock_.now();
  std::vector<Trouble> out;
  for (const auto& [id, camera] : tasks_) {
    Duration late = camera.task->late(now);
    if (camera.task->ended()) out.push_back({id, "its thread has ended"});
    else if (late > 0s)
      out.push_back({id, fmt::format("its thread has hung for {:.0f} s", seconds(late + settings_.patience))});
  }
  for (const CameraId& id : pool_->stuck(settings_.patience)) out.push_back({id, "the detector hangs on its picture"});
  return out;
}

json::object Worker::describe(const Camera& camera, Instant now) const {
  auto source = camera.task->source();
  CameraView v = camera.status->view(now);
  json::object out{{"camera_uuid", source->config.camera.str()},
                   {"name", source->config.name},
                   {"site_id", source->config.site.str()},
                   {"tenant_id", source->config.tenant.str()},
                   {"state", to_string(v.state)},
                   {"paused", camera.paused},
                   {"fps", rounded(v.fps)},
                   {"behind", v.behind},
                   {"codec", v.facts.codec},
                   {"width", v.facts.width},
                   {"height", v.facts.height},
                   {"decoding", v.decoding},
                   {"keyframe_interval_s", rounded(v.keyframe_interval_s)},
                   {"received", v.counts.received},
                   {"decoded", v.counts.decoded},
                   {"inferred", v.counts.inferred},
                   {"dropped", v.counts.dropped},
                   {"dials", v.counts.dials},
                   {"errors", v.counts.errors}};
  if (v.attention) out["looked_fps"] = rounded(v.attention->looked), out["wanted_fps"] = rounded(v.attention->wanted);
  out["last_frame_age_s"] = v.last_frame ? rounded(seconds(now - *v.last_frame)) : json::value(nullptr);
  auto trouble = [&](const restart::StreamError& error, Instant retry_at) {
    out["error"] = json::object{{"code", restart::to_string(error.code)},
                                {"detail", error.detail},
                                {"retry_in_ms", std::max(Duration(0), retry_at - now) / 1ms}};
  };
  if (v.state != StreamState::streaming) {
    if (v.error) trouble(*v.error, v.retry_at);
  } else if (v.blind) {
    trouble(*v.blind, v.model_retry_at);
  }
  if (v.detected_at) {
    json::array seen;
    for (const Detection& d : v.detections) seen.push_back(json::object{{"class", d.label}, {"conf", rounded(d.score)}});
    out["last_detection"] = json::object{{"ts", to_iso(*v.detected_at)}, {"detections", std::move(seen)}};
  }
  if (camera.lease) {
    out["lease_version"] = camera.lease->version.n;
    out["lease_valid_s"] = rounded(seconds(camera.lease->valid_until - now));
  }
  return out;
}

json::object Worker::state() const {
  Instant now = clock_.now();
  json::array cameras;
  for (const auto& [id, camera] : tasks_) cameras.push_back(describe(camera, now));
  Readiness r = readiness();
  PublisherCounters c = outlet_.counters();
  return {{"standby", standby_},
          {"draining", draining_},
          {"ready", r.ready},
          {"delivering", r.delivering},
          {"pipeline_fps", rounded(pool_->pictures_per_second())},
          {"published", c.published},
          {"spooled", c.spooled},
          {"cameras", std::move(cameras)}};
}

link::Look Worker::look() const {
  Instant now = clock_.now();
  link::Look out{.protocol = link::kProtocol};
  for (const auto& [id, camera] : tasks_) {
    CameraView v = camera.status->view(now);
    bool streaming = v.state == StreamState::streaming;
    link::SeenCamera seen{.camera = id,
                          .streaming = streaming,
                          .failures = v.counts.errors,
                          .inferred = v.counts.inferred,
                          .behind = v.behind};
    if (v.last_frame) seen.frame_age = now - *v.last_frame;
    if (const auto& wrong = streaming ? v.blind : v.error) seen.error = wrong->code;
    out.cameras.push_back(std::move(seen));
  }
  for (Trouble& each : troubles()) out.stuck.push_back(std::move(each.camera));
  return out;
}

PicturePtr Worker::latest(const CameraId& camera) const {
  auto found = tasks_.find(camera);
  return found == tasks_.end() ? nullptr : found->second.status->latest();
}

asio::awaitable<void> Worker::run() {
  co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
  while ((co_await asio::this_coro::cancellation_state).cancelled() == asio::cancellation_type::none) {
    Instant now = clock_.now();
    for (auto& [id, camera] : tasks_) {
      look_after(camera, now);
      auto source = camera.task->source();
      bool turned = camera.status->judge(now, source->config.max_fps);
      CameraView view = camera.status->view(now);
      reporter_.measure(*source, view, now);
      if (turned && view.state == StreamState::streaming) reporter_.attention_changed(*source, view);
      // How often a camera is looked at is reported as soon as it is known, so that no one takes silence for a sign
      // that all is well.
      bool news = !std::exchange(camera.attention_known, view.attention.has_value()) && view.attention;
      if (news || now >= camera.next_summary) {
        Instant due = news ? now : camera.next_summary;
        camera.next_summary = std::max(due + settings_.summary_interval, now);
        reporter_.summary(*source, view);
      }
    }
    reporter_.measure_pipeline(pool_->pictures_per_second(), outlet_.counters());
    std::erase_if(ending_, [](const auto& task) { return task->ended(); });
    co_await clock_.wait(kLookEvery);
  }
}

asio::awaitable<bool> Worker::drain(Instant until) {
  draining_ = true;
  while (!tasks_.empty()) give_up(tasks_.begin()->first);
  while (!ending_.empty() && clock_.now() < until) {
    std::erase_if(ending_, [](const auto& task) { return task->ended(); });
    if (!ending_.empty()) co_await clock_.wait(10ms);
  }
  for (const auto& task : ending_)
    log::warn("camera.hung", "the camera's thread did not end in time, in a name lookup or a library; it ends with the "
                             "process, without a last status")
        .with("camera_uuid", task->source()->config.camera);
  co_return ending_.empty();
}

}  // namespace weir::worker
