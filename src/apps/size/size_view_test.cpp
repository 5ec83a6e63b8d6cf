#include "size_view.hpp"

#include "measuring.hpp"

#include <gtest/gtest.h>

namespace weir::apps {
namespace {

sizing::Measurement measured() {
  sizing::Costs costs{.decode_ms = 3.3, .keyframe_ms = 6.8, .gate_ms = 0.9, .detect_ms = 15};
  return {.cpu = "a processor", .processors = 2, .memory_mb = 24'000, .model = "tflite/efficientdet-lite0", .codec = "h264",
          .sizes = {{.width = 1920, .height = 1080, .kbit = 2800, .costs = costs, .looks_per_s = 130}}, .took_s = 11};
}
bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

std::string verdict_on(int cameras, double looks = 6) {
  return size_verdict(measured(), size_rows(measured(), {.looks_fps = {looks}}).front(), cameras);
}

TEST(SizeView, Verdict_SaysWhetherTheCamerasFit_AndWhatWouldHelp) {
  std::vector<SizeRow> rows = size_rows(measured(), {.looks_fps = {6}});
  ASSERT_EQ(rows.size(), 1u);
  int moving = rows[0].moving.cameras, half = rows[0].half.cameras, still = rows[0].still.cameras;
  ASSERT_LT(moving, half);
  ASSERT_LT(half, still);
  EXPECT_EQ(verdict_on(moving), fmt::format("{} cameras of 1920x1080 looked at 6 times a second fit here, even if everything "
                                            "moves at once (then {} fit).", moving, moving));
  std::string tight = verdict_on(half);
  EXPECT_TRUE(has(tight, fmt::format("do not fit here if everything moves ({} fit); they fit while at most half", moving))) << tight;
  std::string asleep = verdict_on(still);
  EXPECT_TRUE(has(asleep, fmt::format("nor if half of the scenes move ({} fit); they fit only while all scenes are still ({} fit)",
                                      half, still))) << asleep;
  std::string never = verdict_on(still + 1);
  EXPECT_TRUE(has(never, fmt::format("nor while all scenes are still ({} fit). What would help: {} such machines", still,
                                     (still + half) / half))) << never;
}

TEST(SizeView, WhatWouldHelpMost_ComesFirst) {
  std::string decoding = verdict_on(500, 3), looking = verdict_on(500, 12);
  EXPECT_LT(decoding.find("a smaller stream"), decoding.find("looking once a second (the cameras' max_fps)")) << decoding;
  EXPECT_GT(looking.find("a smaller stream"), looking.find("looking 6 times a second (the cameras' max_fps)")) << looking;
  EXPECT_FALSE(has(verdict_on(500, 1), "max_fps")) << "less than once a second is no advice";
}

TEST(SizeView, MoreLooks_FewerCameras_InTableAndJson) {
  std::vector<SizeRow> rows = size_rows(measured(), {});
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_GT(rows[0].moving.cameras, rows[1].moving.cameras);
  EXPECT_GT(rows[1].moving.cameras, rows[2].moving.cameras);
  json::object out = size_json(measured(), {.looks_fps = {6}, .cameras = 1});
  EXPECT_EQ(out.at("rows").at(0).at("everything_moves"), rows[1].moving.cameras);
  EXPECT_EQ(out.at("fits").at("everything_moves"), true);
  EXPECT_TRUE(has(readable_size(measured(), {}), "1920x1080 at 25 fps"));
}

TEST(SizeView, ABusyMachine_AndAMissingModel_AreWarnedOf) {
  sizing::Measurement seen = measured();
  EXPECT_TRUE(size_warnings(seen).empty());
  seen.busy_pct = 40;
  seen.detector_error = "no such file";
  EXPECT_EQ(size_warnings(seen).size(), 2u);
  EXPECT_TRUE(has(readable_size(seen, {}), "used 40 % of the processors"));
  EXPECT_TRUE(has(readable_size(seen, {}), "no such file"));
}

TEST(Capacity, SaysTheNumberAndWhereItComesFrom) {
  Capacity taken = capacity_from(measured(), "2026-01-02T03:04:05.000Z");
  EXPECT_EQ(taken.cameras, size_rows(measured(), {.looks_fps = {6}}).front().half.cameras);
  EXPECT_EQ(taken.because, fmt::format("{} cameras: 2 processors, 15.0 ms a picture, measured on a processor at "
                                       "2026-01-02T03:04:05.000Z", taken.cameras));
  Capacity guessed = capacity_guessed(1.5, "no library");
  EXPECT_EQ(guessed.cameras, 9);
  EXPECT_TRUE(has(guessed.because, "9 cameras: 1.5 processors of 6 each, a guess")) << guessed.because;
  EXPECT_EQ(capacity_guessed(0.1, "").cameras, 1) << "a runner that takes none is none";
}

}  // namespace
}  // namespace weir::apps
