#include "backlog.hpp"

#include <gtest/gtest.h>

namespace weir::ffmpeg {
namespace {

Instant at(Duration time) { return Instant(1000s + time); }

TEST(Backlog, IsNone_WhereTheReaderWaits_WhateverTheTimestampsDo) {
  Backlog backlog;
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(backlog.at(true, at(i * 40ms), i * 30ms), 0s);
  EXPECT_EQ(backlog.at(true, at(99s), 0s), 0s);
}

TEST(Backlog, GrowsWithTheTimeThatTheReaderFallsBehind_AndIsGoneWhenItWaits) {
  Backlog backlog;
  EXPECT_EQ(backlog.at(true, at(0ms), 7s), 0ms);
  for (int i = 1; i < 100; ++i) EXPECT_EQ(backlog.at(false, at(i * 50ms), 7s + i * 40ms), i * 10ms);
  EXPECT_EQ(backlog.at(true, at(5s), 11s), 0ms);
  EXPECT_EQ(backlog.at(false, at(5050ms), 11040ms), 10ms);
}

TEST(Backlog, BurstAtTheBegin_IsCaughtUpWith) {
  Backlog backlog;
  for (int i = 0; i < 50; ++i) EXPECT_EQ(backlog.at(i == 0, at(i * 1ms), i * 40ms), 0ms);
  EXPECT_EQ(backlog.at(false, at(149ms), 49 * 40ms + 40ms), 60ms);
}

TEST(Backlog, IsBounded) {
  Backlog backlog;
  backlog.at(true, at(0s), 0s);
  EXPECT_EQ(backlog.at(false, at(3600s), 1s), 10s);
}

}  // namespace
}  // namespace weir::ffmpeg
