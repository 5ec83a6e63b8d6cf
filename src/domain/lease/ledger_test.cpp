#include "weir/lease/ledger.hpp"

#include <gtest/gtest.h>

namespace weir::lease {
namespace {

const Owner kOwner{RunnerId::trusted("r1"), BootId::trusted("b1")};

// One camera, which r1 holds. Counts calls of the slow `other_eligible`.
class OneRow final : public Rows {
 public:
  OneRow() {
    row.owner = kOwner;
    row.version = row.grant = Version::make(1, 7);
    row.expires = LeaseTime(Duration(1h));
    row.assignable = true;
    row.released = false;
  }
  std::optional<LeaseRow> find(const CameraId&) override { return row; }
  void save(const LeaseRow& changed) override { row = changed; }
  bool boot_dead(const Owner&) override { return false; }
  bool cordoned(const RunnerId&) override { return false; }
  bool avoided(const CameraId&, const RunnerId&, LeaseTime) override { return false; }
  bool other_eligible(const CameraId&, const RunnerId&, LeaseTime) override { return ++asked > 0; }
  void add_avoid(const CameraId&, const RunnerId&, LeaseTime) override {}
  void empty_buckets(LeaseTime) override {}

  LeaseRow row{CameraId::trusted("c1")};
  int asked = 0;
};

Outcome let_go(OneRow& rows, const Owner& by, std::optional<Version> version) {
  StoreState state;
  state.counter = 100;
  Batch batch{.operation = Operation::release, .owner = by};
  batch.asks.push_back({.subject = rows.row.subject, .version = version, .avoid = true});
  return apply(rows, state, batch, WallTime{}, 60s).answers.at(0).outcome;
}

TEST(Ledger, WhoHoldsNothing_IsNotLookedAfterASuccessorFor) {
  OneRow rows;
  EXPECT_EQ(let_go(rows, {RunnerId::trusted("r2"), BootId::trusted("b2")}, Version::make(1, 6)), Outcome::lost);
  EXPECT_EQ(let_go(rows, kOwner, Version::make(1, 6)), Outcome::lost);
  EXPECT_EQ(rows.asked, 0) << "a thousand of these would hold up everybody's renewals";
  EXPECT_EQ(let_go(rows, kOwner, rows.row.version), Outcome::released);
  EXPECT_EQ(rows.asked, 1);
  OneRow simple;
  EXPECT_EQ(let_go(simple, kOwner, {}), Outcome::released) << "who names no version means the present one";
}

TEST(Ledger, AGrantAskedForAgain_SaysSo_AndSinceWhenItIsHeld) {
  OneRow rows;
  rows.row.last_key = "k";
  rows.row.acquired_at = WallTime(5s);
  StoreState state;
  state.counter = 100;
  auto ask = [&](std::string key) {
    Batch batch{.operation = Operation::acquire, .owner = kOwner, .ttl = 10s};
    batch.asks.push_back({.subject = rows.row.subject, .key = std::move(key)});
    return apply(rows, state, batch, WallTime(9s), 60s).answers.at(0);
  };
  Answer again = ask("k"), other = ask("other key");
  EXPECT_TRUE(again.outcome == Outcome::granted && again.replayed);
  EXPECT_TRUE(other.yours && !other.replayed);
  EXPECT_EQ(again.acquired_at, WallTime(5s));
  EXPECT_EQ(other.acquired_at, WallTime(5s));
  rows.row.released = true;
  Answer anew = ask("k");
  EXPECT_TRUE(anew.outcome == Outcome::granted && !anew.replayed);
  EXPECT_EQ(anew.acquired_at, WallTime(9s));
}

}  // namespace
}  // namespace weir::lease
