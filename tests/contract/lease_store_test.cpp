// What every lease store promises, over the fake, SQLite and a real PostgreSQL.
#include "lease_store.hpp"

namespace weir::test {

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

TEST_P(LeaseStoreContract, AnAnswer_SaysWhetherItRepeatsAnother_AndSinceWhenTheAskerHasTheCamera) {
  auto granted = acquire(a, 1);
  const WallTime since = show(1).row.acquired_at;
  EXPECT_GT(since, WallTime{});
  auto granted_again = acquire(a, 1), own = acquire(a, 1, "another key"), foreign = acquire(b, 1);
  auto renewed = renew(a, 1, granted.version);
  auto rotated = rotate(a, 1, granted.version, "r"), rotated_again = rotate(a, 1, granted.version, "r");
  for (const auto& answer : {granted, granted_again, own, renewed, rotated, rotated_again}) {
    EXPECT_TRUE(answer.holds());
    EXPECT_EQ(answer.acquired_at, since);
  }
  auto released = release(a, 1, rotated.version), released_again = release(a, 1, rotated.version);
  for (const auto& answer : {foreign, released, released_again}) {
    EXPECT_FALSE(answer.holds());
    EXPECT_EQ(answer.acquired_at, WallTime{});
  }
  for (const auto& answer : {granted, own, foreign, renewed, rotated, released}) EXPECT_FALSE(answer.replayed);
  for (const auto& answer : {granted_again, rotated_again, released_again}) EXPECT_TRUE(answer.replayed);
  auto next = acquire(a, 1);
  EXPECT_FALSE(next.replayed);
  EXPECT_EQ(next.acquired_at, show(1).row.acquired_at);
  EXPECT_GE(next.acquired_at, since);
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
  EXPECT_EQ((*answers)[0].subject, cam(2));
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
  EXPECT_EQ((*only)[0].row.subject, cam(1));
  held.boot = BootId::trusted("b2");
  EXPECT_TRUE(stores.run(stores.leases->list(held))->empty());
  held.boot = a.boot;
  EXPECT_EQ(stores.run(stores.leases->list(held))->size(), 1u);
  LeaseFilter page;
  page.after = cam(1);
  page.limit = 1;
  EXPECT_EQ((*stores.run(stores.leases->list(page)))[0].row.subject, cam(2));
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
