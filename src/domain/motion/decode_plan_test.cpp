#include "weir/motion/decode_plan.hpp"

#include <gtest/gtest.h>

#include <random>

namespace weir::motion {
namespace {

constexpr Duration kFrame = 100ms;
constexpr Step kKept = {.keep = true};
constexpr Step kLookedAt = {.keep = true, .decode = DecodeAs::alone};
constexpr Step kFull = {.decode = DecodeAs::full};
constexpr Step kAlone = {.decode = DecodeAs::alone};

// Feeds a regular stream, `group` packets from one key packet to the next.
struct Stream {
  DecodePlan plan;
  int group = 10;
  int n = 0;
  size_t bytes = 100;

  explicit Stream(DecodePlanConfig config = {}) : plan(config) {}
  Duration now() const { return (n - 1) * kFrame; }
  Step next() {
    bool key = n % group == 0;
    return plan.on_packet({key, n++ * kFrame, bytes});
  }
  // Until the next packet is the key packet that finds it still, with no motion reported.
  void until_still() {
    for (int i = 0; i < 1000 && !plan.still(); ++i) {
      next();
      if (!plan.still()) plan.on_motion(false, now());
    }
  }
};

TEST(DecodePlan, Full_DecodesEverything) {
  Stream stream({.mode = camera::Decode::full});
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(stream.next(), kFull);
    EXPECT_EQ(stream.plan.on_motion(false, stream.now()), Step{});
  }
}

TEST(DecodePlan, Keyframes_DecodesOnlyKeyPackets_WhateverMoves) {
  Stream stream({.mode = camera::Decode::keyframes});
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(stream.next(), i % 10 == 0 ? kAlone : Step{});
    EXPECT_EQ(stream.plan.on_motion(true, stream.now()), Step{});
  }
  EXPECT_EQ(stream.plan.kept_packets(), 0u);
}

TEST(DecodePlan, Keyframes_StreamWithoutAny_IsDecodedInFull_UntilOneComes) {
  DecodePlan plan({.mode = camera::Decode::keyframes});
  for (Duration t = 0s; t <= 12s; t += kFrame) EXPECT_EQ(plan.on_packet({false, t, 1}), Step{}) << seconds(t);
  EXPECT_EQ(plan.on_packet({false, 12100ms, 1}), kFull);
  EXPECT_EQ(plan.on_packet({true, 12200ms, 1}), kAlone);
  EXPECT_EQ(plan.on_packet({false, 12300ms, 1}), Step{});
}

// Without the keyframe before it, what comes after a long wait would be decoded into garbage.
TEST(DecodePlan, Keyframes_GroupLongerThanTheWait_IsStillDecodedByItsKeyPacketsOnly) {
  Stream stream({.mode = camera::Decode::keyframes});
  stream.group = 200;  // 20 s
  for (int i = 0; i < 500; ++i) EXPECT_EQ(stream.next(), i % 200 == 0 ? kAlone : Step{}) << i;
  EXPECT_TRUE(stream.plan.still());
}

TEST(DecodePlan, Adaptive_BeginsInFull_AndLooksAtKeyPacketsOnly_OnceStill) {
  Stream stream;
  for (int i = 0; i < 20; ++i) EXPECT_EQ(stream.next(), kFull) << i;
  EXPECT_EQ(stream.next(), kLookedAt) << "two seconds without motion";
  EXPECT_EQ(stream.plan.on_motion(false, stream.now()), Step{});
  for (int i = 0; i < 9; ++i) EXPECT_EQ(stream.next(), kKept) << i;
  EXPECT_EQ(stream.next(), kLookedAt);
  EXPECT_EQ(stream.plan.on_motion(false, stream.now()), Step{.forget = 10});
  EXPECT_EQ(stream.plan.kept_packets(), 1u);
}

TEST(DecodePlan, Motion_ReplaysTheGroupBefore_ThenGoesOnInFull_UntilStillAgain) {
  Stream stream;
  stream.until_still();
  EXPECT_EQ(stream.plan.on_motion(false, stream.now()), Step{});
  for (int i = 0; i < 9; ++i) EXPECT_EQ(stream.next(), kKept);
  EXPECT_EQ(stream.next(), kLookedAt);
  EXPECT_EQ(stream.plan.on_motion(true, stream.now()), Step{.replay = true});
  EXPECT_FALSE(stream.plan.still());
  EXPECT_EQ(stream.plan.kept_packets(), 0u);
  for (int i = 0; i < 15; ++i) {
    EXPECT_EQ(stream.next(), kFull) << i;
    EXPECT_EQ(stream.plan.on_motion(i < 12, stream.now()), Step{});
  }
  // The last motion was 1.2 s after the key packet; the first key packet two seconds later is the fourth.
  for (int i = 0; i < 24; ++i) EXPECT_EQ(stream.next(), kFull) << i;
  EXPECT_EQ(stream.next(), kLookedAt);
}

TEST(DecodePlan, CatchUp_ReplaysWhatIsKept_AndGoesOnInFull) {
  Stream stream;
  EXPECT_EQ(stream.plan.catch_up(), Step{});
  stream.until_still();
  EXPECT_EQ(stream.next(), kKept);
  EXPECT_EQ(stream.plan.catch_up(), Step{.replay = true});
  EXPECT_EQ(stream.plan.on_motion(true, stream.now()), Step{}) << "no replay within the replay";
  EXPECT_EQ(stream.next(), kFull);
}

TEST(DecodePlan, LateVerdict_ForgetsOnlyWhatItProves) {
  Stream stream;
  stream.until_still();
  Duration first = stream.now();
  for (int i = 0; i < 13; ++i) stream.next();  // a key packet and three more, no verdict yet
  EXPECT_EQ(stream.plan.kept_packets(), 14u);
  EXPECT_EQ(stream.plan.on_motion(false, first), Step{});
  EXPECT_EQ(stream.plan.on_motion(false, first + 1s), Step{.forget = 10});
  EXPECT_EQ(stream.plan.kept_packets(), 4u);
  EXPECT_EQ(stream.plan.on_motion(true, first + 1s), Step{.replay = true});
}

TEST(DecodePlan, LongKeyframeInterval_StaysFull) {
  Stream stream;
  stream.group = 12;
  for (int i = 0; i < 200; ++i) EXPECT_EQ(stream.next(), kFull) << i;
  EXPECT_EQ(stream.plan.keyframe_interval(), Duration(1200ms));
}

TEST(DecodePlan, IntervalWithinTheSlack_IsAdaptive) {
  Stream stream;
  stream.group = 11;
  stream.until_still();
  EXPECT_TRUE(stream.plan.still());
}

TEST(DecodePlan, IntervalThatGrows_ReplaysAndStaysFull) {
  Stream stream;
  stream.until_still();
  Duration key = stream.now();
  for (int i = 1; i <= 14; ++i) EXPECT_EQ(stream.plan.on_packet({false, key + i * kFrame, 1}), kKept) << i;
  EXPECT_EQ(stream.plan.on_packet({true, key + 15 * kFrame, 1}), (Step{.keep = true, .replay = true}));
  EXPECT_EQ(stream.plan.on_packet({false, key + 16 * kFrame, 1}), kFull);
}

TEST(DecodePlan, NoKeyPacketForTwoSeconds_ReplaysAndGoesOnInFull) {
  Stream stream;
  stream.until_still();
  Duration key = stream.now();
  for (int i = 1; i <= 20; ++i) EXPECT_EQ(stream.plan.on_packet({false, key + i * kFrame, 1}), kKept) << i;
  EXPECT_EQ(stream.plan.on_packet({false, key + 2100ms, 1}), (Step{.keep = true, .replay = true}));
  EXPECT_EQ(stream.plan.on_packet({false, key + 2200ms, 1}), kFull);
}

TEST(DecodePlan, GroupThatDoesNotFit_IsReplayed_AndTheStreamStaysFull) {
  for (DecodePlanConfig config : {DecodePlanConfig{.kept_packets_max = 5}, DecodePlanConfig{.kept_bytes_max = 550}}) {
    Stream stream(config);
    stream.until_still();
    for (int i = 0; i < 4; ++i) EXPECT_EQ(stream.next(), kKept) << i;
    EXPECT_EQ(stream.next(), (Step{.keep = true, .replay = true}));
    for (int i = 0; i < 100; ++i) EXPECT_EQ(stream.next(), kFull) << i;
    stream.plan.reset();
    stream.n = 0;
    stream.until_still();
    EXPECT_TRUE(stream.plan.still()) << "a new connection is a new chance";
  }
}

TEST(DecodePlan, KeyPacketsThatAreNoPictures_ReplayWhatIsKept_AndTheStreamStaysFull) {
  Stream stream;
  stream.until_still();
  EXPECT_EQ(stream.plan.on_no_picture(), Step{}) << "one may be damaged";
  for (int i = 0; i < 9; ++i) EXPECT_EQ(stream.next(), kKept) << i;
  EXPECT_EQ(stream.next(), kLookedAt);
  EXPECT_EQ(stream.plan.on_no_picture(), Step{.replay = true});
  for (int i = 0; i < 100; ++i) EXPECT_EQ(stream.next(), kFull) << i;
}

TEST(DecodePlan, KeyPacketThatIsDamagedNowAndThen_ChangesNothing) {
  Stream stream;
  stream.until_still();
  for (int group = 0; group < 4; ++group) {
    EXPECT_EQ(stream.plan.on_no_picture(), Step{});
    for (int i = 0; i < 9; ++i) EXPECT_EQ(stream.next(), kKept) << i;
    EXPECT_EQ(stream.next(), kLookedAt);
    EXPECT_EQ(stream.plan.on_motion(false, stream.now()).replay, false);
  }
  EXPECT_TRUE(stream.plan.still());
}

TEST(DecodePlan, Keyframes_ThatAreNoPictures_AreDecodedInFull) {
  Stream stream({.mode = camera::Decode::keyframes});
  EXPECT_EQ(stream.next(), kAlone);
  EXPECT_EQ(stream.plan.on_no_picture(), Step{});
  for (int i = 0; i < 9; ++i) EXPECT_EQ(stream.next(), Step{}) << i;
  EXPECT_EQ(stream.next(), kAlone);
  EXPECT_EQ(stream.plan.on_no_picture(), kFull);
  EXPECT_EQ(stream.next(), kFull);
  EXPECT_FALSE(stream.plan.still());
}

TEST(DecodePlan, IntraRefresh_IsDecodedInFull_FromTheStart) {
  DecodePlan plan({});
  for (Duration t = 0s; t < 20s; t += kFrame) EXPECT_EQ(plan.on_packet({false, t, 1}), kFull);
}

// A shell over made-up packets: checks what any decoder would insist on, and remembers what was decoded.
struct Shell {
  struct Coded {
    int number;
    bool key, moves;
  };
  DecodePlan plan{{}};
  std::vector<Coded> kept = {};
  std::vector<int> decoded = {};          // by the running decoder, in order
  std::vector<int> seen_alone = {};
  int expected = 0;                       // the running decoder's next packet; -1: any key packet

  void feed(const Coded& coded) {
    if (expected >= 0) ASSERT_EQ(coded.number, expected) << "a gap in the running decoder";
    else ASSERT_TRUE(coded.key) << "decoding starts at " << coded.number;
    expected = coded.number + 1;
    decoded.push_back(coded.number);
  }
  void carry_out(const Step& step, const Coded* coded) {
    ASSERT_LE(step.forget, kept.size());
    kept.erase(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(step.forget));
    if (step.keep) kept.push_back(*coded);
    if (step.replay) {
      expected = -1;
      for (const Coded& each : std::exchange(kept, {})) {
        feed(each);
        if (std::find(seen_alone.begin(), seen_alone.end(), each.number) == seen_alone.end())
          carry_out(plan.on_motion(each.moves, each.number * kFrame), nullptr);
      }
    }
    ASSERT_EQ(kept.size(), plan.kept_packets());
    if (step.decode == DecodeAs::full) {
      feed(*coded);
      carry_out(plan.on_motion(coded->moves, coded->number * kFrame), nullptr);
    } else if (step.decode == DecodeAs::alone) {
      ASSERT_TRUE(coded->key);
      expected = -1;
      seen_alone.push_back(coded->number);
      carry_out(plan.on_motion(coded->moves, coded->number * kFrame), nullptr);
    }
  }
};

TEST(DecodePlan, Property_WhatMovesBeforeAKeyPacketThatShowsIt_IsDecodedOnce_InOrder) {
  std::uint64_t replays = 0, skipped = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    Shell shell;
    std::vector<Shell::Coded> all;
    bool moves = false;
    int to_key = 0;
    for (int number = 0; number < 1500; ++number) {
      if (below(moves ? 15 : 60) == 0) moves = !moves;
      bool key = to_key-- == 0;
      if (key) to_key = below(40) == 0 ? 5 + below(40) : 8 + below(3);
      all.push_back({number, key, moves});
      shell.carry_out(shell.plan.on_packet({key, number * kFrame, 1000}), &all.back());
      if (HasFatalFailure()) FAIL() << "seed " << seed << ", packet " << number;
    }
    // Each at most once, except key packets at which a replay starts or ends: those had been looked at alone.
    ASSERT_TRUE(std::is_sorted(shell.decoded.begin(), shell.decoded.end())) << seed;
    ASSERT_EQ(std::adjacent_find(shell.decoded.begin(), shell.decoded.end()), shell.decoded.end()) << seed;
    std::vector<bool> decoded(all.size());
    for (int number : shell.decoded) decoded[static_cast<size_t>(number)] = true;
    replays += shell.seen_alone.size();
    // Whenever a key packet moves, all since the key packet before it was decoded.
    size_t group = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      if (!all[i].key) {
        skipped += !decoded[i];
        continue;
      }
      for (size_t j = group; all[i].moves && j <= i; ++j)
        ASSERT_TRUE(decoded[j]) << "seed " << seed << ", packet " << j;
      group = i;
    }
  }
  EXPECT_GT(replays, 1000u);
  EXPECT_GT(skipped, 50000u) << "most still packets are not decoded at all";
}

}  // namespace
}  // namespace weir::motion
