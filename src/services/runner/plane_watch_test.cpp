#include "plane_watch.hpp"

#include "log_lines.hpp"

#include <gtest/gtest.h>

namespace weir::runner {
namespace {

class PlaneWatching : public testing::Test {
 protected:
  void fails(std::string_view question, Errc code = Errc::unavailable, std::string reason = "unreachable") {
    watch_.note(question, Status(Error{code, std::move(reason), "why not"}), now_);
  }
  void answers(std::string_view question) { watch_.note(question, ok(), now_); }
  void pass(Duration time) { now_ += time; }

  test::LogLines log_;
  PlaneWatch watch_;
  Instant now_{1h};
};

TEST_F(PlaneWatching, AnOutage_IsALineAtEachEnd_HoweverManyQuestionsFail) {
  answers("leases");
  EXPECT_EQ(log_.all(), "");
  for (int second = 0; second < 60; ++second, pass(1s))
    for (const char* question : {"leases", "heartbeat", "cameras"}) fails(question);
  EXPECT_EQ(log_.count("\"event\":\"plane.away\""), 1u) << log_.all();
  EXPECT_EQ(log_.count("does not answer: why not"), 1u) << log_.all();
  answers("leases");
  answers("heartbeat");
  EXPECT_EQ(log_.count("plane.back"), 0u) << "cameras cannot be listed yet";
  answers("cameras");
  answers("cameras");
  EXPECT_EQ(log_.count("\"event\":\"plane.back\""), 1u) << log_.all();
  EXPECT_EQ(log_.count("\"away_s\":60"), 1u) << log_.all();
}

TEST_F(PlaneWatching, AListThatIsRefused_IsSaid_WhileEverythingElseIsAnswered) {
  for (int second = 0; second < 60; ++second, pass(1s)) {
    answers("heartbeat");
    fails("cameras", Errc::forbidden, "role_forbidden");
  }
  EXPECT_EQ(log_.count("refuses this runner"), 1u) << log_.all();
  EXPECT_EQ(log_.count("\"question\":\"cameras\",\"error_code\":\"role_forbidden\""), 1u) << log_.all();
  EXPECT_EQ(log_.count("plane.back"), 0u) << log_.all();
}

TEST_F(PlaneWatching, AnotherReason_IsSaid_ButALineAtMostEveryTenSeconds) {
  fails("leases");
  fails("leases", Errc::unavailable, "timeout");
  EXPECT_EQ(log_.count("plane.away"), 1u);
  pass(10s);
  for (const char* reason : {"unreachable", "timeout", "unreachable", "timeout"})
    fails("leases", Errc::unavailable, reason);
  EXPECT_EQ(log_.count("\"error_code\":\"timeout\""), 1u) << log_.all();
  EXPECT_EQ(log_.count("plane.away"), 2u) << log_.all();
}

TEST_F(PlaneWatching, APlaneThatComesAndGoes_FillsNoLog) {
  for (int i = 0; i < 100; ++i, pass(100ms)) {
    fails("heartbeat");
    answers("heartbeat");
  }
  EXPECT_EQ(log_.count("plane."), 2u) << log_.all();
}

TEST_F(PlaneWatching, AQuestionThatNobodyAsksAgain_KeepsNobodyAway) {
  fails("leases");
  answers("heartbeat");
  EXPECT_EQ(log_.count("plane.back"), 0u);
  pass(31s);
  answers("heartbeat");
  EXPECT_EQ(log_.count("plane.back"), 1u) << log_.all();
}

}  // namespace
}  // namespace weir::runner
