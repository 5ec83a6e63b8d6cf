// A store moves from SQLite to PostgreSQL while a real runner goes on with its cameras.
#include "fleet.hpp"
#include "ran.hpp"
#include "stall.hpp"

#include "weir/base/clock.hpp"
#include "weir/lease/reopen.hpp"
#include "weir/lease/version.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace weir::test {
namespace {

// When the last picture before and the first picture after `time` were taken that an accepted detection speaks of.
std::pair<std::optional<WallTime>, std::optional<WallTime>> around(const History& history, const std::string& camera,
                                                                   WallTime time) {
  std::pair<std::optional<WallTime>, std::optional<WallTime>> found;
  for (const Accepted& event : history.events()) {
    if (event.kind != "detections" || event.camera != camera || !event.captured) continue;
    if (*event.captured <= time) found.first = std::max(found.first.value_or(WallTime{}), *event.captured);
    else if (!found.second || *event.captured < *found.second) found.second = event.captured;
  }
  return found;
}

TEST(StoreMove, UnderALiveRunner_NoCameraIsDialledAgain_OneOwnerEach_AndTheOldFileIsRefused) {
  if (!fleet_needs().empty()) GTEST_SKIP() << fleet_needs();
  auto server = PostgresServer::shared();
  SKIP_WITHOUT_POSTGRES(server);
  auto url = (*server)->new_database();
  ASSERT_TRUE(url) << url.error().message;
  // Every picture is looked at, and something is seen in every one.
  RunnerFleet fleet({.profile = "width=384,height=288,fps=5,keyframe_s=1,seconds=10",
                     .camera = {{"max_fps", 10}, {"decode", "full"}, {"motion_gating", {{"enabled", false}}},
                                {"min_score", 0.05}}});
  std::string file = fleet.folder().path() + "/weir.db";
  // The runner knows the new control plane's address beforehand; that control plane does not run before its store is
  // there.
  WeirProcess next(fleet.folder().path(), *url);
  ASSERT_EQ(next.terminate(), 0);
  Runner& runner = fleet.add("r1", {}, fleet.plane().url() + "," + next.url());
  ASSERT_TRUE(fleet.all_stream(20s)) << fleet.report();
  auto heard_after = [&](const WeirProcess& plane, History& history, WallTime time) {
    return eventually(20s, [&] {
      history.read(plane);
      between_looks();
      return std::ranges::all_of(fleet.cameras(), [&](const auto& camera) {
        return around(history, camera, time).second.has_value();
      });
    });
  };
  ASSERT_TRUE(heard_after(fleet.plane(), fleet.history(), wall_now())) << fleet.report();

  std::vector<std::string> move = {"store", "move", "--from", "sqlite:" + file, "--to", *url, "--json"};
  Ran running = run_weir(fleet.folder(), move);
  EXPECT_EQ(running.code, 1);
  EXPECT_NE(running.err.find("stop it first"), std::string::npos) << running.err;
  fleet.history().read(fleet.plane());
  WallTime stopped = wall_now();
  ASSERT_EQ(fleet.plane().terminate(), 0);
  Ran moved = run_weir(fleet.folder(), move);
  ASSERT_EQ(moved.code, 0) << moved.err;
  EXPECT_EQ(moved.parsed().at("epoch").as_int64(), 2);
  next.start();
  WallTime started = wall_now();

  History after;
  ASSERT_TRUE(heard_after(next, after, started)) << runner.log();
  double longest = 0;
  for (const Accepted& event : after.events()) fleet.history().add(event);
  for (const std::string& camera : fleet.cameras()) {
    auto [last, first] = around(fleet.history(), camera, stopped);
    ASSERT_TRUE(last && first) << camera;
    longest = std::max(longest, seconds(*first - *last));
    EXPECT_TRUE(runner.streams(camera)) << runner.log();
    EXPECT_EQ(runner.number(camera, "dials"), 1) << camera;
    Reply lease = next.get("/v1/leases?held=true&limit=1000");
    for (const auto& each : lease.body.at("items").as_array()) {
      EXPECT_EQ(each.at("owner_id"), "r1");
      EXPECT_EQ(lease::Version{each.at("version").as_int64()}.epoch(), 2);
    }
    EXPECT_EQ(lease.body.at("items").as_array().size(), fleet.cameras().size());
  }
  fleet.history().expect_one_voice();
  std::printf("NOTE: move to PostgreSQL under a live runner: the control plane was away for %.1f s (the move itself "
              "%.1f s), no detection for %.1f s, no camera dialled again\n", seconds(started - stopped),
              moved.parsed().at("seconds").to_number<double>(), longest);

  // Nobody can serve the old file any more, nor move it elsewhere.
  Ran served = run_weir(fleet.folder(), {"control-plane", "--db", "sqlite:" + file, "--listen", "127.0.0.1:0"});
  EXPECT_EQ(served.code, 1);
  EXPECT_NE(served.err.find("this store was moved to postgres://"), std::string::npos) << served.err;
  auto elsewhere = (*server)->new_database();
  ASSERT_TRUE(elsewhere);
  Ran twice = run_weir(fleet.folder(), {"store", "move", "--from", "sqlite:" + file, "--to", *elsewhere});
  EXPECT_EQ(twice.code, 1);
  EXPECT_NE(twice.err.find("this store was moved to postgres://"), std::string::npos) << twice.err;
  Ran nothing = run_weir(fleet.folder(), {"store", "backup", "x.backup", "--db", *elsewhere});
  EXPECT_EQ(nothing.code, 1);
  EXPECT_NE(nothing.err.find("holds no store"), std::string::npos) << nothing.err;
}

// PostgreSQL says no at the very commit: the store stays where it was, and is served again. Then the move succeeds, its
// commit is lost with the connection (as far as anybody can see), and the same command is run again.
TEST(StoreMove, ThatFailsAtItsCommit_LeavesTheOldStoreServed_AndOneThatIsRepeatedLeapsAnEpoch) {
  auto server = PostgresServer::shared();
  SKIP_WITHOUT_POSTGRES(server);
  auto url = (*server)->new_database();
  ASSERT_TRUE(url) << url.error().message;
  std::string database = url->substr(url->rfind('/') + 1);
  auto sql = [&](const std::string& statement) {
    auto done = (*server)->sql(database, statement);
    EXPECT_TRUE(done) << (done ? "" : done.error().message);
  };
  TempDir folder;
  std::string from = "sqlite:" + folder.path() + "/weir.db";
  WeirProcess plane(folder.path(), from);
  plane.furnish(3);
  ASSERT_EQ(plane.terminate(), 0);
  ASSERT_EQ(WeirProcess(folder.path(), *url).terminate(), 0);  // makes the tables

  std::vector<std::string> move = {"store", "move", "--from", from, "--to", *url, "--json"};
  sql("CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION $m$not today$m$; END $$");
  sql("CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON tenants DEFERRABLE INITIALLY DEFERRED FOR EACH ROW"
      " EXECUTE FUNCTION refuse()");
  Ran failed = run_weir(folder, move);
  EXPECT_EQ(failed.code, 1);
  EXPECT_NE(failed.err.find("not today"), std::string::npos) << failed.err;
  plane.start();
  EXPECT_EQ(plane.get("/v1/cameras").body.at("items").as_array().size(), 3u);
  ASSERT_EQ(plane.terminate(), 0);

  sql("DROP TRIGGER refuse ON tenants");
  Ran moved = run_weir(folder, move);
  ASSERT_EQ(moved.code, 0) << moved.err;
  EXPECT_EQ(moved.parsed().at("epoch").as_int64(), 2);
  Ran again = run_weir(folder, move);
  EXPECT_EQ(again.code, 1);
  EXPECT_NE(again.err.find("holds a store already (epoch 2, 3 cameras)"), std::string::npos) << again.err;
  sql("DROP SCHEMA public CASCADE");
  sql("CREATE SCHEMA public");
  Ran repeated = run_weir(folder, move);
  ASSERT_EQ(repeated.code, 0) << repeated.err;
  EXPECT_EQ(repeated.parsed().at("epoch").as_int64(), 1 + lease::kEpochLeap);
  WeirProcess next(folder.path(), *url);
  EXPECT_EQ(next.get("/v1/cameras").body.at("items").as_array().size(), 3u);
}

// With the roles of deploy/postgres/roles.sql: whoever looks after the database makes the tables, before the control
// plane that may only use them starts, and before the one that needs newer ones.
TEST(StoreMigrate, ByTheTablesOwner_LetsAControlPlaneServeThatMayNotMakeThem) {
  auto server = PostgresServer::shared();
  SKIP_WITHOUT_POSTGRES(server);
  auto roles = (*server)->new_database_with_roles();
  ASSERT_TRUE(roles) << roles.error().message;
  TempDir folder;
  Ran early = run_weir(folder, {"control-plane", "--listen", "127.0.0.1:0", "--db", roles->plane});
  EXPECT_EQ(early.code, 1);
  EXPECT_NE(early.err.find("run `weir store migrate`"), std::string::npos) << early.err;
  EXPECT_EQ(run_weir(folder, {"store", "migrate", "--db", roles->plane}).code, 1);
  EXPECT_EQ(run_weir(folder, {"store", "migrate", "--db", "sqlite:weir.db"}).code, 2);

  Ran made = run_weir(folder, {"store", "migrate", "--db", roles->owner, "--json"});
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_EQ(made.parsed().at("before").as_int64(), 0);
  Ran again = run_weir(folder, {"store", "migrate", "--db", roles->owner});
  EXPECT_NE(again.out.find("already"), std::string::npos) << again.out;
  WeirProcess plane(folder.path(), roles->plane);
  plane.furnish(2);
  EXPECT_EQ(plane.get("/v1/cameras").body.at("items").as_array().size(), 2u);
  Ran copied = run_weir(folder, {"store", "backup", "copy.backup", "--db", roles->backup});
  EXPECT_EQ(copied.code, 0) << copied.err;
}

}  // namespace
}  // namespace weir::test
