// The check that the tests of runners rest on sees what it must see.
#include "history.hpp"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

namespace weir::test {
namespace {

Accepted seen(std::int64_t version, int second, const std::string& id, const std::string& camera = "cam-1") {
  return {.kind = "detections",
          .camera = camera,
          .event_id = id,
          .version = version,
          .captured = WallTime(std::chrono::seconds(1000 + second))};
}

void check(std::vector<Accepted> events) {
  History history;
  for (Accepted& event : events) history.add(std::move(event));
  history.expect_one_voice();
}

TEST(RunnerHistory, OneVoiceAfterTheOther_IsFine) {
  check({seen(1, 0, "a"), seen(1, 1, "b"), seen(2, 2, "c"), seen(2, 3, "d"), seen(1, 1, "e", "cam-2")});
}
TEST(RunnerHistory, VersionThatFalls_IsSeen) {
  EXPECT_NONFATAL_FAILURE(check({seen(2, 0, "a"), seen(1, 1, "b")}), "a stale event was accepted");
}
TEST(RunnerHistory, CaptureTimesOfTwoVersionsThatOverlap_AreSeen) {
  EXPECT_NONFATAL_FAILURE(check({seen(1, 0, "a"), seen(1, 5, "b"), seen(2, 3, "c")}),
                          "that an earlier version spoke of");
}
TEST(RunnerHistory, DetectionOfAPictureThatOnlyAnEarlierStatusNamed_IsFine) {
  Accepted summary = seen(1, 3, "b");
  summary.kind = "stream.status";
  check({seen(1, 0, "a"), summary, seen(2, 2, "c")});
}
TEST(RunnerHistory, EventThatCameTwice_IsSeen) {
  EXPECT_NONFATAL_FAILURE(check({seen(1, 0, "a"), seen(1, 1, "a")}), "twice");
}

}  // namespace
}  // namespace weir::test
