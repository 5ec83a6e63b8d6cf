#include "weir/worker/reporter.hpp"

#include "weir/base/clock.hpp"
#include "weir/base/log.hpp"
#include "weir/base/random.hpp"
#include "weir/event/events.hpp"

namespace weir::worker {

namespace {

constexpr std::string_view kOverloaded = "OVERLOADED";

event::Place place_of(const Source& source) {
  return {source.config.tenant, source.config.site, source.config.camera};
}

std::string new_event_id() { return event::make_event_id(wall_now(), random_hex(10)); }

// Log fields that every line about a camera has.
log::Entry&& about(log::Entry&& entry, const Source& source) {
  return std::move(entry)
      .with("camera_uuid", source.config.camera)
      .with("site_id", source.config.site)
      .with("tenant_id", source.config.tenant);
}

Attention::Rates rates_of(const CameraView& view) { return view.attention.value_or(Attention::Rates{}); }

std::string how_often(const CameraView& view) {
  Attention::Rates rates = rates_of(view);
  return fmt::format("looked at {:.1f} of {:.1f} times a second", rates.looked, rates.wanted);
}

// A camera that nobody looks at, or too seldom, streams like any other: its status says so.
void say_attention(event::StreamStatus& status, const CameraView& view) {
  if (status.state != StreamState::streaming) return;
  if (view.attention) status.looked_fps = view.attention->looked, status.wanted_fps = view.attention->wanted;
  if (view.blind) {
    status.code = restart::to_string(view.blind->code);
    status.detail = view.blind->detail;
  } else if (view.behind) {
    status.code = kOverloaded;
    status.detail = how_often(view);
  }
}

}  // namespace

struct Reporter::Instruments {
  Instruments(net::Metrics& m, const CameraId& camera) : metrics(m), labels{{"camera_uuid", camera.str()}} {}

  // A counter that follows a number counted elsewhere. Loop thread only.
  void follow(const char* name, const char* help, std::int64_t count) {
    std::int64_t more = count - std::exchange(counted[name], count);
    metrics.counter(name, help, labels).add(static_cast<double>(more));
  }

  net::Metrics& metrics;
  const net::Metrics::Labels labels;
  std::map<std::string_view, std::int64_t> counted;
  net::Gauge& up = metrics.gauge("stream_up", "1 while the camera delivers pictures", labels);
  net::Gauge& age =
      metrics.gauge("last_frame_age_seconds", "Seconds since the last picture was received", labels);
  net::Gauge& fps = metrics.gauge("stream_fps", "Pictures received a second", labels);
  net::Gauge& looked = metrics.gauge("weir_camera_looked_fps", "Pictures looked at a second", labels);
  net::Gauge& wanted =
      metrics.gauge("weir_camera_wanted_fps", "Pictures a second that were due while something moved", labels);
  net::Gauge& behind =
      metrics.gauge("weir_camera_behind", "1 while the camera is looked at less often than wanted", labels);
  net::Histogram& inference = metrics.histogram("inference_latency_seconds", "Time the detector took for a picture",
                                                net::Metrics::latency_buckets(), labels);
  net::Histogram& e2e = metrics.histogram("e2e_latency_seconds", "From a picture's arrival to its event",
                                          net::Metrics::latency_buckets(), labels);
};

Reporter::Reporter(Outlet& outlet, net::Metrics& metrics, RunnerId runner, std::string shard)
    : outlet_(outlet), metrics_(metrics), runner_(std::move(runner)), shard_(std::move(shard)) {}

void Reporter::take_on(const CameraId& camera) {
  std::lock_guard guard(mutex_);
  auto& made = cameras_[camera];
  if (!made) made = std::make_shared<Instruments>(metrics_, camera);
}

std::shared_ptr<Reporter::Instruments> Reporter::instruments(const CameraId& camera) {
  std::lock_guard guard(mutex_);
  auto found = cameras_.find(camera);
  return found == cameras_.end() ? nullptr : found->second;
}

void Reporter::state_changed(const Source& source, StreamState state, const CameraView& view) {
  // For a camera that failed and is tried again, the change of state is only a debug line: the log has the failure.
  auto level = view.error ? log::Level::debug : log::Level::info;
  about(log::Entry(level, "stream.state", {}), source)
      .with("state", to_string(state))
      .with("codec", view.facts.codec)
      .with("width", view.facts.width)
      .with("height", view.facts.height);
  if (auto known = instruments(source.config.camera)) known->up.set(state == StreamState::streaming ? 1 : 0);
  event::StreamStatus status = status_of(source, state, view);
  if (state == StreamState::streaming) status.fps = view.fps > 0 ? view.fps : view.facts.fps;
  outlet_.say(std::move(status), event::Kind::status);
}

event::StreamStatus Reporter::status_of(const Source& source, StreamState state, const CameraView& view) const {
  event::StreamStatus status{.event_id = new_event_id(),
                             .ts = wall_now(),
                             .state = state,
                             .place = place_of(source),
                             .runner = runner_,
                             .shard_id = shard_};
  // The control plane compares zones with it.
  if (view.main_size) status.size = {view.main_size->width, view.main_size->height};
  say_attention(status, view);
  return status;
}

event::StreamStatus Reporter::summary_of(const Source& source, const CameraView& view) const {
  event::StreamStatus status = status_of(source, view.state, view);
  status.fps = view.fps;
  if (view.last_frame) {
    status.last_frame_ts = view.last_frame_at;
    status.last_frame_age_s = seconds(boot_now() - *view.last_frame);
  }
  return status;
}

void Reporter::summary(const Source& source, const CameraView& view) {
  outlet_.say(summary_of(source, view), event::Kind::summary);
}

void Reporter::attention_changed(const Source& source, const CameraView& view) {
  auto level = view.behind ? log::Level::warn : log::Level::info;
  std::string text = view.behind ? how_often(view) + ": this machine has too much to do"
                                 : "looked at as often as wanted again, or nothing moves";
  about(log::Entry(level, view.behind ? "stream.behind" : "stream.caught_up", text), source)
      .with("error_code", view.behind ? kOverloaded : std::string_view())
      .with("looked_fps", rates_of(view).looked)
      .with("wanted_fps", rates_of(view).wanted);
  outlet_.say(summary_of(source, view), event::Kind::status);
}

// Asking for a counter makes its camera's series appear, which must not happen after the camera was forgotten.
void Reporter::count_error(const CameraId& camera, std::string_view code) {
  std::lock_guard guard(mutex_);
  if (!cameras_.contains(camera)) return;
  metrics_
      .counter("stream_errors_total", "Failures of a camera's stream by their cause",
               {{"camera_uuid", camera.str()}, {"code", std::string(code)}})
      .add();
}

void Reporter::failed(const Source& source, const restart::StreamError& error, Duration retry_in, int tries) {
  auto code = restart::to_string(error.code);
  auto retry_in_ms = std::chrono::duration_cast<std::chrono::milliseconds>(retry_in).count();
  auto level = tries == 0 ? log::Level::debug : log::Level::warn;
  std::string text = tries > 1 ? fmt::format("still {}, {} tries: {}", code, tries, error.detail) : error.detail;
  about(log::Entry(level, "stream.error", text), source).with("error_code", code).with("retry_in_ms", retry_in_ms);
  count_error(source.config.camera, code);
  event::StreamErrorEvent event{.event_id = new_event_id(),
                                .ts = wall_now(),
                                .place = place_of(source),
                                .runner = runner_,
                                .code = std::string(code),
                                .detail = error.detail,
                                .retry_in_ms = retry_in_ms};
  outlet_.say(std::move(event));
}

void Reporter::looked(const Source& source, const Picture& picture, std::int64_t frame_id,
                      const std::vector<Detection>& detections, double fps, double inference_s, Duration handled) {
  double e2e_s = seconds(boot_now() - picture.received);
  if (auto known = instruments(source.config.camera)) {
    known->inference.observe(inference_s);
    known->e2e.observe(e2e_s);
  }
  if (detections.empty()) return;
  event::DetectionEvent event{.event_id = new_event_id(),
                              .ts = picture.captured,
                              .runner = runner_,
                              .shard_id = shard_,
                              .place = place_of(source),
                              .frame_id = frame_id,
                              .fps = fps,
                              .inference_s = inference_s,
                              .e2e_s = e2e_s};
  for (const Detection& d : detections)
    event.detections.push_back({d.label, d.score, {d.box.x1, d.box.y1, d.box.x2, d.box.y2}, d.zone_ids});
  outlet_.say(std::move(event), boot_now() - handled);
}

void Reporter::measure(const Source& source, const CameraView& view, Instant now) {
  auto instruments = this->instruments(source.config.camera);
  if (!instruments) return;
  instruments->up.set(view.state == StreamState::streaming ? 1 : 0);
  // A camera that never delivered has been silent since this worker began with it, however often it was tried.
  instruments->age.set(seconds(now - view.last_frame.value_or(view.taken_on)));
  instruments->fps.set(view.fps);
  instruments->looked.set(rates_of(view).looked);
  instruments->wanted.set(rates_of(view).wanted);
  instruments->behind.set(view.behind ? 1 : 0);
  instruments->follow("weir_pictures_received_total", "Pictures received", view.counts.received);
  instruments->follow("weir_pictures_decoded_total", "Pictures decoded", view.counts.decoded);
  instruments->follow("weir_pictures_inferred_total", "Pictures looked at", view.counts.inferred);
  instruments->follow("weir_pictures_dropped_total",
                      "Pictures replaced by a newer one before they were looked at", view.counts.dropped);
  instruments->follow("weir_camera_dials_total", "Connections opened to the camera", view.counts.dials);
}

void Reporter::measure_pipeline(double fps, const PublisherCounters& now) {
  metrics_.gauge("pipeline_fps", "Pictures looked at a second", {{"runner_id", runner_.str()}, {"shard_id", shard_}})
      .set(fps);
  auto follow = [this](const char* name, const char* help, std::uint64_t count, std::uint64_t before,
                       const net::Metrics::Labels& labels = {}) {
    metrics_.counter(name, help, labels).add(static_cast<double>(count - before));
  };
  follow("weir_events_published_total", "Events that the bus has for good", now.published, counted_.published);
  follow("weir_events_spooled_total", "Events that took the way over the disk", now.spooled, counted_.spooled);
  follow("weir_events_stale_total", "Events that the bus refused because of their version", now.stale, counted_.stale);
  follow("weir_bus_errors_total", "Requests that the bus did not answer", now.bus_errors, counted_.bus_errors);
  for (size_t i = 0; i < kDropNames.size(); ++i)
    follow("weir_events_dropped_total", "Events that were given up, by the reason", now.dropped[i], counted_.dropped[i],
           {{"reason", std::string(kDropNames[i])}});
  metrics_.gauge("weir_events_queued", "Events that wait in memory").set(static_cast<double>(now.queued));
  metrics_.gauge("weir_spool_bytes", "What waits on disk").set(static_cast<double>(now.spool_bytes));
  metrics_.gauge("weir_spool_disk_trouble", "1 while the disk does not take what should be kept")
      .set(now.disk_trouble ? 1 : 0);
  counted_ = now;
}

void Reporter::forget(const CameraId& camera) {
  std::lock_guard guard(mutex_);
  cameras_.erase(camera);
  metrics_.retire("camera_uuid", camera.str());
}

}  // namespace weir::worker
