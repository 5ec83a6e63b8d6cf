#include "weir/lease/decide.hpp"

#include <gtest/gtest.h>

namespace weir::lease {

namespace {

const CameraId kCamera = CameraId::trusted("c");
const Owner kA{RunnerId::trusted("a"), BootId::trusted("1")};
const Owner kB{RunnerId::trusted("b"), BootId::trusted("2")};

LeaseRow held(Owner owner, LeaseTime expires) {
  LeaseRow row{kCamera};
  row.owner = owner;
  row.version = row.grant = Version::make(1, 7);
  row.last_key = "k";
  row.expires = expires;
  row.ttl = 6s;
  row.released = false;
  return row;
}

Moment at(LeaseTime now) {
  Moment moment{now};
  moment.next = Version::make(1, 8);
  return moment;
}

Decision acquire(const LeaseRow& row, const Owner& who, const Moment& moment, Facts facts = {}, std::string key = "new") {
  Batch batch{Operation::acquire, who, 6s};
  return decide(row, batch, {kCamera, {}, false, key}, moment, facts);
}
Decision renew(const LeaseRow& row, const Owner& who, Version version, const Moment& moment) {
  Batch batch{Operation::renew, who, 6s};
  return decide(row, batch, {kCamera, version}, moment, {});
}

}  // namespace

TEST(Decide, ExpiredLease_IsNotTaken_DuringAHold) {
  LeaseRow row = held(kA, LeaseTime(10s));
  Moment moment = at(LeaseTime(11s));
  moment.hold_until = LeaseTime(12s);
  Decision kept = acquire(row, kB, moment);
  EXPECT_EQ(kept.answer.outcome, Outcome::held);
  EXPECT_EQ(kept.answer.why, Refusal::settling);
  EXPECT_FALSE(kept.write);
  moment.now = LeaseTime(12s);
  EXPECT_EQ(acquire(row, kB, moment).answer.outcome, Outcome::granted);
}

TEST(Decide, OthersMayTake_OnceNeitherAHoldNorANewEpochProtectsTheHolder) {
  Moment moment = at(LeaseTime(10s));
  EXPECT_TRUE(settled(moment));
  moment.hold_until = LeaseTime(11s);
  EXPECT_FALSE(settled(moment));
  moment.hold_until = {};
  moment.closed_until = LeaseTime(11s);
  EXPECT_FALSE(settled(moment));
  moment.now = LeaseTime(11s);
  EXPECT_TRUE(settled(moment));
}

TEST(Decide, FreeCamera_IsGranted_DuringAHold_ButNotAfterANewEpoch) {
  LeaseRow row{kCamera};
  Moment moment = at(LeaseTime(11s));
  moment.hold_until = LeaseTime(20s);
  EXPECT_EQ(acquire(row, kB, moment).answer.outcome, Outcome::granted);
  moment.closed_until = LeaseTime(20s);
  EXPECT_EQ(acquire(row, kB, moment).answer.why, Refusal::settling);
}

TEST(Decide, LeaseEndsExactlyAtItsExpiry) {
  LeaseRow row = held(kA, LeaseTime(10s));
  EXPECT_EQ(acquire(row, kB, at(LeaseTime(10s) - 1us)).answer.outcome, Outcome::held);
  Decision taken = acquire(row, kB, at(LeaseTime(10s)));
  EXPECT_EQ(taken.answer.outcome, Outcome::granted);
  EXPECT_TRUE(taken.answer.stolen);
  EXPECT_GT(taken.write->version, row.version);
  EXPECT_EQ(taken.answer.previous, (Tenure{kA.boot, row.grant}));
}

TEST(Decide, OlderEpoch_GivesItsHolderANewTenure_WithoutAPrevious) {
  LeaseRow row = held(kA, LeaseTime(10s));
  Moment moment = at(LeaseTime(5s));
  moment.epoch = 2;
  moment.next = Version::make(2, 8);
  moment.closed_until = LeaseTime(60s);
  Decision anew = renew(row, kA, row.version, moment);
  EXPECT_EQ(anew.answer.outcome, Outcome::granted);
  EXPECT_EQ(anew.answer.grant, moment.next);
  EXPECT_FALSE(anew.answer.previous);
}

TEST(Decide, VersionAboveTheRows_IsNotLost_ButProvesLostCommits) {
  LeaseRow row = held(kA, LeaseTime(10s));
  Decision odd = renew(row, kB, Version::make(1, 9), at(LeaseTime(5s)));
  EXPECT_EQ(odd.answer.outcome, Outcome::unknown);
  EXPECT_TRUE(odd.lost_commits);
  // A speaker that is not the owner is refused, even where it has the row's own version.
  Decision same = renew(row, kB, row.version, at(LeaseTime(5s)));
  EXPECT_EQ(same.answer.outcome, Outcome::unknown);
  EXPECT_FALSE(same.lost_commits);
}

TEST(Decide, AvoidedRunner_GetsTheCamera_WhenNobodyElseCan) {
  LeaseRow row{kCamera};
  Facts facts;
  facts.avoided = true;
  EXPECT_EQ(acquire(row, kA, at({}), facts).answer.outcome, Outcome::granted);
  facts.other_eligible = true;
  EXPECT_EQ(acquire(row, kA, at({}), facts).answer.why, Refusal::avoided);
}

TEST(Decide, AvoidDoubles_UpToSixteenMinutes) {
  EXPECT_EQ(avoid_duration(1), 1min);
  EXPECT_EQ(avoid_duration(3), 4min);
  EXPECT_EQ(avoid_duration(5), 16min);
  EXPECT_EQ(avoid_duration(50), 16min);
}

TEST(Decide, Fence_AcceptsOnlyTheRowsOwnVersion_OfTheCurrentEpoch) {
  LeaseRow row = held(kA, LeaseTime(10s));
  EXPECT_TRUE(fence_accepts(row, kA, row.version, 1));
  EXPECT_FALSE(fence_accepts(row, kB, row.version, 1));
  EXPECT_FALSE(fence_accepts(row, kA, Version::make(1, 6), 1));
  EXPECT_FALSE(fence_accepts(row, kA, Version::make(1, 8), 1));
  // A failover brought an older row back: its owner's successor may have been heard already.
  EXPECT_FALSE(fence_accepts(row, kA, row.version, 2));
  row.released = true;
  EXPECT_FALSE(fence_accepts(row, kA, row.version, 1));
}

// ---- what was spooled under a tenure ----

TEST(Tenure, IsOver_OnceAnotherGrantCameAfterIt) {
  LeaseRow row = held(kA, LeaseTime(10s));
  row.grant = Version::make(1, 5);
  Tenure own{kA.boot, row.grant}, older{kB.boot, Version::make(1, 4)}, newer{kB.boot, Version::make(1, 6)};
  EXPECT_FALSE(is_over(own, row, kB.boot)) << "it expires, or is released, and its host may adopt it";
  EXPECT_FALSE(is_over(newer, row, kB.boot)) << "the store has forgotten commits: nothing is known";
  EXPECT_TRUE(is_over(older, row, kB.boot));
  EXPECT_TRUE(is_over(older, row, kA.boot)) << "it is not what this grant may adopt";
  row.previous = older;
  EXPECT_TRUE(is_over(older, row, kB.boot)) << "taken";
  EXPECT_FALSE(is_over(older, row, kA.boot)) << "whoever was granted the camera may be adopting it";
  row.released = true;
  EXPECT_TRUE(is_over(older, row, kA.boot)) << "it was not adopted, and the next grant names another";
}

TEST(Tenure, IsOver_WhenItsCameraIsDisabledOrDeleted) {
  LeaseRow row = held(kA, LeaseTime(10s));
  row.assignable = false;
  EXPECT_TRUE(is_over({kA.boot, row.grant}, row, kB.boot));
}

TEST(PutInCharge, EndsTheLease_OfACameraThatIsNoLongerAssignable) {
  LeaseRow row = held(kA, LeaseTime(10s));
  Version next = Version::make(1, 8);
  ClusterId cluster = ClusterId::trusted("default");
  Charged given = put_in_charge(row, {false, cluster}, next);
  EXPECT_TRUE(given.drew);
  EXPECT_EQ(given.row.version, next);
  EXPECT_TRUE(given.row.released && given.row.revoked);
  EXPECT_EQ(given.row.owner, kA) << "who lost it";
  EXPECT_EQ(given.row.cluster, cluster);
  EXPECT_FALSE(put_in_charge(given.row, {false, cluster}, Version::make(1, 9)).drew) << "it is there already";

  Charged same = put_in_charge(row, {true, {}}, next);
  EXPECT_FALSE(same.drew);
  EXPECT_EQ(same.row, row);
}

TEST(PutInCharge, GivesACameraThatLeavesItsCluster_AVersionAndNoOwner) {
  LeaseRow row = revoke(held(kA, LeaseTime(10s)), Version::make(1, 8));
  row.assignable = false;
  row.cluster = ClusterId::trusted("default");
  row.previous = Tenure{kB.boot, Version::make(1, 3)};
  for (const Charge& charge : {Charge{true, {}}, Charge{false, {}}, Charge{false, ClusterId::trusted("other")}}) {
    Charged left = put_in_charge(row, charge, Version::make(1, 20));
    EXPECT_TRUE(left.drew);
    EXPECT_EQ(left.row.version, Version::make(1, 20));
    EXPECT_EQ(left.row.owner, Owner());
    EXPECT_FALSE(left.row.previous || left.row.revoked);
    EXPECT_TRUE(left.row.released);
    EXPECT_EQ(left.row.assignable, charge.assignable);
    EXPECT_EQ(left.row.cluster, charge.cluster);
  }
}

TEST(Fence, OfACameraThatAClusterProcesses_IsTheClustersLease_AboveTheCamerasVersion) {
  LeaseRow camera{kCamera, TenantId::trusted("t1")};
  camera.cluster = ClusterId::trusted("default");
  camera.version = Version::make(1, 5);
  LeaseRow cluster = held(kA, LeaseTime(10s));
  cluster.kind = Kind::cluster;
  auto accepts = [&](const Owner& who, Version stamped) { return fence_accepts(camera, cluster, who, stamped, 1); };
  EXPECT_TRUE(accepts(kA, cluster.version));
  EXPECT_FALSE(accepts(kB, cluster.version));
  EXPECT_FALSE(accepts(kA, Version::make(1, 6)));
  cluster.tenant = TenantId::trusted("t2");
  EXPECT_FALSE(accepts(kA, cluster.version)) << "another tenant's cluster";
  cluster.tenant = camera.tenant;
  EXPECT_TRUE(accepts(kA, cluster.version));
  camera.version = cluster.version;
  EXPECT_FALSE(accepts(kA, cluster.version)) << "versions of one camera only rise";
  camera.version = {};
  cluster.kind = Kind::camera;
  EXPECT_FALSE(accepts(kA, cluster.version));
}

}  // namespace weir::lease
