// How leases end: by release, revocation, last will and expiry. Over every store, as in lease_store_test.cpp.
#include "lease_store.hpp"

namespace weir::test {

TEST_P(LeaseStoreContract, DisabledCamera_LosesItsLease_AndCannotBeAcquired) {
  auto got = acquire(a, 1);
  auto set_enabled = [&](bool to) {
    return stores.run(stores.catalog->edit_camera(cam(1), {}, [to](const CameraRecord& r) -> Result<camera::Config> {
      camera::Config next = r.config;
      next.enabled = to;
      return next;
    }));
  };
  ASSERT_TRUE(set_enabled(false));
  auto lost = renew(a, 1, got.version);
  EXPECT_EQ(lost.outcome, Outcome::lost);
  EXPECT_GT(lost.version, got.version);
  EXPECT_EQ(acquire(b, 1).why, Refusal::disabled);
  ASSERT_TRUE(set_enabled(true));
  EXPECT_GT(acquire(b, 1).version, lost.version);
}

TEST_P(LeaseStoreContract, DeletedAndRecreatedCamera_GoesOnWithHigherVersions) {
  auto got = acquire(a, 1);
  ASSERT_TRUE(stores.run(stores.catalog->remove_camera(cam(1), {})));
  EXPECT_EQ(renew(a, 1, got.version).outcome, Outcome::lost);
  EXPECT_EQ(acquire(b, 1).why, Refusal::disabled);
  ASSERT_TRUE(stores.run(stores.catalog->add_camera(camera_config(cam(1)))));
  auto next = acquire(b, 1);
  EXPECT_EQ(next.outcome, Outcome::granted);
  EXPECT_GT(next.version, got.version);
}

TEST_P(LeaseStoreContract, Revocation_EndsTheLease_AndKeepsTheRunnerAwayWhileAnotherCanTakeIt) {
  live_runner("runner-a");
  auto got = acquire(a, 1);
  auto view = stores.run(stores.leases->revoke(cam(1), {}));
  ASSERT_TRUE(view);
  EXPECT_TRUE(view->row.revoked);
  EXPECT_GT(view->row.version, got.version);
  EXPECT_EQ(renew(a, 1, got.version).outcome, Outcome::lost);
  auto only_one = acquire(a, 1, "again");
  EXPECT_EQ(only_one.outcome, Outcome::granted);  // nobody else is alive
  ASSERT_TRUE(stores.run(stores.leases->revoke(cam(1), {})));
  live_runner("runner-b");
  EXPECT_EQ(acquire(a, 1, "third").why, Refusal::avoided);
  EXPECT_EQ(acquire(b, 1).outcome, Outcome::granted);
}

TEST_P(LeaseStoreContract, ReleaseWithAvoid_IsKept_UntilAnotherRunnerCanTakeTheCamera) {
  live_runner("runner-a");
  auto got = acquire(a, 1);
  EXPECT_EQ(release(a, 1, got.version, true).outcome, Outcome::kept);
  EXPECT_EQ(renew(a, 1, got.version).outcome, Outcome::renewed);
  live_runner("runner-b", "", "", 1);
  EXPECT_EQ(release(a, 1, got.version, true).outcome, Outcome::released);
  EXPECT_EQ(acquire(a, 1, "again").why, Refusal::avoided);
  auto other = acquire(b, 1);
  ASSERT_EQ(other.outcome, Outcome::granted);
  // b is full now and a avoids the camera: b cannot let go of it.
  EXPECT_EQ(release(b, 1, other.version, true).outcome, Outcome::kept);
}

TEST_P(LeaseStoreContract, LastWill_ReleasesEverythingOfThatBoot_AndEndsIt) {
  live_runner("runner-a", "b1", "hash-of-will");
  auto one = acquire(a, 1), two = acquire(a, 2);
  auto other_boot = acquire(owner("runner-a", "b2"), 3);
  ASSERT_EQ(other_boot.outcome, Outcome::granted);
  for (const char* wrong : {"", "another-hash"}) {
    auto refused = stores.run(stores.leases->release_all(a, wrong));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::unauthorized);
  }
  auto released = stores.run(stores.leases->release_all(a, "hash-of-will"));
  ASSERT_TRUE(released);
  ASSERT_EQ(released->size(), 2u);
  std::ranges::sort(*released, {}, &lease::LeaseRow::subject);
  for (int n : {1, 2}) EXPECT_EQ((*released)[static_cast<size_t>(n - 1)], show(n).row);
  EXPECT_TRUE((*released)[0].released);
  EXPECT_EQ(renew(a, 1, one.version).outcome, Outcome::lost);
  EXPECT_EQ(acquire(a, 1, "again").why, Refusal::boot_dead);
  EXPECT_EQ(acquire(b, 2).outcome, Outcome::granted);
  EXPECT_EQ(renew(owner("runner-a", "b2"), 3, other_boot.version).outcome, Outcome::renewed);
  EXPECT_GT(show(2).row.version, two.version);
}

// The control plane that asks again may be the first that hears the answer, and must be able to announce all cameras
// that are free since.
TEST_P(LeaseStoreContract, LastWillAskedAgain_AnswersWhatItReleased_ExceptWhatWasTakenSince) {
  live_runner("runner-a", "b1", "hash-of-will");
  auto will = [&] {
    auto rows = stores.run(stores.leases->release_all(a, "hash-of-will"));
    EXPECT_TRUE(rows);
    if (rows) std::ranges::sort(*rows, {}, &lease::LeaseRow::subject);
    return rows ? *rows : std::vector<lease::LeaseRow>{};
  };
  acquire(a, 1), acquire(a, 2);
  auto own = acquire(a, 3);
  ASSERT_EQ(release(a, 3, own.version).outcome, Outcome::released);  // its owner's word, not the will's
  auto first = will();
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(will(), first);
  ASSERT_EQ(acquire(b, 2).outcome, Outcome::granted);
  EXPECT_EQ(will(), std::vector{first[0]});
}

TEST_P(LeaseStoreContract, LastWill_EndsTheRunnersLife_UntilItRegistersAgain) {
  auto is_live = [&] { return stores.run(stores.catalog->show_runner(b.runner, {}))->live; };
  live_runner("runner-a");
  live_runner("runner-b", "b1", "hash-of-will");
  acquire(a, 1);
  ASSERT_TRUE(stores.run(stores.leases->revoke(cam(1), {})));
  ASSERT_EQ(acquire(b, 1).outcome, Outcome::granted);
  EXPECT_EQ(acquire(a, 1, "again").why, Refusal::avoided);
  ASSERT_TRUE(stores.run(stores.leases->release_all(b, "hash-of-will")));
  EXPECT_FALSE(is_live());
  EXPECT_EQ(acquire(a, 1, "again").outcome, Outcome::granted);  // there is nobody to leave it to
  live_runner("runner-b", "b2", "another-hash");
  ASSERT_TRUE(stores.run(stores.leases->release_all(b, "hash-of-will")));
  EXPECT_TRUE(is_live());
}

TEST_P(LeaseStoreContract, RunnerThatLetTheCamerasLeaseRunOut_IsNobodyToLeaveItTo) {
  live_runner("runner-a");
  live_runner("runner-b");
  acquire(a, 1);
  ASSERT_TRUE(stores.run(stores.leases->revoke(cam(1), {})));
  ASSERT_EQ(acquire(b, 1, "k", 1ms).outcome, Outcome::granted);
  ASSERT_TRUE(eventually_ticking([&] { return show(1).expired; }));
  live_runner("runner-c");
  EXPECT_EQ(acquire(a, 1, "again").why, Refusal::avoided);
  ASSERT_TRUE(stores.run(stores.catalog->change_runner(RunnerId::trusted("runner-c"), {}, {true})));
  EXPECT_NE(acquire(a, 1, "again").why, Refusal::avoided);
  EXPECT_TRUE(eventually_ticking([&] { return show(1).row.owner == a || acquire(a, 1).outcome == Outcome::granted; }));
}

TEST_P(LeaseStoreContract, GrantsAndReleases_SayWhereTheCameraStands_AlsoWhenReplayed) {
  auto got = acquire(a, 1);
  auto replay = acquire(a, 1);
  auto held = acquire(b, 1), own = acquire(a, 1, "another key"), renewed = renew(a, 1, got.version);
  auto released = release(a, 1, got.version), again = release(a, 1, got.version);
  for (const auto& answer : {got, replay, own, released, again}) {
    EXPECT_EQ(answer.tenant.str(), "t1");
    EXPECT_EQ(answer.site.str(), "s1");
  }
  EXPECT_EQ(again.version, released.version);  // names the step, so it is announced once
  for (const auto& answer : {held, renewed}) EXPECT_TRUE(answer.tenant.empty() && answer.site.empty());
}

TEST_P(LeaseStoreContract, Expiry_IsTakenOnceAVersion_WithItsLastOwner) {
  auto kept = acquire(a, 1);
  auto gone = acquire(a, 2, "k", 1ms);
  std::vector<lease::LeaseRow> taken;
  auto take = [&] {
    auto more = stores.run(stores.leases->take_expired(10));
    EXPECT_TRUE(more);
    if (more) taken.insert(taken.end(), more->begin(), more->end());
  };
  ASSERT_TRUE(eventually_ticking([&] { return take(), !taken.empty(); }));
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken[0].subject, cam(2));
  EXPECT_EQ(taken[0].owner, a);
  EXPECT_EQ(taken[0].version, gone.version);
  EXPECT_EQ(taken[0].site.str(), "s1");
  EXPECT_EQ(acquire(b, 2, "next", 1ms).outcome, Outcome::granted);  // it was told when it could be taken

  // The next version is told again, once: another look, which finds something else, does not find it any more.
  ASSERT_TRUE(eventually_ticking([&] { return take(), taken.size() > 1; }));
  auto other = acquire(a, 3, "k", 1ms);
  ASSERT_TRUE(eventually_ticking([&] { return take(), taken.size() > 2; }));
  ASSERT_EQ(taken.size(), 3u);
  EXPECT_EQ(taken[1].owner, b);
  EXPECT_EQ(taken[1].version, show(2).row.version);
  EXPECT_EQ(taken[2].version, other.version);
  EXPECT_EQ(renew(a, 1, kept.version).outcome, Outcome::renewed);
}

TEST_P(LeaseStoreContract, LeaseRenewedAfterItsExpiry_IsTakenAgainWhenItRunsOutAgain) {
  auto got = acquire(a, 1, "k", 1ms);
  std::vector<lease::LeaseRow> taken;
  auto take = [&] {
    auto more = stores.run(stores.leases->take_expired(10));
    EXPECT_TRUE(more);
    if (more) taken.insert(taken.end(), more->begin(), more->end());
  };
  ASSERT_TRUE(eventually_ticking([&] { return take(), !taken.empty(); }));
  ASSERT_EQ(renew(a, 1, got.version, 1ms).outcome, Outcome::renewed);
  ASSERT_TRUE(eventually_ticking([&] { return take(), taken.size() > 1; }));
  auto other = acquire(a, 2, "k", 1ms);
  ASSERT_TRUE(eventually_ticking([&] { return take(), taken.size() > 2; }));
  ASSERT_EQ(taken.size(), 3u);  // each once
  EXPECT_EQ(taken[0].version, got.version);
  EXPECT_EQ(taken[1].version, got.version);
  EXPECT_GT(taken[1].expires, taken[0].expires);  // tells the two apart
  EXPECT_EQ(taken[2].version, other.version);
}

TEST_P(LeaseStoreContract, WhatWasReleasedOrRenewedInTime_DoesNotExpire) {
  auto released = acquire(a, 1, "k", 1ms), renewed = acquire(a, 2, "k", 1ms);
  release(a, 1, released.version);
  renew(a, 2, renewed.version, 10s);
  acquire(a, 3, "k", 1ms);
  std::vector<lease::LeaseRow> taken;
  ASSERT_TRUE(eventually_ticking([&] { return !(taken = *stores.run(stores.leases->take_expired(10))).empty(); }));
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken[0].subject, cam(3));
}

TEST_P(LeaseStoreContract, ManyExpiries_ComeInParts_AtOnce) {
  for (int n = 1; n <= 3; ++n) acquire(a, n, "k", 1ms);
  std::set<CameraId> taken;
  ASSERT_TRUE(eventually_ticking([&] { return show(1).expired && show(2).expired && show(3).expired; }));
  auto take = [&] {
    auto rows = stores.run(stores.leases->take_expired(2));
    EXPECT_TRUE(rows);
    for (const auto& row : *rows) EXPECT_TRUE(taken.insert(row.subject).second);
    return rows->size();
  };
  EXPECT_EQ(take(), 2u);
  EXPECT_EQ(take(), 1u);
  EXPECT_EQ(take(), 0u);
}

TEST_P(LeaseStoreContract, Expiry_IsNotTakenBeforeOthersMayTakeTheLease) {
  auto got = acquire(a, 1, "k", 1ms);
  ASSERT_EQ(renew(b, 2, Version{got.version.n + 1000}).outcome, Outcome::lost);  // opens a new epoch: all is closed
  ASSERT_TRUE(eventually_ticking([&] { return show(1).expired; }));
  EXPECT_EQ(acquire(b, 1).why, Refusal::settling);
  EXPECT_TRUE(stores.run(stores.leases->take_expired(10))->empty());
}

}  // namespace weir::test
