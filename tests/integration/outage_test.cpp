// The store goes away for a while and comes back. Lease time stood still meanwhile, so nothing has moved, however many
// others wait for just that. A holder that is really gone is another matter: its cameras are taken over in time.
#include "holders.hpp"
#include "stall.hpp"

#include <gtest/gtest.h>

#include <sys/mount.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>

namespace weir::test {

namespace {

constexpr int kRunners = 4;
constexpr int kEach = 5;
constexpr int kCameras = kRunners * kEach;
constexpr Duration kTtl = 6s;

// PostgreSQL's processes: the postmaster first, so that it makes no more of them while they are being stopped.
std::vector<int> processes_of(int postmaster) {
  std::vector<int> all = {postmaster};
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", gone)) {
    int pid = std::atoi(entry.path().filename().c_str());
    std::ifstream stat(entry.path() / "stat");
    std::string line;
    std::getline(stat, line);
    size_t name_end = line.rfind(')');
    int parent = 0;
    if (pid > 0 && name_end != std::string::npos && std::sscanf(line.c_str() + name_end + 1, " %*c %d", &parent) == 1 &&
        parent == postmaster)
      all.push_back(pid);
  }
  return all;
}

// Frozen while this lives.
class Frozen {
 public:
  explicit Frozen(const PostgresServer& server) : postmaster_(server.pid()) {
    ::kill(postmaster_, SIGSTOP);
    processes_ = processes_of(postmaster_);
    for (int pid : processes_) ::kill(pid, SIGSTOP);
  }
  ~Frozen() {
    for (int pid : processes_) ::kill(pid, SIGCONT);
  }
  Frozen(const Frozen&) = delete;

 private:
  const int postmaster_;
  std::vector<int> processes_;
};

// Holders, and rivals that want the same cameras, at rest before the outage.
class Scene {
 public:
  explicit Scene(std::vector<const WeirProcess*> planes) : planes_(planes), fleet(planes) {
    add_holders(fleet, kRunners, kEach, planes.size());
    EXPECT_TRUE(all_held(fleet, kRunners));
    add_rival(fleet, "rival-1", camera_names(1, kCameras));
    add_rival(fleet, "rival-2", camera_names(1, kCameras), planes.size() - 1);
    EXPECT_TRUE(all_renewed(fleet, kRunners, kEach));
    fleet.during([&] { before_ = holdings(*planes_[0]); });
    EXPECT_EQ(before_.size(), static_cast<size_t>(kCameras));
  }

  void outlast(Duration outage) {
    ASSERT_GT(outage, kTtl);
    answers_ = fleet.seen().answers().size();
    fleet.run_until(boot_now() + outage);
    EXPECT_LE(fleet.seen().answers().size(), answers_ + kCameras) << "somebody went on answering";
    for (const std::string& name : camera_names(1, kCameras))
      EXPECT_FALSE(believed(name)) << name << " is believed in after its deadline";
  }

  // The same owner and boot under the same version, and nobody else was ever granted anything.
  void expect_nothing_moved() {
    EXPECT_TRUE(all_held(fleet, kRunners));
    EXPECT_TRUE(all_renewed(fleet, kRunners, kEach));
    fleet.during([&] { EXPECT_EQ(holdings(*planes_[0]), before_); });
    EXPECT_EQ(fleet.seen().broken(), "");
    EXPECT_EQ(fleet.seen().takeovers_told(), "");
    for (const std::string& name : camera_names(1, kCameras))
      EXPECT_EQ(fleet.seen().losses(CameraId::trusted(name)), 0) << name;
  }

 private:
  bool believed(const std::string& name) const {
    for (size_t runner = 0; runner < kRunners; ++runner)
      if (fleet.believes(runner, name)) return true;
    return false;
  }

  const std::vector<const WeirProcess*> planes_;
  size_t answers_ = 0;
  std::map<std::string, std::string> before_;

 public:
  Fleet fleet;
};

// PostgreSQL with two control planes.
struct Installation {
  static Result<std::unique_ptr<Installation>> start() {
    auto made = std::make_unique<Installation>();
    TRY(server, PostgresServer::start());
    made->server = std::move(server);
    TRY(database, made->server->new_database());
    made->one = std::make_unique<WeirProcess>(made->folder.path(), database);
    made->two = std::make_unique<WeirProcess>(made->folder.path(), database);
    made->one->furnish(kCameras);
    return made;
  }
  TempDir folder;
  std::unique_ptr<PostgresServer> server;
  std::unique_ptr<WeirProcess> one, two;
};

}  // namespace

TEST(Outage, PostgresGoneForAMinute_NothingMoves) {
  auto made = Installation::start();
  SKIP_WITHOUT_POSTGRES(made);
  Installation& here = **made;
  Scene scene({here.one.get(), here.two.get()});
  scene.fleet.during([&] { here.server->kill_hard(); });
  scene.outlast(60s);
  EXPECT_GT(scene.fleet.refused(), 0);
  EXPECT_TRUE(here.one->running() && here.two->running());
  scene.fleet.during([&] {
    Status started = here.server->start_again();
    ASSERT_TRUE(started) << started.error().message;
  });
  scene.expect_nothing_moved();
}

TEST(Outage, PostgresFrozen_NothingMoves) {
  auto made = Installation::start();
  SKIP_WITHOUT_POSTGRES(made);
  Installation& here = **made;
  Scene scene({here.one.get(), here.two.get()});
  {
    Frozen frozen(*here.server);
    scene.outlast(long_run() ? 60s : 12s);
  }
  scene.expect_nothing_moved();
}

TEST(Outage, SqliteControlPlaneGone_NothingMoves) {
  TempDir folder;
  WeirProcess plane(folder.path(), "sqlite:" + folder.path() + "/weir.db");
  plane.furnish(kCameras);
  Scene scene({&plane});
  plane.kill_hard();
  scene.outlast(long_run() ? 60s : 15s);
  scene.fleet.during([&] { plane.start(); });
  scene.expect_nothing_moved();
}

namespace {

// A small disk of its own, and what fills it.
class SmallDisk {
 public:
  SmallDisk() : made_(::mount("tmpfs", folder_.path().c_str(), "tmpfs", 0, "size=2m") == 0) {}
  ~SmallDisk() {
    if (made_) ::umount2(folder_.path().c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;

  bool made() const { return made_; }
  const std::string& path() const { return folder_.path(); }
  void fill() {
    std::ofstream file(filler());
    while (file << std::string(1024, 'x') << std::flush) {
    }
  }
  void make_room() { std::filesystem::remove(filler()); }

 private:
  std::string filler() const { return folder_.path() + "/filler"; }
  TempDir folder_;
  const bool made_;
};

}  // namespace

TEST(Outage, SqliteOnAFullDisk_NothingMoves_AndItSaysSo) {
  SmallDisk disk;
  if (!disk.made()) GTEST_SKIP() << "a file system cannot be mounted here (root only)";
  TempDir folder;
  WeirProcess plane(folder.path(), "sqlite:" + disk.path() + "/weir.db");
  plane.furnish(kCameras);
  Scene scene({&plane});
  scene.fleet.during([&] { disk.fill(); });
  scene.outlast(15s);
  scene.fleet.during([&] {
    EXPECT_EQ(plane.get("/readyz").status, 503);
    EXPECT_NE(plane.log().find("store.commit_failed"), std::string::npos) << plane.log();
    disk.make_room();
    EXPECT_TRUE(eventually(5s, [&] { return plane.get("/readyz").status == 200; }));
  });
  scene.expect_nothing_moved();
  EXPECT_NE(plane.log().find("store.writes_again"), std::string::npos) << plane.log();
}

// ---- a holder that is really gone ----

namespace {

// Kills the first holder and waits for its cameras to be a rival's.
void expect_takeover(Fleet& fleet) {
  add_holders(fleet, 1, kEach);
  ASSERT_TRUE(all_held(fleet, 1));
  size_t rival = add_rival(fleet, "rival-1", camera_names(1, kEach));
  ASSERT_TRUE(all_renewed(fleet, 1, kEach));
  fleet.kill(0);
  EXPECT_TRUE(fleet.until(kTtl + 2s, [&] { return fleet.believes_all(rival); })) << "not taken over in time";
  EXPECT_EQ(fleet.seen().takeovers(), kEach);
  EXPECT_EQ(fleet.seen().broken(), "");
}

}  // namespace

TEST(Takeover, HolderThatStopsAsking_IsReplacedWithinTtlAndTwoSeconds) {
  TempDir folder;
  WeirProcess plane(folder.path(), "sqlite:" + folder.path() + "/weir.db");
  plane.furnish(kEach);
  Fleet fleet({&plane});
  expect_takeover(fleet);
}

TEST(Takeover, HolderThatStopsAsking_IsReplacedInTime_WhileAnotherControlPlaneRestarts) {
  auto made = Installation::start();
  SKIP_WITHOUT_POSTGRES(made);
  Installation& here = **made;
  std::atomic<bool> done{false};
  auto restarts = std::async(std::launch::async, [&] {
    int count = 0;
    for (; !done; ++count) {
      here.two->kill_hard();
      here.two->start();
      eventually(1s, [&] { return done.load(); });
    }
    return count;
  });
  {
    Fleet fleet({here.one.get(), here.two.get()});
    expect_takeover(fleet);
  }
  done = true;
  EXPECT_GT(restarts.get(), 2);
}

}  // namespace weir::test
