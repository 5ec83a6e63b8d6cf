// What every event log promises, over the fake, SQLite and a real PostgreSQL.
#include "stores.hpp"

#include "stall.hpp"

#include "../../src/adapters/postgres/connection.hpp"

#include <boost/asio/co_spawn.hpp>

#include <random>
#include <thread>
#include <utility>

namespace weir::test {

using lease::Operation;
using lease::Outcome;
using lease::Version;
using enum Confirmation;

event::Event event_of(const std::string& id, const CameraId& camera, Version version) {
  event::Event event{std::string(event::kDetectionsTopic), "detections.t1.s1." + camera.str(), id,
                      fmt::format(R"({{"event_id":"{}","lease_version":{}}})", id, version.n)};
  event.stamp = event::Stamp{camera, version};
  return event;
}
event::Event free_event(const std::string& id) {
  return {std::string(event::kControlTopic), "camera.created.t1.s1.c1", id, fmt::format(R"({{"event_id":"{}"}})", id)};
}
std::string id_of(const StoredEvent& event) {
  return std::string(json::parse_text(event.payload)->at("event_id").as_string());
}

EventSpeaker speaker_of(const std::string& runner, const std::string& boot = "", const std::string& tenant = "") {
  return {RunnerId::trusted(runner), BootId::trusted(boot), TenantId::trusted(tenant)};
}

class EventLogContract : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    if (!stores.unavailable.empty()) GTEST_SKIP() << stores.unavailable;
    stores.furnish(3);
  }
  template <class T>
  T run(boost::asio::awaitable<T> what) {
    return stores.run(std::move(what));
  }
  EventLog& log() { return *stores.events; }
  Version acquire(int n, const lease::Owner& who = owner("r1")) {
    lease::Answer answer = stores.ask(Operation::acquire, who, {.subject = cam(n), .key = "k"});
    EXPECT_EQ(answer.outcome, Outcome::granted);
    return answer.version;
  }
  std::vector<Confirmation> append(std::vector<event::Event> events, EventSpeaker speaker = speaker_of("r1", "b1")) {
    auto answers = run(log().append(std::move(events), std::move(speaker)));
    EXPECT_TRUE(answers) << (answers ? "" : answers.error().message);
    return answers ? *answers : std::vector<Confirmation>();
  }
  // Everything after `after`, in pages of `limit`.
  std::vector<StoredEvent> read_all(std::int64_t after = 0, int limit = 100) {
    std::vector<StoredEvent> all;
    for (;;) {
      auto page = run(log().read(after, limit));
      EXPECT_TRUE(page) << (page ? "" : page.error().message);
      if (!page) return all;
      EXPECT_GE(page->scanned_to, after);
      all.insert(all.end(), page->events.begin(), page->events.end());
      if (!page->more) return all;
      after = page->scanned_to;
    }
  }
  std::vector<std::string> ids(std::int64_t after = 0) {
    std::vector<std::string> out;
    for (const StoredEvent& event : read_all(after)) out.push_back(id_of(event));
    return out;
  }
  using Ids = std::vector<std::string>;
  using Answers = std::vector<Confirmation>;
  Stores stores{GetParam()};
};

TEST_P(EventLogContract, Announcements_AreStoredInOrder_EachWithItsTenant_AndOnce) {
  auto announce = [&](std::vector<event::Event> all) {
    auto told = run(log().announce(std::move(all)));
    EXPECT_TRUE(told) << (told ? "" : told.error().message);
  };
  auto of = [](const std::string& tenant, const std::string& id) {
    return event::Event{.topic = std::string(event::kControlTopic),
                        .routing_key = "lease.granted.t.s.c",
                        .event_id = id,
                        .payload = fmt::format(R"({{"event_id":"{}"}})", id),
                        .tenant = TenantId::trusted(tenant)};
  };
  announce({of("t1", "b"), of("t2", "a"), of("", "c")});
  announce({of("t9", "a"), of("t1", "d")});
  EXPECT_EQ(ids(), (Ids{"b", "a", "c", "d"}));
  auto all = read_all();
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0].topic, event::kControlTopic);
  EXPECT_EQ(all[0].routing_key, "lease.granted.t.s.c");
  EXPECT_EQ(all[0].tenant.str(), "t1");
  EXPECT_EQ(all[1].tenant.str(), "t2");
  EXPECT_TRUE(all[2].tenant.empty());
  EXPECT_EQ(append({free_event("a")}), Answers{duplicate});
}

TEST_P(EventLogContract, AnnouncementWithAStamp_IsTold_WhileTheLeaseHasThatVersion) {
  Version held = acquire(1), ended = acquire(2);
  auto of = [](const std::string& id, int n, Version version) {
    event::Event told{std::string(event::kStatusTopic), "stream.status.t.s.c", id,
                      fmt::format(R"({{"event_id":"{}"}})", id)};
    told.stamp = event::Stamp{cam(n), version};
    return told;
  };
  ASSERT_TRUE(run(stores.leases->revoke(cam(2), {})));
  Version revoked = run(stores.leases->show(cam(2), {}))->row.version;
  ASSERT_TRUE(run(log().announce({of("late", 2, ended), of("held", 1, held), of("revoked", 2, revoked)})));
  acquire(2, owner("r2"));
  ASSERT_TRUE(run(log().announce({of("later", 2, revoked), of("unknown", 99, held)})));
  EXPECT_EQ(ids(), (Ids{"held", "revoked"}));
  EXPECT_EQ(read_all()[0].topic, event::kStatusTopic);
}

TEST_P(EventLogContract, Events_AreStoredWhole_InTheOrderOfTheBatch) {
  Version v1 = acquire(1), v2 = acquire(2);
  std::vector<event::Event> batch;
  for (int i = 0; i < 20; ++i) batch.push_back(event_of(fmt::format("e{}", i), cam(i % 2 + 1), i % 2 == 0 ? v1 : v2));
  batch[3].payload = R"({"event_id":"e3","odd":"\"\\{},\u0000 ü '"})";
  EXPECT_EQ(append(batch), Answers(20, accepted));
  std::vector<StoredEvent> all = read_all(0, 3);
  ASSERT_EQ(all.size(), 20u);
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].payload, batch[i].payload);
    EXPECT_EQ(all[i].routing_key, batch[i].routing_key);
    EXPECT_EQ(all[i].topic, batch[i].topic);
    EXPECT_EQ(all[i].tenant.str(), "t1");
    EXPECT_LT(wall_now() - all[i].stored_at, 1min);
    EXPECT_TRUE(i == 0 || all[i].sequence > all[i - 1].sequence);
  }
  EXPECT_EQ(append({}), Answers());
}

TEST_P(EventLogContract, Duplicates_AreSaid_AlsoWithinABatch_AndAfterTheLeaseIsGone) {
  Version version = acquire(1);
  EXPECT_EQ(append({event_of("a", cam(1), version), event_of("b", cam(1), version), event_of("a", cam(1), version)}),
            (Answers{accepted, accepted, duplicate}));
  EXPECT_EQ(append({event_of("b", cam(1), version), event_of("c", cam(1), version)}), (Answers{duplicate, accepted}));
  EXPECT_EQ(stores.ask(Operation::release, owner("r1"), {.subject = cam(1), .version = version}).outcome,
            Outcome::released);
  EXPECT_EQ(append({event_of("c", cam(1), version), event_of("d", cam(1), version)}), (Answers{duplicate, stale}));
  EXPECT_EQ(ids(), (Ids{"a", "b", "c"}));
}

TEST_P(EventLogContract, Fence_RefusesEverybodyButTheOwnerUnderItsVersion) {
  Version version = acquire(1);
  auto once = [&, n = 0](EventSpeaker speaker, CameraId camera, Version under) mutable {
    return append({event_of(fmt::format("f{}", ++n), camera, under)}, std::move(speaker)).at(0);
  };
  EXPECT_EQ(once(speaker_of("r1", "b1"), cam(1), version), accepted);
  EXPECT_EQ(once(speaker_of("r1"), cam(1), version), accepted) << "a token without a boot speaks for any";
  EXPECT_EQ(once(speaker_of("r1", "b1", "t1"), cam(1), version), accepted);
  EXPECT_EQ(once(speaker_of("r1", "b2"), cam(1), version), stale);
  EXPECT_EQ(once(speaker_of("r2", "b1"), cam(1), version), stale);
  EXPECT_EQ(once(speaker_of(""), cam(1), version), stale);
  EXPECT_EQ(once(speaker_of("r1", "b1", "t2"), cam(1), version), stale);
  EXPECT_EQ(once(speaker_of("r1", "b1"), cam(1), {version.n - 1}), stale);
  EXPECT_EQ(once(speaker_of("r1", "b1"), cam(1), {version.n + 1}), stale);
  EXPECT_EQ(once(speaker_of("r1", "b1"), cam(2), version), stale) << "never owned";
  EXPECT_EQ(once(speaker_of("", ""), cam(2), {}), stale) << "never owned, and nobody speaks";
  EXPECT_EQ(once(speaker_of("r1", "b1"), cam(99), version), stale) << "no such camera";

  lease::Answer rotated = stores.ask(Operation::renew, owner("r1"),
                                     {.subject = cam(1), .version = version, .rotate = true, .key = "k2"});
  ASSERT_EQ(rotated.outcome, Outcome::rotated);
  EXPECT_EQ(once(speaker_of("r1", "b1"), cam(1), version), stale);
  EXPECT_EQ(once(speaker_of("r1", "b1"), cam(1), rotated.version), accepted);
  ASSERT_TRUE(run(stores.leases->revoke(cam(1), {})));
  EXPECT_EQ(once(speaker_of("r1", "b1"), cam(1), rotated.version), stale);
}

TEST_P(EventLogContract, OneStaleEvent_DoesNotHoldUpTheOthersOfItsBatch) {
  Version v1 = acquire(1), v3 = acquire(3);
  EXPECT_EQ(append({event_of("a", cam(1), v1), event_of("b", cam(2), v1), event_of("c", cam(3), v3),
                    event_of("d", cam(1), {v1.n - 1}), event_of("e", cam(1), v1)}),
            (Answers{accepted, stale, accepted, stale, accepted}));
  EXPECT_EQ(ids(), (Ids{"a", "c", "e"}));
}

TEST_P(EventLogContract, EventsWithoutACamera_BelongToTheSpeakersTenant) {
  EXPECT_EQ(append({free_event("a")}, speaker_of("")), Answers{accepted});
  EXPECT_EQ(append({free_event("b"), free_event("a")}, speaker_of("r1", "", "t1")), (Answers{accepted, duplicate}));
  std::vector<StoredEvent> all = read_all();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].tenant.str(), "");
  EXPECT_EQ(all[1].tenant.str(), "t1");
}

TEST_P(EventLogContract, AReaderThatContinues_SeesEachEventOnce) {
  auto begin = run(log().newest());
  ASSERT_TRUE(begin);
  EXPECT_EQ(begin->epoch, 1);
  std::int64_t at = begin->sequence;
  for (int round = 0; round < 5; ++round) {
    append({free_event(fmt::format("r{}a", round)), free_event(fmt::format("r{}b", round))}, speaker_of(""));
    EXPECT_EQ(ids(at), (Ids{fmt::format("r{}a", round), fmt::format("r{}b", round)}));
    auto page = run(log().read(at, 100));
    ASSERT_TRUE(page);
    EXPECT_EQ(page->epoch, 1);
    at = page->scanned_to;
    EXPECT_EQ(ids(at), Ids());
    EXPECT_GE(run(log().newest())->sequence, read_all().back().sequence);
  }
}

TEST_P(EventLogContract, APage_EndsEarlyWhenItIsHeavy_AndSaysSo) {
  constexpr size_t kHeavy = 250'000, kEvents = 40;
  std::vector<event::Event> batch;
  for (size_t i = 0; i < kEvents; ++i) {
    batch.push_back(free_event(fmt::format("e{}", i)));
    batch.back().payload = fmt::format(R"({{"event_id":"e{}","x":"{}"}})", i, std::string(kHeavy, 'x'));
    if (batch.size() < 4) continue;  // a statement has less than a second
    ASSERT_EQ(append(std::exchange(batch, {}), speaker_of("")), Answers(4, accepted));
  }
  std::int64_t at = 0;
  size_t seen = 0;
  for (bool more = true; more;) {
    auto page = run(log().read(at, 1000));
    ASSERT_TRUE(page) << page.error().message;
    size_t bytes = 0;
    for (const StoredEvent& event : page->events) {
      EXPECT_EQ(id_of(event), fmt::format("e{}", seen++));
      bytes += event.payload.size();
    }
    EXPECT_LE(bytes, kEventPageBytes + kHeavy + 100);
    more = page->more;
    ASSERT_TRUE(!more || !page->events.empty());
    EXPECT_TRUE(!more || page->scanned_to == page->events.back().sequence);
    at = page->scanned_to;
  }
  EXPECT_EQ(seen, kEvents);
  EXPECT_TRUE(run(log().read(0, 1))->more);
}

// Duplicates take numbers too. A reader that has seen all there is must come to rest at what is called the newest.
TEST_P(EventLogContract, AReaderOfTheLastEvent_ReachesTheNewestPlace) {
  append({free_event("a")}, speaker_of(""));
  append({free_event("a"), free_event("a")}, speaker_of(""));
  std::int64_t newest = run(log().newest())->sequence;
  auto page = run(log().read(read_all().back().sequence, 100));
  ASSERT_TRUE(page);
  EXPECT_TRUE(page->events.empty());
  EXPECT_FALSE(page->more);
  EXPECT_GE(page->scanned_to, newest);
}

TEST_P(EventLogContract, Trim_ForgetsTheOldestInSteps_AndSaysHowFar) {
  std::vector<event::Event> batch;
  for (int i = 0; i < 10; ++i) batch.push_back(free_event(fmt::format("e{}", i)));
  append(batch, speaker_of(""));
  EXPECT_EQ(*run(log().trim({1h, 1'000'000}, 100)), 0);
  EXPECT_EQ(*run(log().trim({1h, 1}, 100)), 0) << "younger than what must be remembered";
  EXPECT_EQ(run(log().read(0, 1))->forgotten_to, 0);
  auto all_old = [&] { return run(log().trim({-1min, 1'000'000}, 4)); };
  EXPECT_EQ(*all_old(), 4);
  EXPECT_EQ(ids(), (Ids{"e4", "e5", "e6", "e7", "e8", "e9"}));
  auto page = run(log().read(0, 1));
  EXPECT_GT(page->forgotten_to, 0);
  EXPECT_LT(page->forgotten_to, page->events.at(0).sequence);
  EXPECT_EQ(append({free_event("e1"), free_event("e5")}, speaker_of("")), (Answers{accepted, duplicate}))
      << "what is forgotten is new again";
  EXPECT_EQ(*all_old(), 4);
  EXPECT_EQ(*all_old(), 3);
  EXPECT_EQ(*all_old(), 0);
  std::int64_t forgotten = run(log().read(0, 1))->forgotten_to;
  append({free_event("new")}, speaker_of(""));
  EXPECT_GT(read_all().at(0).sequence, forgotten) << "a sequence is never used again";
}

TEST_P(EventLogContract, Trim_ForgetsWhatAClockThatWasAheadHasStored_WhenThereAreTooMany) {
  std::vector<event::Event> batch;
  for (int i = 0; i < 10; ++i) batch.push_back(free_event(fmt::format("e{}", i)));
  append(batch, speaker_of(""));
  if (!stores.meddle("UPDATE events SET stored_at = stored_at + 31536000000000")) return;
  EXPECT_EQ(*run(log().trim({1h, 1'000'000}, 100)), 0);
  EXPECT_EQ(*run(log().trim({1h, 4}, 100)), 6);
  EXPECT_EQ(ids(), (Ids{"e6", "e7", "e8", "e9"}));
}

INSTANTIATE_TEST_SUITE_P(Fake, EventLogContract, testing::Values(Kind::fake));
INSTANTIATE_TEST_SUITE_P(Sqlite, EventLogContract, testing::Values(Kind::sqlite));
INSTANTIATE_TEST_SUITE_P(Postgres, EventLogContract, testing::Values(Kind::postgres));

// ---- what only several sessions can do to each other ----

// A transaction that stays open until it is committed, and a second session that looks meanwhile. Both are open before
// anybody waits for them: the store gives a lock less than a second.
class OpenTransaction {
 public:
  OpenTransaction(const std::string& url, const std::string& statements)
      : session_(url, kPatience, kPatience), looking_(url, kPatience, kPatience) {
    session_.script("SET idle_in_transaction_session_timeout = 0; BEGIN;" + statements, kPatience);
  }
  ~OpenTransaction() { commit(); }
  void commit() {
    if (!std::exchange(open_, false)) return;
    EXPECT_NO_THROW(session_.script("COMMIT", kPatience));
  }
  std::int64_t count(const std::string& query) { return looking_.script(query, kPatience).integer(0, 0); }
  // Another transaction waits for a row that this one has changed or locked.
  bool is_waited_for() {
    return count("SELECT count(*) FROM pg_stat_activity"
                 " WHERE wait_event_type = 'Lock' AND datname = current_database()") > 0;
  }

 private:
  static constexpr Duration kPatience = 10s;
  postgres::Connection session_, looking_;
  bool open_ = true;
};

class EventLogOnPostgres : public EventLogContract {
 protected:
  void SetUp() override {
    EventLogContract::SetUp();
    if (!IsSkipped()) server_ = *PostgresServer::shared();
  }
  std::string database_name() const { return stores.database.substr(stores.database.rfind('/') + 1); }
  // Only a superuser sees what another role's session waits for.
  std::string superuser() const { return server_->url(database_name()); }
  PostgresServer* server_ = nullptr;
};
INSTANTIATE_TEST_SUITE_P(Postgres, EventLogOnPostgres, testing::Values(Kind::postgres));

constexpr const char* kInsertHeld =
    "INSERT INTO events VALUES ((pg_current_xact_id()::text::bigint << 13) | 1, nextval('event_counter'), 'held', 't1',"
    " 'control.topic', 'k', '{\"event_id\":\"held\"}', 0);";

TEST_P(EventLogOnPostgres, NothingIsReadThatASlowerTransactionCouldComeBefore) {
  append({free_event("before")}, speaker_of(""));
  std::int64_t at = run(log().newest())->sequence;
  OpenTransaction slow(superuser(), kInsertHeld);
  append({free_event("after")}, speaker_of(""));
  EXPECT_EQ(slow.count("SELECT count(*) FROM events WHERE event_id = 'after'"), 1)
      << "committed, and visible to everybody";
  auto page = run(log().read(at, 100));
  ASSERT_TRUE(page);
  EXPECT_EQ(page->events.size(), 0u) << "\"held\" could still come before it";
  slow.commit();
  EXPECT_EQ(ids(page->scanned_to), (Ids{"held", "after"}));
}

// A version change that is under way makes the event wait; afterwards it is stale. A fence that read without locking
// would have accepted it here.
TEST_P(EventLogOnPostgres, AnEvent_WaitsForAVersionChange_AndIsStaleThen) {
  Version version = acquire(1);
  OpenTransaction change(superuser(), "UPDATE leases SET version = version + 1 WHERE camera_uuid = 'c1';");
  std::thread letter([&] {
    EXPECT_TRUE(eventually(5s, [&] { return change.is_waited_for(); })) << "the event did not wait";
    change.commit();
  });
  EXPECT_EQ(append({event_of("late", cam(1), version)}), Answers{stale});
  letter.join();
  EXPECT_EQ(ids(), Ids());
}

// And the other way round: an insert under way makes the version change wait, but not a renewal.
TEST_P(EventLogOnPostgres, AVersionChange_WaitsForTheInsert_ARenewalDoesNot) {
  Version version = acquire(1);
  OpenTransaction insert(superuser(),
                         "SELECT 1 FROM leases WHERE camera_uuid = 'c1' FOR KEY SHARE;" + std::string(kInsertHeld));
  lease::Ask plain{.subject = cam(1), .version = version};
  EXPECT_EQ(stores.ask(Operation::renew, owner("r1"), plain).outcome, Outcome::renewed);
  std::thread letter([&] {
    EXPECT_TRUE(eventually(5s, [&] { return insert.is_waited_for(); })) << "the rotation did not wait";
    insert.commit();
  });
  lease::Ask rotate{.subject = cam(1), .version = version, .rotate = true, .key = "k2"};
  EXPECT_EQ(stores.ask(Operation::renew, owner("r1"), rotate).outcome, Outcome::rotated);
  letter.join();
}

// Two control planes, publishers that do not know of rotations yet, readers that stop and continue at random, and
// transactions that stay open for a while: versions never fall, and nobody misses anything.
TEST_P(EventLogOnPostgres, UnderRaces_VersionsNeverFall_AndAResumedReaderLosesNothing) {
  auto second = postgres::PostgresStore::open({Secret(stores.database), 8});
  ASSERT_TRUE(second);
  std::array<EventLog*, 2> planes = {stores.events, second->get()};
  Version current = acquire(1);
  std::set<std::string> accepted_ids, seen;
  std::vector<std::int64_t> versions;
  bool rotating = true;
  int publishing = 0, stales = 0;
  auto publisher = [&](int who) -> boost::asio::awaitable<void> {
    for (int i = 0; rotating; ++i) {
      Version believed = current;
      std::vector<event::Event> batch;
      for (int k = 0; k < 3; ++k) batch.push_back(event_of(fmt::format("p{}-{}-{}", who, i, k), cam(1), believed));
      auto answers = co_await planes[static_cast<size_t>(who % 2)]->append(batch, speaker_of("r1", "b1"));
      auto between = co_await planes[0]->newest();
      EXPECT_TRUE(between);
      if (!answers) continue;  // a lock was waited for too long: nothing is known
      for (size_t k = 0; k < batch.size(); ++k)
        if ((*answers)[k] == accepted) accepted_ids.insert(batch[k].event_id);
        else ++stales;
    }
    --publishing;
  };
  auto rotator = [&]() -> boost::asio::awaitable<void> {
    int rotations = 0;
    for (int i = 0; i < 100 && rotations < 25; ++i) {
      lease::Batch batch{Operation::renew, owner("r1"), 10s};
      batch.asks.push_back({.subject = cam(1), .version = current, .rotate = true, .key = fmt::format("rot-{}", i)});
      auto answers = co_await stores.leases->apply(batch);
      if (!answers || (*answers)[0].outcome != Outcome::rotated) continue;
      current = (*answers)[0].version;
      ++rotations;
      auto between = co_await planes[0]->newest();
      EXPECT_TRUE(between);
    }
    EXPECT_EQ(rotations, 25);
    rotating = false;
  };
  auto reader = [&]() -> boost::asio::awaitable<void> {
    std::mt19937 draw(7);
    std::int64_t at = 0;
    // An open transaction holds back what is read; what is lost for good would never come.
    Instant limit = boot_now() + 30s;
    while (boot_now() < limit && (publishing > 0 || !std::ranges::includes(seen, accepted_ids))) {
      auto page = co_await planes[draw() % 2]->read(at, static_cast<int>(1 + draw() % 20));
      if (!page) continue;
      size_t taken = 0;
      // Now and then the reader dies in the middle of a page and continues where it was.
      size_t dies_at = draw() % 4 == 0 ? draw() % 20 : SIZE_MAX;
      for (const StoredEvent& event : page->events) {
        if (taken++ == dies_at) break;
        seen.insert(id_of(event));
        versions.push_back(json::parse_text(event.payload)->at("lease_version").to_number<std::int64_t>());
        at = event.sequence;
      }
      if (taken <= dies_at && page->events.size() == taken) at = page->scanned_to;
    }
  };
  auto ended = [](std::exception_ptr failed) { EXPECT_FALSE(failed); };
  publishing = 2;
  for (int who = 0; who < publishing; ++who) boost::asio::co_spawn(stores.io, publisher(who), ended);
  boost::asio::co_spawn(stores.io, rotator(), ended);
  boost::asio::co_spawn(stores.io, reader(), ended);
  std::thread slow([&] {
    for (int i = 0; i < 3; ++i)
      EXPECT_TRUE(server_->sql(database_name(), "BEGIN; SELECT pg_current_xact_id(); SELECT pg_sleep(0.2); COMMIT"));
  });
  stores.io.restart();
  stores.io.run();
  slow.join();
  EXPECT_GT(accepted_ids.size(), 20u);
  EXPECT_GT(stales, 0) << "no race took place";
  EXPECT_TRUE(std::ranges::is_sorted(versions));
  EXPECT_TRUE(std::ranges::includes(seen, accepted_ids));
}

}  // namespace weir::test
