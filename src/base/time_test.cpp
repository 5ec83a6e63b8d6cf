#include "weir/base/time.hpp"

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(Time, Iso_HasMillisecondsAndZ) {
  EXPECT_EQ(to_iso(WallTime{}), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(to_iso(WallTime{1'769'850'307'123'999us}), "2026-01-31T09:05:07.123Z");
  EXPECT_EQ(to_iso(WallTime{-1ms}), "1969-12-31T23:59:59.999Z");
}

TEST(Time, Iso_ReadsWhatItWrites) {
  for (auto time : {0s, 951'782'400s, 1'709'164'800s, 4'102'444'799s}) {
    WallTime t = WallTime{time} + 123ms;
    auto read = from_iso(to_iso(t));
    ASSERT_TRUE(read);
    EXPECT_EQ(*read, t);
  }
  EXPECT_EQ(from_iso("2026-01-31T09:05:07Z"), WallTime{1'769'850'307s});
  EXPECT_EQ(from_iso("2026-01-31T09:05:07.5Z"), WallTime{1'769'850'307'500ms});
  EXPECT_EQ(from_iso("2026-01-31T09:05:07.123456789Z"), WallTime{1'769'850'307'123'456us});
}

TEST(Time, Iso_RefusesEverythingElse) {
  for (std::string_view text :
       {"", "2026", "2026-01-31", "2026-01-31T09:05:07", "2026-01-31T09:05:07+00:00", "2026-01-31 09:05:07Z",
        " 2026-01-31T09:05:07Z", "2026-01-31T09:05:07Z ", "2026-1-31T09:05:07Z", "2026-02-30T09:05:07Z",
        "2026-00-01T09:05:07Z", "2026-13-01T09:05:07Z", "2026-01-31T24:05:07Z", "2026-01-31T09:60:07Z",
        "2026-01-31T09:05:60Z", "2026-01-31T09:05:07.Z", "2026-01-31T09:05:07.1", "-026-01-31T09:05:07Z",
        "2026-01-31T"})
    EXPECT_FALSE(from_iso(text)) << text;
  EXPECT_FALSE(from_iso(std::string_view("2026-01-31T09:05:07Z\0", 21)));
  EXPECT_TRUE(from_iso("2024-02-29T00:00:00Z"));
  EXPECT_FALSE(from_iso("2025-02-29T00:00:00Z"));
}

TEST(Time, Durations_TakeUnits) {
  EXPECT_EQ(parse_duration("15m"), 15min);
  EXPECT_EQ(parse_duration("90s"), 90s);
  EXPECT_EQ(parse_duration("90"), 90s);
  EXPECT_EQ(parse_duration("1.5s"), 1500ms);
  EXPECT_EQ(parse_duration("2h"), 2h);
  EXPECT_EQ(parse_duration("1d"), 24h);
  EXPECT_EQ(parse_duration("500ms"), 500ms);
  EXPECT_EQ(parse_duration("0"), 0s);
}

TEST(Time, Durations_RefuseNonsense) {
  for (std::string_view text :
       {"", "m", "-1s", "1x", "1 s", " 1", "nan", "inf", "-nan", "1e300", "1e9d", "1e9h", "0x10", "1ss", "1.2.3"})
    EXPECT_FALSE(parse_duration(text)) << text;
}

TEST(Time, Seconds_GoThereAndBack) {
  EXPECT_DOUBLE_EQ(seconds(1500ms), 1.5);
  EXPECT_EQ(from_seconds(0.25), 250ms);
}

}  // namespace
}  // namespace weir
