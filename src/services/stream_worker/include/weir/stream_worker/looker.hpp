// Looker: looks at a stream's pictures on a thread of its own, a few a second, always at the newest.
//
// Its mailbox holds one picture: while the detector works, a newer picture replaces the one that waits. The detector is
// made on that thread, at the first picture; where it cannot be made, or fails, the log says so once, nothing is seen,
// and it is made anew after a while. `due` and `offer` belong to one thread at a time; `newest` may be called from any;
// `seen` is called on the looker's own.
#pragma once

#include "weir/net/metrics.hpp"
#include "weir/ports/detector.hpp"
#include "weir/ports/looks.hpp"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

namespace weir::stream_worker {

struct LookerConfig {
  double max_fps = 5;
  double min_score = 0.4;
  Duration rest = 30s;  // before a detector that failed is made anew
  std::function<Result<std::unique_ptr<Detector>>()> make_detector;
  // What was seen in a picture, and how long the detector took for it.
  std::function<void(const Picture&, const Sighting&, Duration)> seen = [](const Picture&, const Sighting&, Duration) {};
};

class Looker final : public Looks {
 public:
  Looker(LookerConfig config, net::Metrics& metrics);
  ~Looker() override;  // waits for the picture that is being looked at
  Looker(const Looker&) = delete;

  bool due(Instant now) override;
  void offer(PicturePtr picture) override;
  std::shared_ptr<const Sighting> newest() const override;

 private:
  void work();
  void look(const PicturePtr& picture);
  Result<std::vector<Detection>> detect(const PicturePtr& picture);
  void failed(const Error& error);

  const LookerConfig config_;
  net::Counter& looks_;
  net::Counter& failures_;
  net::Histogram& took_;
  // Whoever offers.
  std::optional<Instant> offered_;
  // The looker's thread.
  std::unique_ptr<Detector> detector_;
  std::optional<Instant> rests_until_;
  bool complained_ = false;
  // Both.
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  PicturePtr waiting_;
  std::shared_ptr<const Sighting> newest_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace weir::stream_worker
