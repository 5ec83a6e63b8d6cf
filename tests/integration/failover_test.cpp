// The store comes back without its last commits: a replica that had not heard everything takes over, or an old backup
// is started. The epoch rises, so that no version is given twice, and nothing changes hands until every lease that a
// lost commit may have granted has run out.
#include "holders.hpp"
#include "stall.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

namespace weir::test {

namespace {

constexpr Duration kTtlMax = 10s;
const std::vector<std::string> kFlags = {"--lease-ttl-max-s", "10"};

std::string epoch_metric(const WeirProcess& plane) {
  std::string text = plane.get("/metrics").text;
  size_t at = text.find("\nweir_epoch ");
  return at == std::string::npos ? "" : text.substr(at + 12, text.find('\n', at + 1) - at - 12);
}

std::string name_of(const std::string& url) { return url.substr(url.rfind('/') + 1); }

bool eventually_says(Fleet& fleet, PostgresServer& server, const std::string& database, const std::string& statement,
                     const std::string& expected) {
  std::string said;
  for (Instant deadline = boot_now() + 20s; boot_now() < deadline && said != expected;)
    fleet.during([&] {
      auto answer = server.sql(database, statement);
      said = answer ? *answer : answer.error().message;
    });
  EXPECT_EQ(said, expected) << statement;
  return said == expected;
}

// From here on the replica hears nothing more of its primary.
void cut_off(Fleet& fleet, PostgresServer& replica) {
  fleet.during([&] {
    auto unset = replica.sql("postgres", "ALTER SYSTEM SET primary_conninfo = ''");
    ASSERT_TRUE(unset) << unset.error().message;
    auto reloaded = replica.sql("postgres", "SELECT pg_reload_conf()");
    ASSERT_TRUE(reloaded) << reloaded.error().message;
  });
  eventually_says(fleet, replica, "postgres", "SELECT count(*) FROM pg_stat_wal_receiver", "0");
}

bool all_in_epoch(const Fleet& fleet, const std::vector<std::string>& cameras, std::int64_t epoch) {
  return std::ranges::all_of(
      cameras, [&](const std::string& name) { return fleet.seen().highest(CameraId::trusted(name)).epoch() == epoch; });
}

bool all_believed_by(const Fleet& fleet, size_t runner, const std::vector<std::string>& cameras) {
  return std::ranges::all_of(cameras, [&](const std::string& name) { return fleet.believes(runner, name); });
}

}  // namespace

TEST(Failover, ReplicaWithoutTheLastCommits_OpensAnEpoch_AndNothingChangesHands) {
  auto primary = PostgresServer::start();
  SKIP_WITHOUT_POSTGRES(primary);
  auto url = (*primary)->new_database();
  ASSERT_TRUE(url) << url.error().message;
  std::string database = name_of(*url);
  TempDir folder;
  WeirProcess before(folder.path(), *url, kFlags);
  before.furnish(22);
  auto replica = PostgresServer::start_replica(**primary);
  ASSERT_TRUE(replica) << replica.error().message;
  // The second control plane stands on the replica, and can do nothing before that becomes the primary.
  WeirProcess after(folder.path(), (*replica)->url(database), kFlags);
  EXPECT_EQ(after.get("/readyz").status, 503);

  Fleet fleet({&before, &after});
  add_holders(fleet, 4, 5);
  ASSERT_TRUE(all_held(fleet, 4));
  auto first_ten = camera_names(1, 10), second_ten = camera_names(11, 20);
  ASSERT_TRUE(eventually_says(fleet, **replica, database, "SELECT count(*) FROM leases WHERE NOT released", "20"));

  // Lost to the replica: ten rotations, and the grant of the twenty-first camera.
  cut_off(fleet, **replica);
  std::map<std::string, lease::Version> told;
  for (const std::string& name : second_ten) {
    told[name] = fleet.seen().highest(CameraId::trusted(name));
    fleet.rotate(name <= "cam-15" ? 2 : 3, name);
  }
  fleet.want(3, "cam-21");
  ASSERT_TRUE(fleet.until(20s, [&] {
    return fleet.believes(3, "cam-21") && std::ranges::all_of(second_ten, [&](const std::string& name) {
             return fleet.seen().highest(CameraId::trusted(name)) > told[name];
           });
  }));
  EXPECT_EQ(epoch_metric(before), "1");

  fleet.witness().expect_forgetting();
  fleet.during([&] { (*primary)->kill_hard(); });
  size_t rival = add_rival(fleet, "rival-1", camera_names(1, 22));
  Instant promoted = boot_now();
  fleet.during([&] {
    Status done = (*replica)->promote();
    ASSERT_TRUE(done) << done.error().message;
  });

  // Everybody goes on with what they had, under a new tenure of the new epoch.
  ASSERT_TRUE(all_renewed(fleet, 4, 5));
  EXPECT_TRUE(all_in_epoch(fleet, camera_names(1, 20), 2));
  EXPECT_EQ(fleet.seen().takeovers_told(), "");
  for (const std::string& name : first_ten) {
    auto grants = fleet.seen().grants_of(CameraId::trusted(name));
    ASSERT_EQ(grants.size(), 2u) << name;
    EXPECT_EQ(grants[1].outcome, lease::Outcome::granted);
    EXPECT_EQ(fleet.seen().losses(CameraId::trusted(name)), 0) << name;
  }
  // A version that the new primary has never heard of is lost, but the camera is not: it goes back to its owner.
  for (const std::string& name : second_ten) EXPECT_EQ(fleet.seen().losses(CameraId::trusted(name)), 1) << name;
  EXPECT_TRUE(eventually(10s, [&] { return epoch_metric(after) == "2"; })) << epoch_metric(after);
  EXPECT_NE(after.log().find("store.epoch"), std::string::npos) << after.log();

  // A free camera can be had again when no lost grant can be alive any more, not earlier.
  ASSERT_TRUE(fleet.until(kTtlMax + 15s, [&] { return fleet.believes(rival, "cam-22"); }));
  EXPECT_GE(fleet.seen().grants_of(CameraId::trusted("cam-22")).front().answered_at - promoted, kTtlMax);
  ASSERT_TRUE(fleet.until(15s, [&] { return fleet.believes(3, "cam-21") || fleet.believes(rival, "cam-21"); }));
  EXPECT_GE(fleet.seen().grants_of(CameraId::trusted("cam-21")).back().answered_at - promoted, kTtlMax);
  EXPECT_LE(fleet.seen().takeovers(), 1);  // at most the one whose grant was lost
  EXPECT_TRUE(all_believed_by(fleet, 0, camera_names(1, 5)));
  EXPECT_EQ(fleet.seen().broken(), "");
}

TEST(Failover, OldBackupStarted_AVersionFromTheFuture_OpensAnEpoch) {
  auto primary = PostgresServer::start();
  SKIP_WITHOUT_POSTGRES(primary);
  auto url = (*primary)->new_database();
  ASSERT_TRUE(url) << url.error().message;
  std::string database = name_of(*url);
  TempDir folder;
  WeirProcess before(folder.path(), *url, kFlags);
  before.furnish(40);
  // A backup that knows the cameras and no lease. Without its standby.signal it will start on the same timeline.
  auto backup = PostgresServer::start_replica(**primary);
  ASSERT_TRUE(backup) << backup.error().message;
  auto data = (*backup)->sql("postgres", "SHOW data_directory");
  ASSERT_TRUE(data) << data.error().message;
  (*backup)->kill_hard();
  ASSERT_TRUE(std::filesystem::remove(*data + "/standby.signal"));
  WeirProcess after(folder.path(), (*backup)->url(database), kFlags);

  Fleet fleet({&before, &after});
  add_holders(fleet, 8, 5);
  ASSERT_TRUE(all_held(fleet, 8));
  auto cameras = camera_names(1, 40);
  for (size_t i = 0; i < cameras.size(); ++i) fleet.rotate(i / 5, cameras[i]);
  ASSERT_TRUE(all_renewed(fleet, 8, 5));

  fleet.during([&] {
    (*primary)->kill_hard();
    Status started = (*backup)->start_again();
    ASSERT_TRUE(started) << started.error().message;
  });
  auto timeline = (*backup)->sql(database, "SELECT timeline = weir_timeline() FROM store_state");
  ASSERT_TRUE(timeline) << timeline.error().message;
  EXPECT_EQ(*timeline, "t");

  ASSERT_TRUE(fleet.until(30s, [&] { return all_in_epoch(fleet, cameras, 2); }));
  ASSERT_TRUE(all_held(fleet, 8));
  EXPECT_EQ(fleet.seen().takeovers_told(), "");
  EXPECT_EQ(fleet.seen().broken(), "");
  EXPECT_TRUE(eventually(10s, [&] { return epoch_metric(after) == "2"; })) << epoch_metric(after);
  EXPECT_NE(after.log().find("store.epoch"), std::string::npos) << after.log();
}

}  // namespace weir::test
