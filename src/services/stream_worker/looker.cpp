#include "weir/stream_worker/looker.hpp"

#include "weir/base/clock.hpp"
#include "weir/base/log.hpp"

#include <pthread.h>

namespace weir::stream_worker {

Looker::Looker(LookerConfig config, net::Metrics& metrics)
    : config_(std::move(config)),
      looks_(metrics.counter("weir_stream_worker_looks_total", "Pictures that the detector looked at")),
      failures_(metrics.counter("weir_stream_worker_look_failures_total", "Pictures that could not be looked at")),
      took_(metrics.histogram("weir_stream_worker_look_seconds", "How long the detector took for a picture",
                              net::Metrics::latency_buckets())),
      thread_([this] { work(); }) {
  ::pthread_setname_np(thread_.native_handle(), "looker");
}

Looker::~Looker() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

// A quarter of the step is allowed for: pictures do not come exactly when they are due.
bool Looker::due(Instant now) {
  Duration step = from_seconds(1 / config_.max_fps);
  if (offered_ && now - *offered_ < step) return false;
  offered_ = offered_ && now - *offered_ < step + step / 4 ? *offered_ + step : now;
  return true;
}

void Looker::offer(PicturePtr picture) {
  {
    std::lock_guard lock(mutex_);
    waiting_ = std::move(picture);
  }
  changed_.notify_all();
}

std::shared_ptr<const Sighting> Looker::newest() const {
  std::lock_guard lock(mutex_);
  return newest_;
}

void Looker::work() {
  for (;;) {
    PicturePtr picture;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stop_ || waiting_ != nullptr; });
      if (stop_) return;
      picture = std::exchange(waiting_, nullptr);
    }
    look(picture);
  }
}

void Looker::look(const PicturePtr& picture) {
  Instant begun = boot_now();
  if (rests_until_ && begun < *rests_until_) return;
  auto detections = detect(picture);
  if (!detections) return failed(detections.error());
  complained_ = false;
  looks_.add();
  Duration took = boot_now() - begun;
  took_.observe(seconds(took));
  auto sighting = std::make_shared<Sighting>(Sighting{.detections = *std::move(detections),
                                                      .width = picture->width(),
                                                      .height = picture->height(),
                                                      .stream_time = picture->stream_time,
                                                      .captured = picture->captured,
                                                      .received = picture->received});
  {
    std::lock_guard lock(mutex_);
    newest_ = sighting;
  }
  config_.seen(*picture, *sighting, took);
}

Result<std::vector<Detection>> Looker::detect(const PicturePtr& picture) {
  if (detector_ == nullptr) {
    TRY(made, config_.make_detector());
    detector_ = std::move(made);
  }
  Look one{.picture = picture, .region = {}, .min_score = config_.min_score};
  TRY(found, detector_->detect({&one, 1}));
  std::vector<Detection> detections = found.empty() ? std::vector<Detection>{} : std::move(found.front());
  std::erase_if(detections, [this](const Detection& each) { return each.score < config_.min_score; });
  return detections;
}

void Looker::failed(const Error& error) {
  failures_.add();
  detector_.reset();
  rests_until_ = boot_now() + config_.rest;
  if (std::exchange(complained_, true)) return;
  log::error("stream.detector_failed", fmt::format("nothing is detected: {}", error.message))
      .with("retryInSeconds", seconds(config_.rest));
}

}  // namespace weir::stream_worker
