// What the embedded store keeps in memory agrees with its file, also when another process uses the file.
#include "stores.hpp"

#include "../../src/adapters/sqlite/db.hpp"

#include "weir/sqlite/core.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

namespace weir::test {

TEST(SqliteCore, GroupThatCannotBegin_TakesNothingBackOfTheGroupBefore) {
  TempDir folder;
  std::string path = folder.path() + "/weir.db";
  sqlite::Core core(path, {}, wall_now);
  core.begin();
  ASSERT_TRUE(core.add_tenant({TenantId::trusted("t1"), ""}));
  ASSERT_TRUE(core.add_site({SiteId::trusted("s1"), TenantId::trusted("t1"), ""}));
  for (int n = 1; n <= 3; ++n) ASSERT_TRUE(core.add_camera(camera_config(cam(n))));
  core.commit();
  auto grant = [&](int n) {
    core.begin();
    auto answers = core.apply({lease::Operation::acquire, owner("runner-a"), 10s, {{cam(n), {}, false, "k"}}});
    core.commit();
    EXPECT_EQ(answers[0].outcome, lease::Outcome::granted);
    return answers[0].version;
  };
  lease::Version one = grant(1), two = grant(2);
  EXPECT_GT(two, one);
  const lease::StoreState before = core.state();
  {
    sqlite::Db other(path, false);  // somebody's VACUUM
    other.script("BEGIN IMMEDIATE");
    EXPECT_THROW(core.begin(), std::runtime_error);
    EXPECT_NO_THROW(core.rollback());
    EXPECT_TRUE(core.state() == before) << "the counter is " << core.state().counter << ", not " << before.counter;
  }
  EXPECT_GT(grant(3), two);
}

// A disk that is full, or turned read-only: no holder could renew until it is writable again, so that time does not
// count.
TEST(SqliteCore, WhileNothingCanBeWritten_LeaseTimeStandsStill_AndAHoldFollows) {
  TempDir folder;
  std::string path = folder.path() + "/weir.db";
  WallTime clock = wall_now();
  sqlite::Core core(path, {}, [&] { return clock; });
  auto pass = [&](Duration d) {
    for (; d > Duration(0); d -= 250ms) clock += 250ms, core.tick();
  };
  auto write = [&] {
    core.begin();
    clock += 1ms;
    core.tick();
    core.commit();
  };
  pass(1s);
  write();
  LeaseTime before = core.state().lease_now;
  sqlite::Db other(path, false);
  other.script("CREATE TRIGGER full BEFORE UPDATE ON store_state BEGIN SELECT RAISE(ABORT, 'full'); END");
  for (int n = 0; n < 30; ++n) {
    pass(1s);
    EXPECT_THROW(write(), std::runtime_error);
    core.rollback();
  }
  EXPECT_EQ(core.state().lease_now, before);
  other.script("DROP TRIGGER full");
  pass(250ms);
  write();
  EXPECT_LT(core.state().lease_now - before, 2s);
  EXPECT_GT(core.state().hold_until, core.state().lease_now) << "holders come before rivals";
}

// On a disk that is full: events make the file grow, leases do not.
TEST(SqliteStore, EventsThatDoNotFit_TakeNoRenewalWithThem) {
  Stores stores(Kind::sqlite);
  stores.furnish(1);
  lease::Answer held = stores.ask(lease::Operation::acquire, owner("r1"), {.subject = cam(1), .key = "k"});
  ASSERT_EQ(held.outcome, lease::Outcome::granted);
  ASSERT_TRUE(stores.meddle("CREATE TRIGGER full BEFORE INSERT ON events BEGIN SELECT RAISE(ROLLBACK, 'full'); END"));
  int refused = 0, renewed = 0;
  auto tell = [&](std::string id) -> boost::asio::awaitable<void> {
    std::vector<event::Event> news = {{"control.topic", "camera.created.t1.s1.c1", id, "{}"}};
    refused += !co_await stores.events->announce(std::move(news));
  };
  auto renew = [&]() -> boost::asio::awaitable<void> {
    lease::Batch batch{lease::Operation::renew, owner("r1"), 10s, {{.subject = cam(1), .version = held.version}}};
    auto said = co_await stores.leases->apply(std::move(batch));
    renewed += said && said->front().outcome == lease::Outcome::renewed;
  };
  constexpr int kRounds = 30;
  for (int n = 0; n < kRounds; ++n) {
    for (int i = 0; i < 3; ++i) boost::asio::co_spawn(stores.io, tell(fmt::format("{}-{}", n, i)), boost::asio::detached);
    boost::asio::co_spawn(stores.io, renew(), boost::asio::detached);
    stores.io.restart();
    stores.io.run();
  }
  EXPECT_EQ(refused, 3 * kRounds);
  EXPECT_EQ(renewed, kRounds);
}

TEST(SqliteStore, MountainsOfEvents_HoldUpNoRenewal) {
  Stores stores(Kind::sqlite);
  stores.furnish(1);
  lease::Answer held = stores.ask(lease::Operation::acquire, owner("r1"), {.subject = cam(1), .key = "k"});
  ASSERT_EQ(held.outcome, lease::Outcome::granted);
  Instant told{}, asked{}, renewed{};
  std::vector<std::vector<event::Event>> mountains(60);
  for (size_t n = 0; n < mountains.size(); ++n)
    for (int i = 0; i < 4096; ++i)
      mountains[n].push_back({"control.topic", "camera.created.t1.s1.c1", fmt::format("{}-{}", n, i), "{}"});
  auto tell = [&](std::vector<event::Event> news) -> boost::asio::awaitable<void> {
    co_await stores.events->announce(std::move(news));
    told = boot_now();
  };
  auto renew = [&]() -> boost::asio::awaitable<void> {
    lease::Batch batch{lease::Operation::renew, owner("r1"), 10s, {{.subject = cam(1), .version = held.version}}};
    asked = boot_now();
    auto said = co_await stores.leases->apply(std::move(batch));
    EXPECT_TRUE(said && said->front().outcome == lease::Outcome::renewed);
    renewed = boot_now();
  };
  for (auto& news : mountains) boost::asio::co_spawn(stores.io, tell(std::move(news)), boost::asio::detached);
  boost::asio::co_spawn(stores.io, renew(), boost::asio::detached);
  stores.io.restart();
  stores.io.run();
  EXPECT_LT(renewed - asked, (told - asked) * 3 / 4) << "a renewal waits for a slice of the other work, not for all of it";
}

}  // namespace weir::test
