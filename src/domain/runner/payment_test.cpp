#include "weir/runner/payment.hpp"

#include "parts_testing.hpp"

namespace weir::runner {
namespace {

using namespace testing;

constexpr lease::Version kGrant{5}, kOther{6};

TokenHeard answer(bool granted, bool refused = false) {
  return {.camera = cam("c"), .grant = kGrant, .granted = granted, .retry_after = 1s, .refused = refused};
}

TEST(Payment, IsAskedForOnce_AndPaidByTheAnswer) {
  Turn turn = turn_at(kNow);
  Payment payment;
  EXPECT_TRUE(payment.ask(kNow));
  EXPECT_FALSE(payment.ask(kNow + 1h)) << "a question is under way";
  payment.hear(answer(true), kGrant, turn);
  EXPECT_TRUE(payment.paid());
}

TEST(Payment, WithoutAToken_IsAskedForAgainWhenThereMayBeOne) {
  Turn turn = turn_at(kNow);
  Payment payment;
  payment.ask(kNow);
  payment.hear(answer(false, true), kGrant, turn);
  EXPECT_FALSE(payment.paid());
  EXPECT_TRUE(payment.refused());
  EXPECT_FALSE(payment.ask(kNow + 999ms));
  EXPECT_TRUE(payment.ask(kNow + 1250ms));
  EXPECT_TRUE(payment.refused()) << "until an answer says otherwise";
}

TEST(Payment, WithoutAnAnswer_TheBudgetIsNotBlamed) {
  Turn turn = turn_at(kNow);
  Payment payment;
  payment.ask(kNow);
  payment.hear(answer(false), kGrant, turn);
  EXPECT_FALSE(payment.refused());
  EXPECT_FALSE(payment.paid());
}

TEST(Payment, ANewGrant_OwesAnew_AndTheAnswerForTheOldOnePaysNothing) {
  Turn turn = turn_at(kNow);
  Payment payment;
  payment.ask(kNow);
  payment.owe();
  EXPECT_FALSE(payment.ask(kNow)) << "the old question is waited for";
  payment.hear(answer(true), kOther, turn);
  EXPECT_FALSE(payment.paid());
  EXPECT_TRUE(payment.ask(kNow)) << "without a pause";
  payment.hear(answer(true), std::nullopt, turn);
  EXPECT_FALSE(payment.paid()) << "the lease is gone";
}

}  // namespace
}  // namespace weir::runner
