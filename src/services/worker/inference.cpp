#include "weir/worker/inference.hpp"

#include "weir/base/clock.hpp"
#include "weir/base/log.hpp"
#include "weir/base/random.hpp"
#include "weir/restart/retry_policy.hpp"
#include "weir/worker/crash_record.hpp"
#include "weir/zone/judge.hpp"

#include <algorithm>

namespace weir::worker {

namespace {

// The camera's crop inside the picture it was really sent; a crop that lies outside leaves the whole picture.
Region region_of(const camera::Config& config, const Picture& picture) {
  Region whole{0, 0, picture.width(), picture.height()};
  if (!config.crop) return whole;
  double sx = 1, sy = 1;
  if (config.frame_size) {
    sx = static_cast<double>(picture.width()) / config.frame_size->width;
    sy = static_cast<double>(picture.height()) / config.frame_size->height;
  }
  Region crop{static_cast<int>(config.crop->x * sx), static_cast<int>(config.crop->y * sy),
              static_cast<int>(config.crop->width * sx), static_cast<int>(config.crop->height * sy)};
  crop.width = std::min(crop.width, whole.width - crop.x);
  crop.height = std::min(crop.height, whole.height - crop.y);
  return crop.width >= 16 && crop.height >= 16 ? crop : whole;
}

}  // namespace

class InferencePool::Thread {
 public:
  explicit Thread(InferencePool& pool) : pool_(pool) {}

  void run(const std::stop_token& stop) {
    for (const camera::Model& model : pool_.preload_) load(model);
    while (!stop.stop_requested()) {
      std::vector<Work> works =
          pool_.scheduler_.take(stop, [this](const camera::Model& model) { return batch_max(model); });
      if (works.empty()) continue;
      {
        std::lock_guard guard(pool_.mutex_);
        pool_.busy_[this] = {works.front().source->config.camera, boot_now()};
      }
      look(works);
      {
        std::lock_guard guard(pool_.mutex_);
        pool_.busy_.erase(this);
      }
      for (const Work& work : works) pool_.scheduler_.done(work.source->config.camera);
    }
  }

 private:
  struct Loaded {
    std::unique_ptr<Detector> detector = {};
    restart::StreamError error = {};
    Instant retry_at{};
    int failures = 0;
    std::map<CameraId, int> told = {};  // the failure that a camera was last told of
    Instant used{};
  };
  static std::string key(const camera::Model& model) { return model.detector + "/" + model.name; }

  size_t batch_max(const camera::Model& model) {
    auto found = models_.find(key(model));
    return found == models_.end() || !found->second.detector ? 1 : found->second.detector->batch_max();
  }

  void fail(Loaded& model, const Error& error) {
    model.detector.reset();
    model.error = stream_error(error);
    model.retry_at = boot_now() + restart::retry_delay(model.error.code, model.failures++, random_unit());
  }

  // Models come and go over the years of a process, each with a file of its own; what nobody asks for takes no memory.
  void unload_idle(Instant now) {
    std::erase_if(models_, [&](const auto& each) {
      bool wanted = std::ranges::any_of(pool_.preload_, [&](const auto& model) { return key(model) == each.first; });
      return !wanted && now - each.second.used > pool_.idle_most_;
    });
  }

  Loaded& load(const camera::Model& wanted) {
    Instant now = boot_now();
    if (!models_.contains(key(wanted))) unload_idle(now);
    Loaded& model = models_[key(wanted)];
    model.used = now;
    if (model.detector || now < model.retry_at) return model;
    auto made = pool_.make_(wanted);
    if (made) {
      model.detector = std::move(*made);
    } else {
      fail(model, made.error());
    }
    return model;
  }

  void tell(Loaded& model, const std::vector<Work>& works) {
    for (const Work& work : works) work.custody->speak([&] { tell(model, *work.source); });
  }

  void tell(Loaded& model, const Source& source) {
    if (auto status = pool_.status_of_(source.config.camera))
      status->update([&](CameraView& view) { view.blind = model.error, view.model_retry_at = model.retry_at; });
    int& told = model.told[source.config.camera];
    if (std::exchange(told, model.failures) == model.failures) return;
    pool_.reporter_.failed(source, model.error, std::max(Duration(0), model.retry_at - boot_now()));
  }

  void look(const std::vector<Work>& works) {
    Serving serving(works.front().source->config.camera);
    Loaded& model = load(works.front().source->config.model);
    if (!model.detector) return tell(model, works);
    std::vector<Look> looks;
    for (const Work& work : works)
      looks.push_back({work.picture, region_of(work.source->config, *work.picture), zone::least_score(work.source->config)});
    Instant began = boot_now();
    auto found = model.detector->detect(looks);
    double took = seconds(boot_now() - began) / static_cast<double>(works.size());
    if (!found) {
      fail(model, found.error());
      return tell(model, works);
    }
    if (std::exchange(model.failures, 0) != 0) model.told.clear();  // the next failure is news again
    for (size_t i = 0; i < works.size(); ++i)
      works[i].custody->speak([&] { report(works[i], std::move((*found)[i]), took); });
  }

  void report(const Work& work, std::vector<Detection> found, double took) {
    const Source& source = *work.source;
    auto status = pool_.status_of_(source.config.camera);
    if (!status) return;  // stopped meanwhile
    const Picture& picture = *work.picture;
    auto kept = zone::judge(std::move(found), source.config, picture.width(), picture.height());
    status->attend([](Attention& attention) { attention.looked(boot_now()); });
    status->update([&](CameraView& view) {
      ++view.counts.inferred;
      view.blind.reset();
      if (kept.empty()) return;
      view.detections = kept;
      view.detected_at = picture.captured;
    });
    {
      std::lock_guard guard(pool_.mutex_);
      pool_.meter_.count(boot_now());
    }
    pool_.reporter_.looked(source, picture, work.frame_id, kept, status->view(boot_now()).fps, took, work.handled);
  }

  InferencePool& pool_;
  std::map<std::string, Loaded> models_;
};

InferencePool::InferencePool(Scheduler& scheduler, Reporter& reporter, DetectorFactory make, StatusOf status_of,
                             int threads, std::vector<camera::Model> preload, Duration idle_most)
    : scheduler_(scheduler),
      reporter_(reporter),
      make_(std::move(make)),
      status_of_(std::move(status_of)),
      preload_(std::move(preload)),
      idle_most_(idle_most) {
  for (int i = 0; i < threads; ++i)
    threads_.emplace_back([this](const std::stop_token& stop) { Thread(*this).run(stop); });
}

InferencePool::~InferencePool() { stop(); }

void InferencePool::stop() {
  for (std::jthread& thread : threads_) thread.request_stop();
  threads_.clear();
}

std::vector<CameraId> InferencePool::stuck(Duration patience) const {
  std::lock_guard guard(mutex_);
  std::vector<CameraId> out;
  for (const auto& [thread, busy] : busy_)
    if (boot_now() - busy.since > patience) out.push_back(busy.camera);
  return out;
}

double InferencePool::pictures_per_second() const {
  std::lock_guard guard(mutex_);
  return meter_.rate(boot_now());
}

}  // namespace weir::worker
