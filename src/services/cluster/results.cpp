#include "results.hpp"

#include "weir/base/random.hpp"
#include "weir/event/routing.hpp"

#include <algorithm>

namespace weir::cluster {

namespace {

constexpr Duration kIdle = 60s;
constexpr Duration kRotation = 100ms;   // what a later version may take to come
constexpr Duration kUnsent = 500ms;     // before results are sent again
constexpr size_t kWaitingMax = 10'000;  // events; more are left out
constexpr size_t kBatchMax = 200;

}  // namespace

Results::~Results() {
  if (!waiting_.empty()) count_lost("term_over", waiting_.size());
}

void Results::count_lost(std::string_view why, size_t many) {
  metrics_.counter("weir_cluster_results_lost_total", "Results of workers that were not published.",
                   {{"why", std::string(why)}}).add(static_cast<double>(many));
}

void Results::take(const std::string& worker, const ImageDetection& detection, const ClusterWish& wish) {
  if (waiting_.size() >= kWaitingMax) return count_lost("queue_full", 1);
  const DesiredSubscription& wanted = wish.subscription;
  auto camera = CameraId::trusted(detection.subscription.camera);
  event::Event event{.topic = std::string(event::kDetectionsTopic),
                     .routing_key = event::detections_key({wanted.tenant, wish.site, camera}),
                     .event_id = event::make_event_id(clock_.wall(), random_hex(8))};
  json::array boxes;
  for (const Box& box : detection.boxes)
    boxes.push_back(json::object{{"class", box.label}, {"conf", box.score},
                                 {"bbox_xyxy", json::array(box.box.begin(), box.box.end())}});
  json::object payload = write_detection(detection);
  payload["event_id"] = event.event_id;
  payload["ts"] = to_iso(detection.timestamp);
  payload["runner_id"] = process_.str();
  payload["tenant_id"] = wanted.tenant.str();
  payload["site_id"] = wish.site.str();
  payload["camera_uuid"] = camera.str();
  payload["display_id"] = detection.subscription.display;
  payload["worker"] = worker;
  payload["detections"] = std::move(boxes);
  event.payload = json::to_text(payload);
  event.captured = detection.timestamp;
  waiting_.push_back({std::move(camera), std::move(event)});
  alarm_.ring();
}

boost::asio::awaitable<void> Results::run() {
  while (!stopping_) {
    if (waiting_.empty() || lease_.version().n == 0) {
      co_await alarm_.wait_until(clock_.now() + (waiting_.empty() ? kIdle : kRotation));
      continue;
    }
    std::vector<event::Event> batch;
    for (size_t i = 0; i < std::min(waiting_.size(), kBatchMax); ++i) {
      event::Stamp stamp{waiting_[i].camera, lease_.version(), lease_.valid_until()};
      batch.push_back(event::stamped(waiting_[i].event, std::move(stamp)));
    }
    size_t sent = batch.size();
    auto answers = co_await bus_.publish(std::move(batch));
    if (!answers) {
      co_await clock_.wait(kUnsent);
      continue;
    }
    auto stale = static_cast<size_t>(std::ranges::count(*answers, Confirmation::stale));
    if (stale > 0) count_lost("stale", stale);
    metrics_.counter("weir_cluster_results_total", "Results of workers that were published.")
        .add(static_cast<double>(sent - stale));
    waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(sent));
  }
}

}  // namespace weir::cluster
