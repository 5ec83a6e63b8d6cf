#include "weir/forward/flow.hpp"

#include <gtest/gtest.h>

namespace weir::forward {
namespace {

using State = Flow::State;

TEST(Flow, WhatOpeningTook_IsNotTheStream) {
  Flow flow({.acked_bytes = 3000, .outstanding_bytes = 500}, Instant{10s}, 8s);
  EXPECT_EQ(flow.look({3500, 0}, Instant{11s}), State::waiting);
  EXPECT_EQ(flow.media_bytes(), 0u);
  EXPECT_EQ(flow.look({3501, 0}, Instant{12s}), State::flowing);
  EXPECT_EQ(flow.media_bytes(), 1u);
}

TEST(Flow, ABlackHole_IsStalled_8sAfterTheLastAcknowledgedByte) {
  Flow flow({}, Instant{0s}, 8s);
  Duration t{};
  for (; t < 5s; t += 100ms) flow.look({static_cast<std::uint64_t>(1000 + t.count()), 1000}, Instant{t});
  std::uint64_t last = 1000 + (t - 100ms).count();
  for (Duration silent = 100ms; silent < 8s; silent += 100ms)
    ASSERT_EQ(flow.look({last, 90'000}, Instant{t - 100ms + silent}), silent < 2s ? State::flowing : State::silent)
        << silent.count();
  EXPECT_EQ(flow.look({last, 90'000}, Instant{t - 100ms + 8s}), State::stalled);
}

TEST(Flow, WhereNothingIsUnderWay_NothingStalls) {
  Flow flow({}, Instant{0s}, 8s);
  flow.look({1000, 0}, Instant{1s});
  for (Duration t = 2s; t < 60s; t += 1s) {
    State state = flow.look({1000, 0}, Instant{t});
    EXPECT_EQ(state, t < 3s ? State::flowing : State::silent);
  }
  // The clock starts with the first byte that waits.
  EXPECT_EQ(flow.look({1000, 5}, Instant{60s}), State::silent);
  EXPECT_EQ(flow.look({1000, 5}, Instant{66s}), State::silent);
  EXPECT_EQ(flow.look({1000, 5}, Instant{68s}), State::stalled);
}

TEST(Flow, ADestinationThatTakesALittle_IsSlow_NotDead) {
  Flow flow({}, Instant{0s}, 8s);
  for (int i = 1; i < 100; ++i)
    EXPECT_NE(flow.look({static_cast<std::uint64_t>(i), 500'000}, Instant{i * 7s}), State::stalled);
}

}  // namespace
}  // namespace weir::forward
