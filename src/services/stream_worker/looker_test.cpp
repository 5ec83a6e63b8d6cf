#include "weir/stream_worker/looker.hpp"

#include "weir/base/clock.hpp"

#include <gtest/gtest.h>

#include <atomic>

namespace weir::stream_worker {
namespace {

class Blank final : public Picture {
 public:
  explicit Blank(int number_of_it) { number = number_of_it, stream_time = number_of_it * 1s; }
  int width() const override { return 64; }
  int height() const override { return 48; }
  const std::uint8_t* luma() const override { return nullptr; }
  int luma_stride() const override { return 64; }
  bool to_rgb(Region, int, int, std::span<std::uint8_t>) const override { return false; }
  std::string to_jpeg(int, int) const override { return ""; }
};

// A detector that waits until it may go on.
struct Stage {
  std::mutex mutex;
  std::condition_variable changed;
  int allowed = 0;
  int failures = 0;  // of making the detector
  std::vector<int> looked;
  std::atomic<int> made = 0, seen = 0;

  template <class Condition>
  bool wait(const Condition& condition) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, std::chrono::seconds(20), condition);
  }
  void allow(int more) {
    std::lock_guard lock(mutex);
    allowed += more;
    changed.notify_all();
  }
};

class SlowDetector final : public Detector {
 public:
  explicit SlowDetector(Stage& stage) : stage_(stage) {}
  Result<std::vector<std::vector<Detection>>> detect(std::span<const Look> looks) override {
    std::unique_lock lock(stage_.mutex);
    stage_.looked.push_back(static_cast<int>(looks[0].picture->number));
    stage_.changed.notify_all();
    stage_.changed.wait(lock, [&] { return stage_.allowed > 0; });
    --stage_.allowed;
    return std::vector<std::vector<Detection>>{{{"person", 0.8, {1, 2, 3, 4}}, {"dog", 0.2, {}}}};
  }

 private:
  Stage& stage_;
};

LookerConfig config(Stage& stage) {
  return {.rest = 0s,
          .make_detector = [&stage]() -> Result<std::unique_ptr<Detector>> {
            std::lock_guard lock(stage.mutex);
            ++stage.made;
            stage.changed.notify_all();
            if (stage.failures-- > 0) return Error{Errc::unavailable, "MODEL_ERROR", "there is no such file"};
            return std::unique_ptr<Detector>(std::make_unique<SlowDetector>(stage));
          },
          .seen = [&stage](const Picture& picture, const Sighting& sighting, Duration took) {
            EXPECT_EQ(picture.stream_time, sighting.stream_time);
            EXPECT_GE(took, 0s);
            std::lock_guard lock(stage.mutex);
            ++stage.seen;
            stage.changed.notify_all();
          }};
}

TEST(Looker, WhileItLooks_ANewerPictureReplacesTheOneThatWaits) {
  Stage stage;
  net::Metrics metrics;
  Looker looker(config(stage), metrics);
  looker.offer(std::make_shared<Blank>(1));
  ASSERT_TRUE(stage.wait([&] { return stage.looked.size() == 1; }));
  for (int i = 2; i <= 9; ++i) looker.offer(std::make_shared<Blank>(i));
  EXPECT_EQ(looker.newest(), nullptr);
  stage.allow(2);
  ASSERT_TRUE(stage.wait([&] { return stage.seen == 2; }));
  EXPECT_EQ(stage.looked, (std::vector<int>{1, 9}));
  auto newest = looker.newest();
  ASSERT_NE(newest, nullptr);
  EXPECT_EQ(newest->stream_time, 9s);
  EXPECT_EQ(newest->width, 64);
  ASSERT_EQ(newest->detections.size(), 1u) << "what is not certain enough is left out";
  EXPECT_EQ(newest->detections[0].label, "person");
}

TEST(Looker, ADetectorThatCannotBeMade_IsMadeAnew_WithTheNextPicture) {
  Stage stage;
  stage.failures = 1;
  stage.allowed = 1;
  net::Metrics metrics;
  Looker looker(config(stage), metrics);
  looker.offer(std::make_shared<Blank>(1));
  ASSERT_TRUE(stage.wait([&] { return stage.made == 1; }));
  ASSERT_TRUE(stage.wait([&] { return metrics.text().find("look_failures_total 1") != std::string::npos; }));
  looker.offer(std::make_shared<Blank>(2));
  ASSERT_TRUE(stage.wait([&] { return stage.seen == 1; }));
  EXPECT_EQ(stage.made, 2);
}

TEST(Looker, PicturesAreDue_NoMoreOftenThanAllowed) {
  Stage stage;
  net::Metrics metrics;
  Looker looker(config(stage), metrics);
  int due = 0;
  Instant now{100s};
  for (int i = 0; i < 250; ++i, now += 40ms) due += looker.due(now) ? 1 : 0;
  EXPECT_EQ(due, 50) << "5 a second of 25, for 10 s";
}

}  // namespace
}  // namespace weir::stream_worker
