// Leases of published streams beside those of cameras: the same rules, over every store.
#include "lease_store.hpp"

namespace weir::test {

namespace {
const SubjectId kLive = SubjectId::trusted("live");
const lease::Home kHome{TenantId::trusted("t1"), SiteId::trusted("s9")};
}  // namespace

class LeaseKindContract : public LeaseStoreContract {
 protected:
  lease::Answer ask(Operation operation, const lease::Owner& who, lease::Ask what, Duration ttl = 10s,
                    TenantId tenant = {}, lease::Kind kind = lease::Kind::stream) {
    auto answers = stores.run(stores.leases->apply({operation, who, ttl, {std::move(what)}, tenant, kind, kHome}));
    EXPECT_TRUE(answers);
    return answers ? answers->at(0) : lease::Answer{};
  }
  lease::Answer take(const lease::Owner& who, std::string key = "k", Duration ttl = 10s) {
    return ask(Operation::acquire, who, {kLive, {}, false, std::move(key)}, ttl);
  }
  LeaseView shown() { return *stores.run(stores.leases->show(kLive, {})); }
};

TEST_P(LeaseKindContract, AStream_IsMadeByItsFirstAcquire_AndStandsWhereTheAskerSaid) {
  EXPECT_FALSE(stores.run(stores.leases->show(kLive, {})));
  auto got = take(a);
  EXPECT_EQ(got.outcome, Outcome::granted);
  EXPECT_EQ(got.tenant, kHome.tenant);
  EXPECT_EQ(got.site, kHome.site);
  EXPECT_EQ(shown().row.kind, lease::Kind::stream);
  EXPECT_EQ(shown().row.owner, a);
}

TEST_P(LeaseKindContract, ALeaseOfAStream_FollowsTheRulesOfACameras) {
  auto got = take(a);
  EXPECT_EQ(take(b).outcome, Outcome::held);
  EXPECT_EQ(take(a).version, got.version) << "a replay";
  EXPECT_EQ(ask(Operation::renew, a, {kLive, got.version}).outcome, Outcome::renewed);
  auto rotated = ask(Operation::renew, a, {kLive, got.version, true, "r"});
  EXPECT_EQ(rotated.outcome, Outcome::rotated);
  EXPECT_EQ(ask(Operation::renew, a, {kLive, got.version}).outcome, Outcome::lost);
  EXPECT_EQ(ask(Operation::release, a, {kLive, rotated.version}).outcome, Outcome::released);
  auto next = take(b);
  EXPECT_EQ(next.outcome, Outcome::granted);
  EXPECT_GT(next.version, rotated.version);
}

TEST_P(LeaseKindContract, AStreamsExpiry_IsToldOnce_AndAnotherTakesIt) {
  auto got = take(a, "k", 1ms);
  std::vector<lease::LeaseRow> expired;
  ASSERT_TRUE(eventually_ticking([&] { return !(expired = *stores.run(stores.leases->take_expired(10))).empty(); }));
  EXPECT_EQ(expired[0].subject, kLive);
  EXPECT_EQ(expired[0].kind, lease::Kind::stream);
  auto taken = take(b);
  EXPECT_TRUE(taken.stolen);
  EXPECT_EQ(taken.previous, (lease::Tenure{a.boot, got.grant}));
}

TEST_P(LeaseKindContract, AnIdOfAnotherKind_IsRefused) {
  auto as_stream = ask(Operation::acquire, a, {cam(1), {}, false, "k"});
  EXPECT_EQ(as_stream.outcome, Outcome::refused);
  EXPECT_EQ(as_stream.why, Refusal::taken);
  auto got = take(a);
  auto as_camera = stores.ask(Operation::renew, a, {kLive, got.version});
  EXPECT_EQ(as_camera.outcome, Outcome::refused);
  EXPECT_EQ(as_camera.why, Refusal::not_found);
  auto camera = stores.run(stores.catalog->add_camera(camera_config(kLive)));
  ASSERT_FALSE(camera);
  EXPECT_EQ(camera.error().code, Errc::conflict);
  EXPECT_FALSE(stores.run(stores.catalog->show_camera(kLive, {})));
  EXPECT_EQ(shown().row.owner, a) << "the stream goes on";
}

TEST_P(LeaseKindContract, AnotherTenantsStream_IsRefused) {
  take(a);
  auto foreign = ask(Operation::acquire, b, {kLive, {}, false, "k"}, 10s, TenantId::trusted("t2"));
  EXPECT_EQ(foreign.outcome, Outcome::refused);
  EXPECT_EQ(foreign.why, Refusal::taken);
}

TEST_P(LeaseKindContract, Streams_CountForNoCapacity_AreTakenByACordonedOwner_AndKnowNoAvoid) {
  live_runner("runner-a", "b1", "", 1);
  live_runner("runner-b");
  ASSERT_TRUE(stores.run(stores.catalog->change_runner(a.runner, {}, {.cordoned = true})));
  auto got = take(a);
  EXPECT_EQ(got.outcome, Outcome::granted);
  EXPECT_EQ(stores.run(stores.catalog->show_runner(a.runner, {}))->leases_held, 0);
  EXPECT_EQ(ask(Operation::release, a, {kLive, got.version, false, {}, true}).outcome, Outcome::released);
  EXPECT_EQ(take(a, "k2").outcome, Outcome::granted) << "nobody avoids a stream";
  ASSERT_TRUE(stores.run(stores.leases->revoke(kLive, {})));
  EXPECT_EQ(take(a, "k3").outcome, Outcome::granted);
}

TEST_P(LeaseKindContract, Lists_ShowOneKind) {
  take(a);
  acquire(a, 1);
  LeaseFilter filter;
  EXPECT_EQ(stores.run(stores.leases->list(filter))->size(), 1u);
  filter.kind = lease::Kind::stream;
  auto streams = stores.run(stores.leases->list(filter));
  ASSERT_EQ(streams->size(), 1u);
  EXPECT_EQ(streams->at(0).row.subject, kLive);
}

TEST_P(LeaseKindContract, AStreamsEvents_AreFencedByItsLease) {
  auto got = take(a);
  auto said = [&](std::string id, Version version) {
    event::Event event{"detections.topic", "detections.t1.s9.live", id, fmt::format(R"({{"event_id":"{}"}})", id)};
    event.stamp = event::Stamp{kLive, version};
    return (*stores.run(stores.events->append({event}, {a.runner})))[0];
  };
  EXPECT_EQ(said("e1", got.version), Confirmation::accepted);
  auto rotated = ask(Operation::renew, a, {kLive, got.version, true, "r"});
  EXPECT_EQ(said("e2", got.version), Confirmation::stale);
  EXPECT_EQ(said("e3", rotated.version), Confirmation::accepted);
}

TEST_P(LeaseKindContract, AStreamsRecord_KeepsWishes_AndOnlyTheHoldersWordUnderThePresentVersion) {
  Catalog& catalog = *stores.catalog;
  StreamRecord wanted{.id = kLive, .tenant = kHome.tenant, .site = kHome.site, .wishes = {{"forward", true}}};
  auto put = stores.run(catalog.put_stream(wanted));
  ASSERT_TRUE(put) << put.error().message;
  auto got = take(a);
  ASSERT_EQ(got.outcome, Outcome::granted) << "the row that the wishes made is a stream's";
  auto tell = [&](const lease::Owner& who, Version version, const char* word) {
    return stores.run(catalog.tell_stream({kLive, who, version, {{"run", word}}, {{"state", word}}}));
  };
  ASSERT_TRUE(tell(a, got.version, "one"));
  auto rotated = ask(Operation::renew, a, {kLive, got.version, true, "r"});
  EXPECT_FALSE(tell(a, got.version, "two"));
  EXPECT_FALSE(tell(b, rotated.version, "three"));
  auto shown = stores.run(catalog.show_stream(kLive, {}));
  ASSERT_TRUE(shown);
  EXPECT_EQ(shown->wishes, wanted.wishes);
  EXPECT_EQ(shown->memory, (boost::json::object{{"run", "one"}}));
  EXPECT_EQ(shown->view, (boost::json::object{{"state", "one"}}));
  EXPECT_EQ(shown->holder, a.runner);
  EXPECT_NE(shown->told_at, WallTime{});
  wanted.wishes = {{"forward", false}};
  ASSERT_TRUE(stores.run(catalog.put_stream(wanted)));
  shown = stores.run(catalog.show_stream(kLive, {}));
  EXPECT_EQ(shown->wishes, wanted.wishes);
  EXPECT_EQ(shown->memory, (boost::json::object{{"run", "one"}})) << "wishes leave what was told";

  auto held = stores.run(catalog.remove_stream(kLive, {}));
  ASSERT_FALSE(held);
  EXPECT_EQ(held.error().code, Errc::unprocessable);
  ask(Operation::release, a, {kLive, rotated.version});
  EXPECT_EQ(stores.run(catalog.show_stream(kLive, {}))->holder, RunnerId());
  EXPECT_TRUE(stores.run(catalog.remove_stream(kLive, {})));
  EXPECT_FALSE(stores.run(catalog.show_stream(kLive, {})));
}

TEST_P(LeaseKindContract, AStreamThatNobodyWished_HasARecordOnceItsHolderTellsOfIt) {
  auto got = take(a);
  EXPECT_FALSE(stores.run(stores.catalog->show_stream(kLive, {})));
  ASSERT_TRUE(stores.run(stores.catalog->tell_stream({kLive, a, got.version, {}, {{"state", "running"}}})));
  auto all = stores.run(stores.catalog->list_streams({}, {}, 10));
  ASSERT_EQ(all->size(), 1u);
  EXPECT_EQ(all->at(0).site, kHome.site);
  EXPECT_TRUE(stores.run(stores.catalog->list_streams(TenantId::trusted("t2"), {}, 10))->empty());
}

TEST_P(LeaseKindContract, ACamerasHolder_TellsOfNoStream) {
  auto got = acquire(a, 1);
  EXPECT_FALSE(stores.run(stores.catalog->tell_stream({cam(1), a, got.version, {}, {}})));
  EXPECT_FALSE(stores.run(stores.catalog->show_stream(cam(1), {})));
}

TEST_P(LeaseKindContract, WishesForACamerasId_OrAnotherTenantsStream_AreRefused) {
  auto camera = stores.run(stores.catalog->put_stream({.id = cam(1), .tenant = kHome.tenant, .site = kHome.site}));
  ASSERT_FALSE(camera);
  EXPECT_EQ(camera.error().code, Errc::conflict);
  take(a);
  auto foreign = stores.run(stores.catalog->put_stream({.id = kLive, .tenant = TenantId::trusted("t2"), .site = kHome.site}));
  ASSERT_FALSE(foreign);
  EXPECT_EQ(foreign.error().code, Errc::conflict);
}

INSTANTIATE_TEST_SUITE_P(Fake, LeaseKindContract, testing::Values(Kind::fake));
INSTANTIATE_TEST_SUITE_P(Sqlite, LeaseKindContract, testing::Values(Kind::sqlite));
INSTANTIATE_TEST_SUITE_P(Postgres, LeaseKindContract, testing::Values(Kind::postgres));

}  // namespace weir::test
