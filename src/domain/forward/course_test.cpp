#include "weir/forward/course.hpp"

#include "temp_files.hpp"
#include "where.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

namespace weir::forward {
namespace {

const Failure kRefused{Kind::rtmp_refused, "x"}, kAbsent{Kind::rtsp_not_found, "x"};

// Plays the shell: time moves only by waiting.
struct Shell {
  Policy policy;
  Instant now{100s};
  Course course = begin(now, policy);
  std::optional<Scheduled> scheduled = {};

  explicit Shell(Policy p = {}) : policy(p), course(begin(now, p)) {}
  void tell(const Event& event, double draw = 0) {
    Step stepped = step(course, event, now, policy, draw);
    course = stepped.next;
    scheduled = stepped.scheduled;
  }
  // What is to be done, after any waiting.
  Task task() {
    for (;;) {
      Task task = next(course, now);
      if (auto* wait = std::get_if<Wait>(&task)) now = wait->until;
      else if (auto* hold = std::get_if<Hold>(&task)) now = hold->until;
      else return task;
    }
  }
  template <class T>
  bool is() {
    return std::holds_alternative<T>(task());
  }
  End end() {
    Task task = this->task();
    EXPECT_TRUE(std::holds_alternative<End>(task));
    return std::holds_alternative<End>(task) ? std::get<End>(task) : End{-1};
  }
  void connect() {
    tell(InputConnected{});
    tell(OutputConnected{});
  }
};

TEST(Course, InputFirst_ThenDestination_ThenForwarding) {
  Shell shell;
  EXPECT_TRUE(shell.is<ConnectInput>());
  shell.tell(InputConnected{});
  EXPECT_TRUE(shell.is<ConnectOutput>());
  shell.tell(OutputConnected{});
  EXPECT_TRUE(shell.is<Forward>());
}

TEST(Course, AnInputThatNeverComes_EndsWith20_WhenTheGraceIsOver_NotBefore) {
  Shell shell;
  Instant begun = shell.now;
  int tries = 0;
  while (shell.is<ConnectInput>()) {
    EXPECT_LT(shell.now - begun, 30s);
    shell.tell(kAbsent, 0.5);
    ++tries;
  }
  EXPECT_EQ(shell.now - begun, 30s);
  EXPECT_EQ(shell.end().code, kExitInputNotReady);
  EXPECT_GE(tries, 5);
}

TEST(Course, AnInputThatIsLostLater_StartsTheGraceAgain_AndTheDestinationIsKept) {
  Shell shell;
  shell.connect();
  shell.now += 3600s;
  shell.tell(Failure{Kind::rtsp_ended, "x"});
  ASSERT_TRUE(shell.is<ConnectInput>());
  EXPECT_GT(std::get<ConnectInput>(shell.task()).within, 29s);
  shell.tell(InputConnected{});
  EXPECT_TRUE(shell.is<Forward>()) << "the destination was connected all the time";
}

TEST(Course, ADestinationThatIsLost_IsTriedAgain_AndTheInputIsKept) {
  Shell shell;
  shell.connect();
  shell.tell(Failure{Kind::rtmp_reset, "x"});
  ASSERT_TRUE(shell.scheduled);
  EXPECT_EQ(shell.scheduled->attempt, 1);
  EXPECT_TRUE(shell.is<ConnectOutput>());
}

TEST(Course, RetriesInARow_EndWith40_WhereTheyAreBounded) {
  Shell shell(Policy{.retries_max = 3});
  shell.tell(InputConnected{});
  int dials = 0;
  for (; shell.is<ConnectOutput>(); ++dials) shell.tell(kRefused);
  EXPECT_EQ(dials, 4) << "the first try and three retries";
  EXPECT_EQ(shell.end().code, kExitTransient);
  EXPECT_EQ(shell.end().reason, "rtmp_refused");
}

TEST(Course, WithoutABound_ADeadDestinationIsTriedForEver) {
  Shell shell;
  shell.tell(InputConnected{});
  for (int i = 0; i < 5000; ++i) {
    ASSERT_TRUE(shell.is<ConnectOutput>());
    shell.tell(kRefused, 0.99);
  }
}

// As the settings say it: min(base * 2^n, max), and up to the jitter more.
TEST(Course, RetrySchedule_Property_DelaysAreBaseTimesTwoToTheN_Capped_PlusAtMostTheJitter) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    auto draw_ms = [&](int most) { return std::chrono::milliseconds(1 + static_cast<int>(random() % most)); };
    Duration base = draw_ms(2000), most = base + draw_ms(60'000), jitter = draw_ms(1000) - 1ms;
    Shell shell(Policy{.retry = {.first = base, .cap = most, .jitter = 0, .spread = jitter}});
    shell.tell(InputConnected{});
    Duration expected = base;
    for (int i = 0; i < 40; ++i) {
      ASSERT_TRUE(shell.is<ConnectOutput>());
      Instant failed = shell.now;
      double draw = static_cast<double>(random() % 1000) / 1000;
      shell.tell(kRefused, draw);
      ASSERT_TRUE(shell.scheduled);
      EXPECT_GE(shell.scheduled->delay, expected - 1us);
      EXPECT_LE(shell.scheduled->delay, expected + jitter + 1us);
      EXPECT_EQ(shell.scheduled->attempt, i + 1);
      ASSERT_TRUE(shell.is<ConnectOutput>());
      EXPECT_EQ(shell.now - failed, shell.scheduled->delay) << "it is waited for as long as the log says";
      expected = std::min(expected * 2, most);
    }
  }
}

TEST(Course, AConnectionThatLivedForAWhile_StartsTheDelaysAgain_AShortOneDoesNot) {
  Shell shell;
  shell.tell(InputConnected{});
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(shell.is<ConnectOutput>());
    shell.tell(OutputConnected{});
    shell.now += 1s;
    shell.tell(Failure{Kind::rtmp_reset, "x"});
  }
  EXPECT_EQ(shell.scheduled->attempt, 6);
  ASSERT_TRUE(shell.is<ConnectOutput>());
  shell.tell(OutputConnected{});
  shell.now += 10s;
  shell.tell(Failure{Kind::rtmp_reset, "x"});
  EXPECT_EQ(shell.scheduled->attempt, 1);
  EXPECT_EQ(shell.scheduled->delay, 500ms);
}

TEST(Course, WhatTryingAgainCannotMend_EndsAtOnce_WithItsCode) {
  for (auto [kind, code] : {std::pair{Kind::rtmp_publish_denied, 30}, {Kind::rtmp_connect_denied, 30},
                            {Kind::codec_unsupported, 10}, {Kind::config_invalid, 10}, {Kind::internal, 50}}) {
    Shell shell;
    shell.tell(InputConnected{});
    shell.tell(Failure{kind, "x"});
    EXPECT_FALSE(shell.scheduled);
    EXPECT_EQ(shell.end().code, code) << to_string(kind);
    EXPECT_EQ(shell.end().reason, to_string(kind));
  }
}

TEST(Course, AHangUpAtTheStreamKey_IsADenial_TheSecondTimeInARow) {
  const Failure hangup{Kind::rtmp_publish_hangup, "x"};
  Shell shell;
  shell.tell(InputConnected{});
  shell.tell(hangup);
  ASSERT_TRUE(shell.is<ConnectOutput>());
  shell.tell(kRefused);  // it was restarted
  ASSERT_TRUE(shell.is<ConnectOutput>());
  shell.tell(hangup);
  ASSERT_TRUE(shell.is<ConnectOutput>());
  shell.tell(hangup);
  EXPECT_EQ(shell.end().code, kExitDenied);
}

TEST(Course, AsStopped_EndsWith0_FromEveryState) {
  for (int state = 0; state < 5; ++state) {
    Shell shell;
    if (state >= 1) shell.tell(InputConnected{});
    if (state >= 2) shell.tell(OutputConnected{});
    if (state == 3) shell.tell(kRefused);
    if (state == 4) shell.tell(DeadlinePassed{});
    shell.tell(StopAsked{});
    EXPECT_EQ(shell.end().code, kExitClean) << state;
    shell.tell(Failure{Kind::internal, "x"});
    EXPECT_EQ(shell.end().code, kExitClean) << "the end stays what it is";
  }
}

TEST(Course, PastItsDeadline_ItHoldsFor30s_AndEndsWith40) {
  Shell shell;
  shell.connect();
  Instant passed = shell.now;
  shell.tell(DeadlinePassed{});
  EXPECT_TRUE(std::holds_alternative<Hold>(next(shell.course, shell.now)));
  shell.tell(kRefused);  // the end of the connection, which was asked for
  shell.tell(DeadlinePassed{});
  EXPECT_EQ(shell.end().code, kExitTransient);
  EXPECT_EQ(shell.end().reason, "deadline");
  EXPECT_EQ(shell.now - passed, 30s);
}

TEST(Course, ExtendedWhileItHolds_ItStartsAfresh_ExtendedBefore_NothingChanges) {
  Shell shell;
  shell.connect();
  shell.tell(Extended{});
  EXPECT_TRUE(shell.is<Forward>());
  shell.tell(DeadlinePassed{});
  shell.now += 29s;
  shell.tell(Extended{});
  EXPECT_TRUE(shell.is<ConnectInput>());
  shell.connect();
  EXPECT_TRUE(shell.is<Forward>());
}

TEST(Failures, EveryKind_HasItsRow_WithASentence) {
  std::set<std::string_view> names;
  for (const KindRow& row : all_kinds()) {
    EXPECT_EQ(&row_of(row.kind), &row);
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_TRUE(row.advice.ends_with('.')) << row.name;
    EXPECT_EQ(failure_of(failure(row.kind, "why")).kind, row.kind);
  }
  EXPECT_EQ(failure_of(Error{Errc::internal, "something", "else"}).kind, Kind::internal);
}

TEST(Failures, EveryKind_StandsInTheManual_WithItsAdvice) {
  std::string page = test::text_in_file(std::string(WEIR_SOURCE_DIR) + "/docs/egress.md");
  for (const KindRow& row : all_kinds()) {
    if (row.kind == Kind::none) continue;
    size_t at = page.find(fmt::format("\n| `{}` |", row.name));
    ASSERT_NE(at, std::string::npos) << row.name;
    std::string line = page.substr(at + 1, page.find('\n', at + 1) - at - 1);
    EXPECT_TRUE(line.ends_with(fmt::format("| {} |", row.advice))) << line;
    EXPECT_NE(line.find(fmt::format("| {}", row.exit)), std::string::npos) << line;
  }
}

}  // namespace
}  // namespace weir::forward
