// Reporter: what a worker reports: everything that happens becomes an event, a metric and a log line in one place.
//
// Status changes are reported at once, summaries periodically, errors with the time of the next try, detections as
// they are judged. No report holds a URL or a credential. Any thread.
#pragma once

#include "weir/net/metrics.hpp"
#include "weir/worker/camera_status.hpp"
#include "weir/worker/outlet.hpp"
#include "weir/worker/shard_config.hpp"

#include <map>
#include <memory>

namespace weir::worker {

class Reporter {
 public:
  Reporter(Outlet& outlet, net::Metrics& metrics, RunnerId runner, std::string shard);

  void state_changed(const Source& source, StreamState state, const CameraView& view);
  void summary(const Source& source, const CameraView& view);
  // The camera has fallen behind what is wanted of it, or caught up.
  void attention_changed(const Source& source, const CameraView& view);
  // `tries` in a row failed so; 0: the log has it already (see Repeats), only the event and the metric repeat it.
  void failed(const Source& source, const restart::StreamError& error, Duration retry_in, int tries = 1);
  // `handled`: the time from the decoder to the detector's queue; waiting for the detector and its own time left out.
  void looked(const Source& source, const Picture& picture, std::int64_t frame_id,
              const std::vector<Detection>& detections, double fps, double inference_s, Duration handled);
  // Brings the gauges of a camera up to date; `pipeline_fps` is the shard's.
  void measure(const Source& source, const CameraView& view, Instant now);
  void measure_pipeline(double fps, const PublisherCounters& counters);
  // A camera has series from when it is taken on until it is forgotten. What its thread reports after that is still
  // published, but changes no metric: a camera that is gone must not look like one that is down.
  void take_on(const CameraId& camera);
  void forget(const CameraId& camera);

 private:
  struct Instruments;
  event::StreamStatus status_of(const Source& source, StreamState state, const CameraView& view) const;
  event::StreamStatus summary_of(const Source& source, const CameraView& view) const;
  std::shared_ptr<Instruments> instruments(const CameraId& camera);  // none of a camera that was forgotten
  void count_error(const CameraId& camera, std::string_view code);

  Outlet& outlet_;
  net::Metrics& metrics_;
  const RunnerId runner_;
  const std::string shard_;
  std::mutex mutex_;
  std::map<CameraId, std::shared_ptr<Instruments>> cameras_;
  PublisherCounters counted_;  // loop thread only
};

}  // namespace weir::worker
