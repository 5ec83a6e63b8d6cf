#include "weir/lease/holder.hpp"

#include <gtest/gtest.h>

namespace weir::lease {

namespace {

const CameraId kCamera = CameraId::trusted("c");
const BootId kBoot = BootId::trusted("boot");

// Feeds a holder and keeps what it wants done.
class Rig {
 public:
  Rig() { state.subject = kCamera; }
  std::vector<HolderAction> feed(const HolderEvent& event) {
    auto [next, actions] = step(state, event, now, policy, kBoot);
    state = std::move(next);
    for (const auto& action : actions)
      if (const auto* send = std::get_if<SendQuestion>(&action)) last = send->question;
    return actions;
  }
  std::vector<HolderAction> answer(Outcome outcome, Version version, Version grant = {}) {
    Answer answer{kCamera, outcome, version, grant.n != 0 ? grant : version, policy.ttl};
    answer.yours = yours;
    return feed(Answered{last.id, answer});
  }
  template <class T>
  static const T* find(const std::vector<HolderAction>& actions) {
    for (const auto& action : actions)
      if (const auto* found = std::get_if<T>(&action)) return found;
    return nullptr;
  }
  void hold(Version version = {10}) {
    feed(Wanted{});
    answer(Outcome::granted, version);
    ASSERT_EQ(state.phase, Phase::holding);
  }

  HolderState state;
  HolderPolicy policy;
  Instant now{100s};
  Question last;
  bool yours = false;
};

}  // namespace

TEST(Holder, RightIsCountedFromBeforeAsking_LessTheMargin) {
  Rig rig;
  rig.feed(Wanted{});
  Instant asked = rig.now;
  rig.now += 900ms;
  auto actions = rig.answer(Outcome::granted, {10});
  const auto* speak = Rig::find<Speak>(actions);
  ASSERT_TRUE(speak);
  EXPECT_TRUE(speak->fresh);
  EXPECT_EQ(speak->valid_until, asked + 6s - safety_margin(6s));
}

TEST(Holder, Margin_CoversFivePercentOfClockDifference) {
  for (Duration ttl : {Duration(3s), Duration(6s), Duration(10s), Duration(60s)})
    EXPECT_GE(safety_margin(ttl), ttl / 10 + 600ms);
  EXPECT_EQ(safety_margin(3s), 1250ms);
}

TEST(Holder, SilenceIsNotLoss_ItAsksAgainSoon_WhileTheRightLasts) {
  Rig rig;
  rig.hold();
  rig.now = rig.state.next_ask;
  rig.feed(TimePassed{});
  ASSERT_EQ(rig.last.operation, Operation::renew);
  std::uint64_t first = rig.last.id;
  auto actions = rig.feed(Unanswered{first});
  EXPECT_FALSE(Rig::find<StopCamera>(actions));
  EXPECT_LE(*wake_at(rig.state, rig.policy) - rig.now, 250ms);
}

TEST(Holder, PastItsDeadline_ItKeepsAskingButLessOften_AndNeverStopsByItself) {
  Rig rig;
  rig.hold();
  for (int n = 0; n < 200; ++n) {
    rig.now = *wake_at(rig.state, rig.policy);
    auto actions = rig.feed(TimePassed{});
    EXPECT_FALSE(Rig::find<StopCamera>(actions));
    EXPECT_FALSE(Rig::find<DropSpool>(actions));
    if (rig.state.open) rig.feed(Unanswered{rig.state.open->id});
  }
  EXPECT_LE(*wake_at(rig.state, rig.policy) - rig.now, rig.policy.ttl / 3);
  EXPECT_EQ(rig.state.phase, Phase::holding);
}

TEST(Holder, LossIsBelieved_OnlyWithAHigherVersion) {
  Rig rig;
  rig.hold({10});
  rig.now = rig.state.next_ask;
  rig.feed(TimePassed{});
  EXPECT_FALSE(Rig::find<StopCamera>(rig.answer(Outcome::lost, {10})));
  EXPECT_EQ(rig.state.phase, Phase::holding);
  rig.now = rig.state.next_ask;
  rig.feed(TimePassed{});
  auto actions = rig.answer(Outcome::lost, {11});
  EXPECT_TRUE(Rig::find<StopCamera>(actions));
  EXPECT_TRUE(Rig::find<DropSpool>(actions));
}

TEST(Holder, AStreamThatTheStoreHasForgotten_IsAcquiredAnew_AndNeedNotBeReleased) {
  Answer forgotten{kCamera, Outcome::refused};
  forgotten.why = Refusal::not_found;
  Rig rig;
  rig.policy.kind = Kind::stream;
  rig.hold();
  rig.now = rig.state.next_ask;
  rig.feed(TimePassed{});
  ASSERT_EQ(rig.last.operation, Operation::renew);
  EXPECT_TRUE(Rig::find<StopCamera>(rig.feed(Answered{rig.last.id, forgotten})));
  rig.now = rig.state.next_ask;
  rig.feed(TimePassed{});
  EXPECT_EQ(rig.last.operation, Operation::acquire);
  rig.answer(Outcome::granted, {20});
  EXPECT_EQ(rig.state.phase, Phase::holding);

  rig.feed(Unwanted{});
  ASSERT_EQ(rig.last.operation, Operation::release);
  rig.feed(Answered{rig.last.id, forgotten});
  EXPECT_EQ(rig.state.phase, Phase::idle);
}

TEST(Holder, ACameraThatTheStoreDoesNotKnow_IsNotLost) {
  Answer unknown{kCamera, Outcome::refused};
  unknown.why = Refusal::not_found;
  Rig rig;
  rig.hold();
  rig.now = rig.state.next_ask;
  rig.feed(TimePassed{});
  EXPECT_FALSE(Rig::find<StopCamera>(rig.feed(Answered{rig.last.id, unknown})));
  EXPECT_EQ(rig.state.phase, Phase::holding);
}

TEST(Holder, LateAnswerToAnAbandonedQuestion_IsIgnored) {
  Rig rig;
  rig.hold({10});
  rig.now = rig.state.next_ask;
  rig.feed(TimePassed{});
  std::uint64_t abandoned = rig.last.id;
  rig.now += rig.policy.attempt_timeout;
  rig.feed(TimePassed{});
  auto before = rig.state.valid_until;
  auto actions = rig.feed(Answered{abandoned, Answer{kCamera, Outcome::lost, {99}, {}, 6s}});
  EXPECT_TRUE(actions.empty());
  EXPECT_EQ(rig.state.valid_until, before);
}

TEST(Holder, UnansweredAcquire_IsReplayedUnderTheSameKey) {
  Rig rig;
  rig.feed(Wanted{});
  std::string key = rig.last.ask.key;
  rig.feed(Unanswered{rig.last.id});
  rig.now = *wake_at(rig.state, rig.policy);
  rig.feed(TimePassed{});
  EXPECT_EQ(rig.last.ask.key, key);
  rig.answer(Outcome::held, {5});
  rig.now = *wake_at(rig.state, rig.policy);
  rig.feed(TimePassed{});
  EXPECT_NE(rig.last.ask.key, key);
}

TEST(Holder, OwnLeaseUnderAnotherKey_IsRotatedBeforeAnybodySpeaks) {
  Rig rig;
  rig.feed(Wanted{});
  rig.yours = true;
  auto actions = rig.answer(Outcome::held, {10}, {9});
  EXPECT_FALSE(Rig::find<Speak>(actions));
  EXPECT_EQ(rig.last.operation, Operation::renew);
  EXPECT_TRUE(rig.last.ask.rotate);
  const auto* speak = Rig::find<Speak>(rig.answer(Outcome::rotated, {11}, {9}));
  EXPECT_TRUE(speak);
}

TEST(Holder, FreshVersion_IsAskedForAtOnce_AndNobodySpeaksMeanwhile) {
  Rig rig;
  rig.hold({10});
  rig.now += 100ms;
  rig.feed(FreshVersionNeeded{});
  EXPECT_TRUE(rig.last.ask.rotate);
  auto actions = rig.answer(Outcome::rotated, {11}, {10});
  const auto* speak = Rig::find<Speak>(actions);
  ASSERT_TRUE(speak);
  EXPECT_TRUE(speak->fresh);
  EXPECT_EQ(speak->version, Version{11});
}

TEST(Holder, RotationNeverCrossesAPlainRenewal) {
  Rig rig;
  rig.hold({10});
  rig.now = rig.state.next_ask;
  rig.feed(TimePassed{});
  Question plain = rig.last;
  rig.feed(FreshVersionNeeded{});
  EXPECT_TRUE(rig.feed(Answered{plain.id, Answer{kCamera, Outcome::renewed, {10}, {10}, 6s}}).empty());
  EXPECT_TRUE(rig.state.rotate);
}

TEST(Holder, NewTenureInAnswerToARenewal_DropsTheSpool_AndGoesOn) {
  Rig rig;
  rig.hold({10});
  rig.now = rig.state.next_ask;
  rig.feed(TimePassed{});
  auto actions = rig.answer(Outcome::granted, {50});
  EXPECT_TRUE(Rig::find<DropSpool>(actions));
  EXPECT_FALSE(Rig::find<StopCamera>(actions));
  const auto* speak = Rig::find<Speak>(actions);
  ASSERT_TRUE(speak);
  EXPECT_EQ(speak->grant, Version{50});
  EXPECT_FALSE(speak->adopt);
}

TEST(Holder, WantedWhileReleasing_IsAcquiredAfterwards) {
  Rig rig;
  rig.hold({10});
  rig.feed(Unwanted{});
  ASSERT_EQ(rig.last.operation, Operation::release);
  rig.feed(Wanted{});
  rig.answer(Outcome::released, {11});
  EXPECT_EQ(rig.state.phase, Phase::acquiring);
  EXPECT_EQ(rig.last.operation, Operation::acquire);
}

TEST(Holder, GrantThatIsNoLongerWanted_IsGivenBack) {
  Rig rig;
  rig.feed(Wanted{});
  rig.feed(Unwanted{});
  auto actions = rig.answer(Outcome::granted, {10});
  EXPECT_FALSE(Rig::find<Speak>(actions));
  EXPECT_EQ(rig.last.operation, Operation::release);
  EXPECT_EQ(rig.last.ask.version, Version{10});
  rig.answer(Outcome::released, {11});
  EXPECT_EQ(rig.state.phase, Phase::idle);
}

TEST(Holder, UnreachableCamera_IsLetGo_OrKept_AsTheStoreSays) {
  Rig rig;
  rig.hold({10});
  rig.feed(Unreachable{});
  EXPECT_EQ(rig.last.operation, Operation::release);
  EXPECT_TRUE(rig.last.ask.avoid);
  rig.answer(Outcome::kept, {10});
  EXPECT_EQ(rig.state.phase, Phase::holding);
  EXPECT_EQ(rig.last.operation, Operation::renew);
  rig.answer(Outcome::renewed, {10});
  rig.feed(Unreachable{});
  EXPECT_TRUE(Rig::find<StopCamera>(rig.answer(Outcome::released, {11})));
  EXPECT_EQ(rig.state.phase, Phase::acquiring);
}

}  // namespace weir::lease
