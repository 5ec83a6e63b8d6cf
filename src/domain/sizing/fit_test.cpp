#include "weir/sizing/measurement.hpp"

#include <gtest/gtest.h>

#include <random>

namespace weir::sizing {
namespace {

constexpr Costs kCosts{.decode_ms = 3.3, .keyframe_ms = 6.8, .gate_ms = 0.9, .detect_ms = 15};

// Costs in round figures, so that a reader can follow: 25 x 2 x 0.05 received, 25 x 2 x 1.15 decoded, 5 looks of 10 x
// 1.07 and the gate's 0.2 x 1.15; and while nothing moves a keyframe of 4 x 1.15 and its gate.
TEST(Sizing, ACamera_CostsWhatItsPicturesAndLooksCost) {
  Costs costs{.decode_ms = 2, .keyframe_ms = 4, .gate_ms = 0.2, .detect_ms = 10};
  Kind kind{.stream_fps = 25, .looks_fps = 5};
  double moving = 2.5 + 57.5 + 5 * (0.23 + 10.7), still = 2.5 + 4.6 + 0.23;
  EXPECT_NEAR(camera_ms(costs, kind, 1), moving, 1e-9);
  EXPECT_NEAR(camera_ms(costs, kind, 0), still, 1e-9);
  EXPECT_NEAR(camera_ms(costs, kind, 0.5), (moving + still) / 2, 1e-9);
  // 85 % of 4 processors are 3400 ms a second.
  EXPECT_EQ(fit(costs, kind, {.processors = 4}, 1).cameras, static_cast<int>(3400 / moving));
  EXPECT_EQ(fit(costs, kind, {.processors = 4}, 0).cameras, static_cast<int>(3400 / still));
}

// Measured with cameras over RTSP on the machine whose costs these are (docs/sizing.md): the arithmetic may be wrong by
// a fifth, not by more.
TEST(Sizing, TheArithmetic_IsWhatAWorkerReallyUsed) {
  Costs measured{.decode_ms = 3.32, .keyframe_ms = 6.81, .gate_ms = 0.91, .detect_ms = 14.9};
  EXPECT_NEAR(camera_ms(measured, {}, 1), 193.9, 0.2 * 193.9);
  EXPECT_NEAR(camera_ms(measured, {}, 0), 14.4, 0.2 * 14.4);
  Costs blind = measured;
  blind.detect_ms = 0;
  EXPECT_NEAR(camera_ms(blind, {}, 1), 98.2, 0.2 * 98.2);
}

TEST(Sizing, WhatLimits_IsNamed) {
  struct Case {
    Costs costs;
    Machine machine;
    Limit limit;
  };
  Costs large{.decode_ms = 6, .keyframe_ms = 9, .gate_ms = 1, .detect_ms = 15};
  Costs small{.decode_ms = 0.4, .keyframe_ms = 1, .gate_ms = 0.1, .detect_ms = 15};
  for (const Case& each : {Case{large, {.processors = 2}, Limit::decoding},
                           Case{small, {.processors = 2}, Limit::detector},
                           Case{kCosts, {.processors = 2, .memory_mb = 100}, Limit::memory}})
    EXPECT_EQ(to_string(fit(each.costs, {}, each.machine, 1).limit), to_string(each.limit));
}

TEST(Sizing, Memory_BoundsWhatManyProcessorsWouldTake) {
  Machine many{.processors = 64, .memory_mb = 32'000};
  Fit bounded = fit(kCosts, {}, many, 0.5);
  EXPECT_EQ(bounded.limit, Limit::memory);
  EXPECT_EQ(bounded.cameras, static_cast<int>(0.75 * 32'000 / camera_mb({}, many)));
  many.memory_mb = 0;  // nobody knows: no bound
  EXPECT_GT(fit(kCosts, {}, many, 0.5).cameras, bounded.cameras);
}

TEST(Sizing, ACameraIsNotLookedAtMoreOftenThanItSends) {
  EXPECT_EQ(camera_ms(kCosts, {.stream_fps = 5, .looks_fps = 30}, 1),
            camera_ms(kCosts, {.stream_fps = 5, .looks_fps = 5}, 1));
}

// Whatever the costs are: more work a camera, never more cameras; and a scene that stands still never costs more.
TEST(Sizing, MoreWork_NeverFitsMoreCameras) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> any(0.01, 50);
  for (int round = 0; round < 10'000; ++round) {
    Costs costs{.decode_ms = any(random), .keyframe_ms = 0, .gate_ms = any(random) / 10, .detect_ms = any(random)};
    costs.keyframe_ms = costs.decode_ms * (1 + any(random) / 25);
    Kind kind{.stream_fps = 5 + any(random) / 2, .looks_fps = 1 + any(random) / 25};
    Machine machine{.processors = any(random), .memory_mb = any(random) * 1000};
    int moving = fit(costs, kind, machine, 1).cameras;
    EXPECT_LE(moving, fit(costs, kind, machine, 0.5).cameras);
    EXPECT_LE(fit(costs, kind, machine, 0.5).cameras, fit(costs, kind, machine, 0).cameras);
    Kind busier = kind, larger = kind;
    busier.looks_fps *= 2;
    larger.width *= 2;
    EXPECT_LE(fit(costs, busier, machine, 1).cameras, moving);
    EXPECT_LE(fit(costs, larger, machine, 1).cameras, moving);
    Machine twice{machine.processors * 2, 0};
    EXPECT_GE(fit(costs, kind, twice, 1).cameras, fit(costs, kind, {machine.processors, 0}, 1).cameras);
  }
}

TEST(Sizing, NothingMeasured_IsNoDivisionByZero) {
  EXPECT_EQ(fit({}, {}, {.processors = 2}, 1).cameras, 100'000);
  EXPECT_EQ(fit(kCosts, {}, {.processors = 0.01}, 1).cameras, 0);
}

TEST(Sizing, AMeasurement_IsReadAsItWasWritten) {
  Measurement out{.cpu = "a processor", .processors = 1.5, .memory_mb = 4000, .model = "tflite/x", .codec = "h264",
                  .sizes = {{.width = 1920, .height = 1080, .kbit = 2770, .costs = kCosts, .looks_per_s = 130}}};
  auto in = json::read<Measurement>(json::write_value(out), json::Unknown::reject);
  ASSERT_TRUE(in) << in.error().message;
  EXPECT_EQ(json::to_text(json::write_value(*in)), json::to_text(json::write_value(out)));
  out.sizes.clear();
  EXPECT_FALSE(json::read<Measurement>(json::write_value(out))) << "without a size nothing can be said";
}

}  // namespace
}  // namespace weir::sizing
