// Power cuts in the middle of the work: control planes and PostgreSQL are killed while forty cameras are held, rotated
// and fought for. No runner loses a lease by it, and no promise breaks.
#include "holders.hpp"
#include "stall.hpp"

#include <gtest/gtest.h>

#include <random>
#include <thread>

namespace weir::test {

namespace {

constexpr int kRunners = 8;
constexpr int kEach = 5;
constexpr int kCameras = kRunners * kEach;

int kills() { return long_run() ? 100 : 10; }

// The load of these tests, and the moments at which it is interrupted.
class Storm {
 public:
  explicit Storm(Fleet& fleet) : fleet_(fleet), random_(test_seed()) {}

  // Goes on until every holder has had an answer since the last kill, and a while longer; then stops in the middle of
  // a request. Kills in quick succession would test something else: a holder that cannot ask for a whole TTL of lease
  // time loses its lease.
  void to_random_moment() {
    Instant since = boot_now();
    ASSERT_TRUE(load_until([&] { return all_asked_since(fleet_, kCameras, since); })) << "somebody got no answer";
    Instant moment = boot_now() + within(0, long_run() ? 300 : 1000);
    ASSERT_TRUE(load_until([&] { return boot_now() >= moment && fleet_.open_questions() > 0; }));
  }
  bool chance(int percent) { return within(0, 100) < std::chrono::milliseconds(percent); }

 private:
  bool load_until(const std::function<bool()>& condition) {
    return fleet_.until(30s, [&] {
      if (chance(30)) rotate_one();
      return condition();
    });
  }
  Duration within(int from_ms, int to_ms) {
    return std::chrono::milliseconds(std::uniform_int_distribution(from_ms, to_ms - 1)(random_));
  }
  void rotate_one() {
    int camera = std::uniform_int_distribution(0, kCameras - 1)(random_);
    fleet_.rotate(static_cast<size_t>(camera / kEach), fmt::format("cam-{}", camera + 1));
  }

  Fleet& fleet_;
  std::mt19937 random_;
};

void begin(Fleet& fleet, size_t planes) {
  lease::HolderPolicy policy;
  if (long_run()) policy.renew_every = 700ms;  // the next blow waits for everybody's renewal
  add_holders(fleet, kRunners, kEach, planes, policy);
  ASSERT_TRUE(all_held(fleet, kRunners));
  add_rival(fleet, "rival-1", camera_names(1, kCameras));
  add_rival(fleet, "rival-2", camera_names(1, kCameras), planes - 1);
}

void expect_nothing_moved(Fleet& fleet) {
  EXPECT_TRUE(all_held(fleet, kRunners)) << "not everybody has their cameras back";
  EXPECT_TRUE(all_renewed(fleet, kRunners, kEach));
  EXPECT_EQ(fleet.seen().broken(), "");
  EXPECT_EQ(fleet.seen().takeovers_told(), "");
  for (const std::string& name : camera_names(1, kCameras)) {
    CameraId camera = CameraId::trusted(name);
    EXPECT_EQ(fleet.seen().losses(camera), 0) << name;
    EXPECT_EQ(fleet.seen().grants_of(camera).size(), 1u) << name << " got another tenure";
  }
  std::printf("%zu answers, %d refused, %d unreachable\n", fleet.seen().answers().size(), fleet.refused(),
              fleet.unreachable());
}

}  // namespace

TEST(Crash, SqliteControlPlaneKilledAtRandomMoments_NobodyLosesALease) {
  TempDir folder;
  WeirProcess plane(folder.path(), "sqlite:" + folder.path() + "/weir.db");
  plane.furnish(kCameras);
  Fleet fleet({&plane});
  begin(fleet, 1);
  Storm storm(fleet);
  for (int kill = 0; kill < kills() && !testing::Test::HasFailure(); ++kill) {
    storm.to_random_moment();
    plane.kill_hard();
    fleet.during([&] { plane.start(); });
  }
  expect_nothing_moved(fleet);
}

TEST(Crash, PostgresAndTwoControlPlanesKilledAtRandomMoments_NobodyLosesALease) {
  auto server = PostgresServer::start();
  SKIP_WITHOUT_POSTGRES(server);
  auto database = (*server)->new_database();
  ASSERT_TRUE(database) << database.error().message;
  TempDir folder;
  WeirProcess one(folder.path(), *database), two(folder.path(), *database);
  one.furnish(kCameras);
  Fleet fleet({&one, &two});
  begin(fleet, 2);
  Storm storm(fleet);
  for (int kill = 0; kill < kills() && !testing::Test::HasFailure(); ++kill) {
    storm.to_random_moment();
    if (kill % 4 == 2) {
      fleet.during([&] {
        (*server)->kill_hard();
        Status started = (*server)->start_again();
        ASSERT_TRUE(started) << started.error().message;
      });
      continue;
    }
    bool both = kill % 4 == 3;
    bool first = both || storm.chance(50);
    bool second = both || !first;
    if (first) one.kill_hard();
    if (second) two.kill_hard();
    fleet.during([&] {
      if (first) one.start();
      if (second) two.start();
    });
  }
  expect_nothing_moved(fleet);
}

TEST(Crash, TwoControlPlanesStartAtOnceOnAnEmptyDatabase_BothComeUp_TheSchemaIsMadeOnce) {
  auto server = PostgresServer::shared();
  SKIP_WITHOUT_POSTGRES(server);
  for (int round = 0; round < 10; ++round) {
    auto database = (*server)->new_database();
    ASSERT_TRUE(database) << database.error().message;
    TempDir folder;
    std::unique_ptr<WeirProcess> one, two;
    std::thread other([&] { two = std::make_unique<WeirProcess>(folder.path(), *database); });
    one = std::make_unique<WeirProcess>(folder.path(), *database);
    other.join();
    for (const WeirProcess* plane : {one.get(), two.get()}) {
      EXPECT_EQ(plane->get("/readyz").status, 200) << plane->log();
      EXPECT_EQ(plane->log().find("store.unreachable"), std::string::npos) << plane->log();
    }
    std::string name = database->substr(database->rfind('/') + 1);
    auto made = (*server)->sql(name,
                               "SELECT (SELECT (count(DISTINCT step) = count(*) AND max(step) = count(*))::text"
                               " FROM weir_schema) || ' ' ||"
                               " (SELECT count(*) FROM store_state) || ' ' || (SELECT max(epoch) FROM store_state)");
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ(*made, "true 1 1") << "every step once, one state, one epoch";
    one->furnish(1);
    EXPECT_EQ(two->get("/v1/cameras/cam-1").status, 200);
  }
}

}  // namespace weir::test
