// What every lease store promises, over the fake, SQLite and a real PostgreSQL.
#include "stall.hpp"
#include "stores.hpp"

namespace weir::test {

using lease::Operation;
using lease::Outcome;
using lease::Refusal;
using lease::Version;

class LeaseStoreContract : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    if (!stores.unavailable.empty()) GTEST_SKIP() << stores.unavailable;
    stores.furnish(3);
  }
  lease::Answer acquire(const lease::Owner& who, int camera, std::string key = "k", Duration ttl = 10s) {
    return stores.ask(Operation::acquire, who, {cam(camera), {}, false, std::move(key)}, ttl);
  }
  lease::Answer renew(const lease::Owner& who, int camera, Version version, Duration ttl = 10s) {
    return stores.ask(Operation::renew, who, {cam(camera), version}, ttl);
  }
  lease::Answer rotate(const lease::Owner& who, int camera, Version version, std::string key) {
    return stores.ask(Operation::renew, who, {cam(camera), version, true, std::move(key)});
  }
  lease::Answer release(const lease::Owner& who, int camera, Version version, bool avoid = false) {
    return stores.ask(Operation::release, who, {cam(camera), version, false, {}, avoid});
  }
  LeaseView show(int camera) { return *stores.run(stores.leases->show(cam(camera), {})); }
  void live_runner(const std::string& id, const std::string& boot = "", const std::string& will = "", int capacity = 40) {
    Runner runner;
    runner.id = RunnerId::trusted(id);
    runner.boot = BootId::trusted(boot);
    runner.capacity = capacity;
    ASSERT_TRUE(stores.run(stores.catalog->register_runner(runner, will)));
  }
  // Lease time moves only when somebody looks, as it does under a control plane.
  bool eventually_ticking(const std::function<bool()>& condition) {
    return eventually(10s, [&] {
      EXPECT_TRUE(stores.run(stores.leases->tick()));
      return condition();
    });
  }

  Stores stores{GetParam()};
  const lease::Owner a = owner("runner-a"), b = owner("runner-b");
};

TEST_P(LeaseStoreContract, FreeCamera_IsGranted) {
  auto got = acquire(a, 1);
  EXPECT_EQ(got.outcome, Outcome::granted);
  EXPECT_GT(got.version, Version{});
  EXPECT_EQ(got.version, got.grant);
  EXPECT_EQ(got.ttl, 10s);
  EXPECT_FALSE(got.previous);
  EXPECT_FALSE(got.stolen);
  EXPECT_EQ(show(1).row.owner, a);
  EXPECT_FALSE(show(1).expired);
}

TEST_P(LeaseStoreContract, HeldCamera_IsRefusedToOthers_AlsoToAnotherBootOfTheSameRunner) {
  auto got = acquire(a, 1);
  for (const auto& other : {b, owner("runner-a", "b2"), owner("runner-a", "")}) {
    auto refused = acquire(other, 1);
    EXPECT_EQ(refused.outcome, Outcome::held);
    EXPECT_FALSE(refused.yours);
    EXPECT_EQ(refused.version, got.version);
  }
}

TEST_P(LeaseStoreContract, ReplayedKey_AnswersTheSameVersion_AndRenews) {
  auto first = acquire(a, 1, "k1", 300ms);
  auto replay = acquire(a, 1, "k1", 20s);
  EXPECT_EQ(replay.outcome, Outcome::granted);
  EXPECT_EQ(replay.version, first.version);
  EXPECT_EQ(show(1).row.ttl, Duration(20s));
  EXPECT_GT(show(1).expires_at, wall_now() + 15s);
}

TEST_P(LeaseStoreContract, AnotherKeyOfTheOwner_AnswersHeldAndYours) {
  auto first = acquire(a, 1, "k1");
  auto other = acquire(a, 1, "k2");
  EXPECT_EQ(other.outcome, Outcome::held);
  EXPECT_TRUE(other.yours);
  EXPECT_EQ(other.version, first.version);
}

TEST_P(LeaseStoreContract, ReplayAfterATakeover_AnswersThePreviousTenureAgain) {
  auto first = acquire(a, 1, "k1", 1ms);
  lease::Answer taken;
  ASSERT_TRUE(eventually_ticking([&] { return (taken = acquire(b, 1, "k2")).outcome == Outcome::granted; }));
  EXPECT_TRUE(taken.stolen);
  ASSERT_TRUE(taken.previous);
  EXPECT_EQ(*taken.previous, (lease::Tenure{a.boot, first.grant}));
  EXPECT_EQ(acquire(b, 1, "k2").previous, taken.previous);
}

TEST_P(LeaseStoreContract, Renewal_KeepsTheVersion) {
  auto got = acquire(a, 1);
  auto renewed = renew(a, 1, got.version, 20s);
  EXPECT_EQ(renewed.outcome, Outcome::renewed);
  EXPECT_EQ(renewed.version, got.version);
  EXPECT_EQ(renewed.grant, got.grant);
  EXPECT_EQ(renewed.ttl, 20s);
}

TEST_P(LeaseStoreContract, RenewalOfAnotherVersionOrByAnotherOwner_IsLost_WithAHigherVersion) {
  auto got = acquire(a, 1);
  auto rotated = rotate(a, 1, got.version, "r1");
  auto old = renew(a, 1, got.version);
  EXPECT_EQ(old.outcome, Outcome::lost);
  EXPECT_EQ(old.version, rotated.version);
  auto stranger = renew(b, 1, got.version);
  EXPECT_EQ(stranger.outcome, Outcome::lost);
  EXPECT_GT(stranger.version, got.version);
  EXPECT_EQ(renew(owner("runner-a", "b2"), 1, got.version).outcome, Outcome::lost);
}

TEST_P(LeaseStoreContract, ALossIsNeverAnsweredWithTheAskersOwnVersion) {
  auto got = acquire(a, 1);
  auto answer = renew(b, 1, got.version);  // b claims a's very version
  EXPECT_NE(answer.outcome, Outcome::renewed);
  EXPECT_TRUE(answer.outcome != Outcome::lost || answer.version > got.version);
}

TEST_P(LeaseStoreContract, Rotation_DrawsANewVersion_KeepsTheTenure_AndCanBeReplayed) {
  auto got = acquire(a, 1);
  auto rotated = rotate(a, 1, got.version, "r1");
  EXPECT_EQ(rotated.outcome, Outcome::rotated);
  EXPECT_GT(rotated.version, got.version);
  EXPECT_EQ(rotated.grant, got.grant);
  auto replay = rotate(a, 1, got.version, "r1");
  EXPECT_EQ(replay.outcome, Outcome::rotated);
  EXPECT_EQ(replay.version, rotated.version);
  EXPECT_EQ(rotate(a, 1, got.version, "r2").outcome, Outcome::lost);
}

TEST_P(LeaseStoreContract, MixedBatchOfRenewalsAndRotations_AnswersEachInItsPlace) {
  auto one = acquire(a, 1), two = acquire(a, 2);
  auto answers = stores.run(stores.leases->apply(
      {Operation::renew, a, 10s,
       {{cam(2), two.version, true, "r"}, {CameraId::trusted("nowhere"), two.version}, {cam(1), one.version}}}));
  ASSERT_TRUE(answers);
  EXPECT_EQ((*answers)[0].outcome, Outcome::rotated);
  EXPECT_EQ((*answers)[0].camera, cam(2));
  EXPECT_EQ((*answers)[1].outcome, Outcome::refused);
  EXPECT_EQ((*answers)[1].why, Refusal::not_found);
  EXPECT_EQ((*answers)[2].outcome, Outcome::renewed);
}

TEST_P(LeaseStoreContract, WithoutAVersion_OnlyALeaseAcquiredWithoutAKeyIsTouched) {
  acquire(a, 1, "");
  EXPECT_EQ(stores.ask(Operation::renew, a, {cam(1)}).outcome, Outcome::renewed);
  EXPECT_EQ(acquire(a, 1, "").outcome, Outcome::granted);
  EXPECT_EQ(stores.ask(Operation::release, a, {cam(1)}).outcome, Outcome::released);
  acquire(a, 2, "key");
  EXPECT_EQ(stores.ask(Operation::renew, a, {cam(2)}).outcome, Outcome::lost);
  EXPECT_EQ(stores.ask(Operation::release, a, {cam(2)}).outcome, Outcome::lost);
}

TEST_P(LeaseStoreContract, Release_RaisesTheVersion_AndEndsRenewals) {
  auto got = acquire(a, 1);
  auto released = release(a, 1, got.version);
  EXPECT_EQ(released.outcome, Outcome::released);
  EXPECT_GT(released.version, got.version);
  EXPECT_EQ(release(a, 1, got.version).outcome, Outcome::released);  // said again
  EXPECT_EQ(renew(a, 1, got.version).outcome, Outcome::lost);
  EXPECT_EQ(renew(a, 1, released.version).outcome, Outcome::unknown);
  auto next = acquire(b, 1);
  EXPECT_EQ(next.outcome, Outcome::granted);
  EXPECT_GT(next.version, released.version);
  EXPECT_FALSE(next.stolen);
  EXPECT_EQ(next.previous, (lease::Tenure{a.boot, got.grant}));
}

TEST_P(LeaseStoreContract, ReleaseByAnotherOwner_ReleasesNothing) {
  auto got = acquire(a, 1);
  EXPECT_NE(release(b, 1, got.version).outcome, Outcome::released);
  EXPECT_EQ(renew(a, 1, got.version).outcome, Outcome::renewed);
}

TEST_P(LeaseStoreContract, ExpiredButUntaken_CanBeRenewedByItsLastOwner) {
  auto got = acquire(a, 1, "k", 1ms);
  ASSERT_TRUE(eventually_ticking([&] { return show(1).expired; }));
  EXPECT_EQ(renew(a, 1, got.version).outcome, Outcome::renewed);
  EXPECT_FALSE(show(1).expired);
  EXPECT_EQ(acquire(b, 1).outcome, Outcome::held);
}

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
  std::ranges::sort(*released, {}, &lease::LeaseRow::camera);
  for (int n : {1, 2}) EXPECT_EQ((*released)[static_cast<size_t>(n - 1)], show(n).row);
  EXPECT_TRUE((*released)[0].released);
  EXPECT_EQ(renew(a, 1, one.version).outcome, Outcome::lost);
  EXPECT_EQ(acquire(a, 1, "again").why, Refusal::boot_dead);
  EXPECT_EQ(acquire(b, 2).outcome, Outcome::granted);
  EXPECT_EQ(renew(owner("runner-a", "b2"), 3, other_boot.version).outcome, Outcome::renewed);
  EXPECT_GT(show(2).row.version, two.version);
}

// Whoever asks again may be the first to hear the answer, and must be able to tell of all that is free since.
TEST_P(LeaseStoreContract, LastWillAskedAgain_AnswersWhatItReleased_ExceptWhatWasTakenSince) {
  live_runner("runner-a", "b1", "hash-of-will");
  auto will = [&] {
    auto rows = stores.run(stores.leases->release_all(a, "hash-of-will"));
    EXPECT_TRUE(rows);
    if (rows) std::ranges::sort(*rows, {}, &lease::LeaseRow::camera);
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
  auto held = acquire(b, 1), renewed = renew(a, 1, got.version);
  auto released = release(a, 1, got.version), again = release(a, 1, got.version);
  for (const auto& answer : {got, replay, released, again}) {
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
  EXPECT_EQ(taken[0].camera, cam(2));
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
  EXPECT_EQ(taken[0].camera, cam(3));
}

TEST_P(LeaseStoreContract, ManyExpiries_ComeInParts_AtOnce) {
  for (int n = 1; n <= 3; ++n) acquire(a, n, "k", 1ms);
  std::set<CameraId> taken;
  ASSERT_TRUE(eventually_ticking([&] { return show(1).expired && show(2).expired && show(3).expired; }));
  auto take = [&] {
    auto rows = stores.run(stores.leases->take_expired(2));
    EXPECT_TRUE(rows);
    for (const auto& row : *rows) EXPECT_TRUE(taken.insert(row.camera).second);
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

TEST_P(LeaseStoreContract, CordonedRunner_KeepsWhatItHas_AndGetsNothingNew) {
  live_runner("runner-a");
  auto got = acquire(a, 1);
  ASSERT_TRUE(stores.run(stores.catalog->change_runner(a.runner, {}, {true})));
  EXPECT_EQ(acquire(a, 2).why, Refusal::cordoned);
  EXPECT_EQ(renew(a, 1, got.version).outcome, Outcome::renewed);
  ASSERT_TRUE(stores.run(stores.catalog->change_runner(a.runner, {}, {false, DrainMode::soft})));
  EXPECT_EQ(acquire(a, 2).why, Refusal::cordoned);
  ASSERT_TRUE(stores.run(stores.catalog->change_runner(a.runner, {}, {false, DrainMode::none})));
  EXPECT_EQ(acquire(a, 2).outcome, Outcome::granted);
}

TEST_P(LeaseStoreContract, ForeignTenant_SeesNoCamera) {
  lease::Batch batch{Operation::acquire, a, 10s, {{cam(1), {}, false, "k"}}, TenantId::trusted("t2")};
  auto answers = stores.run(stores.leases->apply(batch));
  ASSERT_TRUE(answers);
  EXPECT_EQ((*answers)[0].why, Refusal::not_found);
  EXPECT_FALSE(stores.run(stores.leases->show(cam(1), TenantId::trusted("t2"))));
}

TEST_P(LeaseStoreContract, VersionThatWasNeverDrawn_OpensANewEpoch_AndIsLost) {
  auto got = acquire(a, 1);
  auto two = acquire(a, 2);
  Version future{got.version.n + 1000};
  auto answer = renew(b, 1, future);
  EXPECT_EQ(answer.outcome, Outcome::lost);
  EXPECT_GT(answer.version, future);
  EXPECT_EQ(answer.version.epoch(), got.version.epoch() + 1);
  // Holders go on, in a new tenure under a version of the new epoch.
  auto anew = renew(a, 1, got.version);
  EXPECT_EQ(anew.outcome, Outcome::granted);
  EXPECT_EQ(anew.version.epoch(), got.version.epoch() + 1);
  EXPECT_EQ(anew.grant, anew.version);
  EXPECT_FALSE(anew.previous);
  EXPECT_EQ(rotate(a, 2, two.version, "r").outcome, Outcome::granted);
  // Nothing changes hands until leases of lost commits have run out, and no second epoch is opened meanwhile.
  EXPECT_EQ(acquire(b, 3).why, Refusal::settling);
  EXPECT_EQ(renew(b, 1, Version{anew.version.n + 1000}).outcome, Outcome::unknown);
}

TEST_P(LeaseStoreContract, RotationReplayedAcrossAnEpoch_IsANewGrant_NotTheOldVersion) {
  auto got = acquire(a, 1);
  auto rotated = rotate(a, 1, got.version, "r1");
  ASSERT_EQ(renew(b, 2, Version{rotated.version.n + 1000}).outcome, Outcome::lost);  // opens a new epoch
  auto replay = rotate(a, 1, got.version, "r1");
  EXPECT_EQ(replay.outcome, Outcome::granted);
  EXPECT_EQ(replay.version.epoch(), got.version.epoch() + 1);
  EXPECT_EQ(replay.grant, replay.version);
}

TEST_P(LeaseStoreContract, VersionAboveTheRows_ProvesLostCommits_AlsoWhenTheCounterIsPastIt) {
  auto one = acquire(a, 1);
  auto two = acquire(a, 2);  // as if an older copy was put back and its counter had moved on since
  auto answer = renew(b, 1, two.version);
  EXPECT_EQ(answer.outcome, Outcome::lost);
  EXPECT_GT(answer.version, two.version);
  EXPECT_EQ(answer.version.epoch(), one.version.epoch() + 1);
}

TEST_P(LeaseStoreContract, ManyAskingAtOnce_ExactlyOneIsGranted) {
  for (int round = 0; round < 10; ++round) {
    int granted = 0, held = 0;
    auto one = [&](int n) -> boost::asio::awaitable<void> {
      lease::Batch batch{Operation::acquire, owner("r" + std::to_string(n)), 10s, {{cam(1), {}, false, "k"}}};
      auto answers = co_await stores.leases->apply(batch);
      if (!answers) co_return;
      granted += (*answers)[0].outcome == Outcome::granted;
      held += (*answers)[0].outcome == Outcome::held;
    };
    for (int n = 0; n < 32; ++n) boost::asio::co_spawn(stores.io, one(n), boost::asio::detached);
    stores.io.restart();
    stores.io.run();
    EXPECT_EQ(granted, 1);
    EXPECT_EQ(held, 31);
    auto view = show(1);
    EXPECT_EQ(release(view.row.owner, 1, view.row.version).outcome, Outcome::released);
  }
}

TEST_P(LeaseStoreContract, List_ShowsLeasesInOrder_FilteredAndPaged) {
  acquire(a, 1);
  acquire(b, 2);
  auto got = acquire(a, 3);
  release(a, 3, got.version);
  LeaseFilter all;
  EXPECT_EQ(stores.run(stores.leases->list(all))->size(), 3u);
  LeaseFilter held;
  held.only_held = true;
  held.runner = a.runner;
  auto only = stores.run(stores.leases->list(held));
  ASSERT_EQ(only->size(), 1u);
  EXPECT_EQ((*only)[0].row.camera, cam(1));
  held.boot = BootId::trusted("b2");
  EXPECT_TRUE(stores.run(stores.leases->list(held))->empty());
  held.boot = a.boot;
  EXPECT_EQ(stores.run(stores.leases->list(held))->size(), 1u);
  LeaseFilter page;
  page.after = cam(1);
  page.limit = 1;
  EXPECT_EQ((*stores.run(stores.leases->list(page)))[0].row.camera, cam(2));
}

TEST_P(LeaseStoreContract, Budget_GivesItsTokens_ThenOneMoreAsTimePasses) {
  SiteId site = SiteId::trusted("s1");
  ASSERT_TRUE(stores.run(stores.catalog->set_budget(site, {}, 2, 1, 2)));
  EXPECT_TRUE(stores.run(stores.leases->consume(site, {}, {}))->granted);
  EXPECT_TRUE(stores.run(stores.leases->consume(site, {}, {}))->granted);
  auto empty = stores.run(stores.leases->consume(site, {}, {}));
  ASSERT_TRUE(empty);
  EXPECT_FALSE(empty->granted);
  EXPECT_GT(empty->retry_after, 30s);
  EXPECT_LE(empty->retry_after, 60s);
  ASSERT_TRUE(stores.run(stores.catalog->set_budget(site, {}, 2, 600, 0)));
  EXPECT_TRUE(eventually_ticking([&] { return stores.run(stores.leases->consume(site, {}, {}))->granted; }));
  EXPECT_FALSE(stores.run(stores.leases->consume(SiteId::trusted("none"), {}, {})));
  EXPECT_FALSE(stores.run(stores.leases->consume(site, TenantId::trusted("t2"), {})));
}

TEST_P(LeaseStoreContract, Budget_ChargesAGrantOnce) {
  SiteId site = SiteId::trusted("s1");
  ASSERT_TRUE(stores.run(stores.catalog->set_budget(site, {}, 2, 0, 2)));
  auto got = acquire(a, 1);
  for (int again = 0; again < 3; ++again) {
    auto answer = stores.run(stores.leases->consume(site, {}, BudgetUse{cam(1), got.grant}));
    ASSERT_TRUE(answer);
    EXPECT_TRUE(answer->granted);
    EXPECT_DOUBLE_EQ(answer->tokens, 1);
  }
  EXPECT_TRUE(stores.run(stores.leases->consume(site, {}, BudgetUse{cam(1), {got.grant.n + 1}}))->granted);
  EXPECT_FALSE(stores.run(stores.leases->consume(site, {}, BudgetUse{cam(1), {got.grant.n + 2}}))->granted);
  EXPECT_FALSE(stores.run(stores.leases->consume(site, {}, BudgetUse{CameraId::trusted("none"), got.grant})));
}

INSTANTIATE_TEST_SUITE_P(Fake, LeaseStoreContract, testing::Values(Kind::fake));
INSTANTIATE_TEST_SUITE_P(Sqlite, LeaseStoreContract, testing::Values(Kind::sqlite));
INSTANTIATE_TEST_SUITE_P(Postgres, LeaseStoreContract, testing::Values(Kind::postgres));

}  // namespace weir::test
