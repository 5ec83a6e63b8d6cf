#include "weir/lease/ledger.hpp"

#include <gtest/gtest.h>

namespace weir::lease {
namespace {

const Owner kOwner{RunnerId::trusted("r1"), BootId::trusted("b1")};

// One camera, which r1 holds. Counts the dear question.
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
  batch.asks.push_back({.camera = rows.row.camera, .version = version, .avoid = true});
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

}  // namespace
}  // namespace weir::lease
