// Backup and restore with the real executables: a copy that is taken under load is of one moment, a restored store goes
// on under a new epoch, and events under an older version are refused.
#include "api_store.hpp"
#include "api_talk.hpp"
#include "holders.hpp"
#include "ran.hpp"
#include "stall.hpp"

#include "weir/lease/reopen.hpp"

#include <gtest/gtest.h>

#include <sys/stat.h>

#include <atomic>
#include <set>
#include <thread>

namespace weir::test {

namespace {

constexpr int kRunners = 4, kEach = 5;
const std::vector<std::string> kFlags = {"--lease-ttl-max-s", "10"};
constexpr std::int64_t kRestored = 1 + lease::kEpochLeap;

// Adds sites x-0, x-1 … each with its camera, one after the other, as long as it lives.
class Load {
 public:
  explicit Load(const WeirProcess& plane) : thread_([this, &plane] {
    Talk talk(plane, plane.token("admin"));
    for (; !over_; ++added_) {
      std::string name = fmt::format("x-{}", added_.load());
      EXPECT_EQ(talk.post("/v1/sites", {{"site_id", name}, {"tenant_id", "t1"}}).status, 201);
      EXPECT_EQ(talk.post("/v1/cameras", {{"camera_uuid", name}, {"tenant_id", "t1"}, {"site_id", name},
                                          {"rtsp_url", "rtsp://u:p@camera.example/x"}}).status, 201);
    }
  }) {}
  ~Load() { end(); }
  void end() {
    over_ = true;
    if (thread_.joinable()) thread_.join();
  }
  int added() const { return added_; }

 private:
  std::atomic<bool> over_ = false;
  std::atomic<int> added_ = 0;
  std::thread thread_;
};

std::set<std::string> names(Talk& talk, const std::string& target, const char* field) {
  std::set<std::string> found;
  for (std::string cursor; cursor != "null";) {
    Reply page = talk.get(fmt::format("{}?limit=1000{}", target, cursor.empty() ? "" : "&cursor=" + cursor));
    EXPECT_EQ(page.status, 200) << page.text;
    if (page.status != 200) break;
    for (const auto& item : items_of(page)) found.emplace(item.at(field).as_string());
    cursor = page.field("next_cursor");
  }
  return found;
}

// The copy is of one moment: it has every camera with its site, and none without all that came before it.
int expect_one_moment(const WeirProcess& plane) {
  Talk talk(plane, plane.token("admin"));
  auto sites = names(talk, "/v1/sites", "site_id"), cameras = names(talk, "/v1/cameras", "camera_uuid");
  int count = 0;
  while (cameras.contains(fmt::format("x-{}", count))) ++count;
  auto added = std::ranges::count_if(cameras, [](const auto& name) { return name.starts_with("x-"); });
  EXPECT_EQ(added, count) << "a camera is there, and one that was added before it is not";
  for (int n = 0; n < count; ++n) EXPECT_TRUE(sites.contains(fmt::format("x-{}", n))) << n;
  EXPECT_LE(std::ssize(sites), 1 + count + 1);
  return count;
}

std::string published(const WeirProcess& plane, const std::string& runner, const std::string& camera,
                      std::int64_t version, const std::string& id) {
  json::object payload{{"event_id", id}, {"camera_uuid", camera}, {"lease_version", version}, {"runner_id", runner}};
  json::object item{{"topic", "detections.topic"}, {"routing_key", "detections.t1.s1." + camera}, {"event_id", id},
                    {"camera_uuid", camera}, {"lease_version", version}, {"payload", payload}};
  Reply reply = plane.call(net::Method::post, "/v1/events/batch", {{"items", json::array{item}}},
                           plane.token("runner", runner));
  EXPECT_EQ(reply.status, 200) << reply.text;
  if (reply.status != 200) return {};
  return std::string(reply.body.at("items").at(0).at("result").as_string());
}

std::int64_t version_of(const Fleet& fleet, const std::string& camera) {
  return fleet.seen().highest(CameraId::trusted(camera)).n;
}

Duration slowest_answer(const Fleet& fleet, Instant since) {
  Duration slowest{0};
  for (const Yes& yes : fleet.seen().answers())
    if (yes.asked_at >= since) slowest = std::max(slowest, yes.answered_at - yes.asked_at);
  return slowest;
}

class StoreBackup : public testing::TestWithParam<StoreKind> {
 protected:
  TempDir folder_;
};
INSTANTIATE_OVER_BOTH_STORES(StoreBackup);

TEST_P(StoreBackup, UnderLoad_IsOfOneMoment_AndRestored_OpensAnEpochThatFencesOldVersions) {
  auto database = new_store(GetParam(), folder_);
  SKIP_WITHOUT_POSTGRES(database);
  WeirProcess plane(folder_.path(), *database, kFlags);
  plane.furnish(kRunners * kEach);
  Fleet fleet({&plane});
  add_holders(fleet, kRunners, kEach);
  ASSERT_TRUE(all_held(fleet, kRunners));

  std::string file = folder_.path() + "/copy.backup";
  Ran backup;
  int before = 0, after = 0;
  Instant began = boot_now();
  {
    Load load(plane);
    ASSERT_TRUE(fleet.until(20s, [&] { return load.added() >= 20; }));
    before = load.added();
    fleet.during([&] { backup = run_weir(folder_, {"store", "backup", file, "--db", *database, "--json"}); });
    after = load.added();
    ASSERT_TRUE(all_renewed(fleet, kRunners, kEach));
    fleet.during([&] { load.end(); });
  }
  ASSERT_EQ(backup.code, 0) << backup.err;
  json::value told_of = backup.parsed();
  auto count = [&](const char* table) { return told_of.at("counts").at(table).to_number<int>(); };
  EXPECT_EQ(told_of.at("epoch").as_int64(), 1);
  EXPECT_EQ(count("leases"), count("cameras"));
  double slowest = seconds(slowest_answer(fleet, began));
  std::printf("NOTE: %s: a backup of %d cameras under load took %.2f s; the slowest lease answer meanwhile %.2f s\n",
              GetParam() == StoreKind::sqlite ? "SQLite" : "PostgreSQL",
              count("cameras"), told_of.at("seconds").to_number<double>(), slowest);
  EXPECT_EQ(fleet.seen().takeovers_told(), "");

  // Lost to the backup: five rotations.
  std::map<std::string, std::int64_t> told;
  for (const std::string& name : camera_names(1, kRunners * kEach)) told[name] = version_of(fleet, name);
  for (const std::string& name : camera_names(1, kEach)) fleet.rotate(0, name);
  ASSERT_TRUE(fleet.until(20s, [&] {
    return std::ranges::all_of(camera_names(1, kEach),
                               [&](const auto& name) { return version_of(fleet, name) > told[name]; });
  }));
  EXPECT_EQ(published(plane, "runner-1", "cam-1", version_of(fleet, "cam-1"), "before"), "accepted");
  std::int64_t rotated = version_of(fleet, "cam-1"), kept_version = version_of(fleet, "cam-20");

  std::vector<std::string> restore = {"store", "restore", file, "--db", *database, "--json"};
  restore.insert(restore.end(), kFlags.begin(), kFlags.end());
  Ran refused, unforced, done;
  fleet.during([&] { refused = run_weir(folder_, restore); });
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.err.find("control plane"), std::string::npos) << refused.err;
  fleet.witness().expect_forgetting();
  fleet.during([&] { EXPECT_EQ(plane.terminate(), 0); });
  fleet.during([&] { unforced = run_weir(folder_, restore); });
  EXPECT_EQ(unforced.code, 1);
  EXPECT_NE(unforced.err.find("holds a store already"), std::string::npos) << unforced.err;
  restore.push_back("--force");
  fleet.during([&] { done = run_weir(folder_, restore); });
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_EQ(done.parsed().at("epoch").as_int64(), kRestored);
  std::string kept(done.parsed().at("kept").as_string());
  EXPECT_TRUE(std::filesystem::exists(kept)) << kept;

  fleet.during([&] { plane.start(); });
  ASSERT_TRUE(all_renewed(fleet, kRunners, kEach));
  for (const std::string& name : camera_names(1, kRunners * kEach))
    EXPECT_EQ(fleet.seen().highest(CameraId::trusted(name)).epoch(), kRestored) << name;
  EXPECT_EQ(fleet.seen().takeovers_told(), "");
  EXPECT_EQ(fleet.seen().broken(), "");
  int there = expect_one_moment(plane);
  EXPECT_GE(there, before);
  EXPECT_LE(there, after + 1);

  // Leases that were granted before the restore are over, also where the restored row had the very same version.
  EXPECT_EQ(published(plane, "runner-1", "cam-1", told["cam-1"], "old"), "stale");
  EXPECT_EQ(published(plane, "runner-1", "cam-1", rotated, "lost"), "stale");
  EXPECT_EQ(published(plane, "runner-4", "cam-20", kept_version, "same"), "stale");
  EXPECT_EQ(published(plane, "runner-4", "cam-20", version_of(fleet, "cam-20"), "new"), "accepted");
}

TEST_P(StoreBackup, OfOneStore_IsBroughtBackIntoTheOther_AndIsNotServedItself) {
  auto database = new_store(GetParam(), folder_);
  SKIP_WITHOUT_POSTGRES(database);
  auto other = new_store(GetParam() == StoreKind::sqlite ? StoreKind::postgres : StoreKind::sqlite, folder_);
  SKIP_WITHOUT_POSTGRES(other);
  std::string file = folder_.path() + "/copy.backup";
  {
    WeirProcess plane(folder_.path(), *database);
    plane.furnish(3, "rtsp://user:hunter2canary@camera.example/stream");
    Reply added = plane.post("/v1/api-keys", {{"role", "viewer"}, {"sub", "somebody"}});
    ASSERT_EQ(added.status, 201) << added.text;
    Ran backup = run_weir(folder_, {"store", "backup", file}, "DATABASE_URL='" + *database + "'");
    ASSERT_EQ(backup.code, 0) << backup.err;
    EXPECT_NE(backup.out.find("3 cameras"), std::string::npos) << backup.out;
    EXPECT_EQ(backup.out.find("hunter2"), std::string::npos);
    EXPECT_EQ(backup.err, "");
    struct stat about {};
    ASSERT_EQ(::stat(file.c_str(), &about), 0);
    EXPECT_EQ(about.st_mode & 0777, 0600u);
    Ran again = run_weir(folder_, {"store", "backup", file, "--db", *database});
    EXPECT_EQ(again.code, 1);
    EXPECT_NE(again.err.find("is there already"), std::string::npos) << again.err;
  }
  Ran served = run_weir(folder_, {"control-plane", "--db", "sqlite:" + file, "--listen", "127.0.0.1:0"});
  EXPECT_EQ(served.code, 1);
  EXPECT_NE(served.err.find("this file is a backup"), std::string::npos) << served.err;
  EXPECT_NE(served.err.find("weir store restore"), std::string::npos) << served.err;

  std::string nobody = "postgres://weir:hunter2canary@127.0.0.1:1/weir";
  Ran unreachable = run_weir(folder_, {"store", "restore", file, "--db", nobody});
  EXPECT_EQ(unreachable.code, 1);
  EXPECT_NE(unreachable.err.find("DATABASE_URL in the environment"), std::string::npos) << unreachable.err;
  EXPECT_EQ(unreachable.err.find("hunter2"), std::string::npos) << unreachable.err;
  Ran low = run_weir(folder_, {"store", "restore", file, "--db", *other, "--epoch", "1"});
  EXPECT_EQ(low.code, 2);
  EXPECT_NE(low.err.find("--epoch must be above 1"), std::string::npos) << low.err;
  Ran restored = run_weir(folder_, {"store", "restore", file, "--db", *other, "--epoch", "40", "--json"});
  ASSERT_EQ(restored.code, 0) << restored.err;
  EXPECT_EQ(restored.parsed().at("epoch").as_int64(), 40);
  EXPECT_TRUE(restored.parsed().at("kept").is_null());
  WeirProcess plane(folder_.path(), *other);
  Talk talk(plane, plane.token("admin"));
  EXPECT_EQ(names(talk, "/v1/cameras", "camera_uuid"), (std::set<std::string>{"cam-1", "cam-2", "cam-3"}));
  EXPECT_NE(talk.get("/v1/cameras/cam-1").text.find("hunter2canary"), std::string::npos);
  EXPECT_EQ(items_of(talk.get("/v1/api-keys")).size(), 1u);
}

}  // namespace
}  // namespace weir::test
