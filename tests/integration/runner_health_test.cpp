// A runner that is in no state to work, or that the control plane does not know any more.
#include "fleet.hpp"
#include "stall.hpp"
#include "where.hpp"

#include <gtest/gtest.h>

#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>

namespace weir::test {
namespace {

namespace fs = std::filesystem;

class RunnerHealth : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!fleet_needs().empty()) GTEST_SKIP() << fleet_needs();
    fleet_ = std::make_unique<RunnerFleet>(FleetOptions{});
  }
  std::unique_ptr<RunnerFleet> fleet_;
};

TEST_F(RunnerHealth, WorkersThatDoNotStart_TheCamerasGoToARunnerWhereTheyDo) {
  std::string bin = fleet_->folder().path() + "/bin";
  fs::create_directory(bin);
  fs::copy_file(WEIR_BINARY, bin + "/weir");
  std::ofstream(bin + "/weir-worker") << "#!/bin/sh\nexit 127\n";
  fs::permissions(bin + "/weir-worker", fs::perms::owner_all);
  Runner broken(bin + "/weir", "broken", fleet_->folder().path() + "/broken",
                {"--control-plane-url", fleet_->plane().url(), "--auth-secret-file",
                 fleet_->folder().path() + "/auth.secret", "--prom-manager-port", "0"});
  fleet_->add("r1");
  ASSERT_TRUE(eventually(20s, [&] { return broken.logged("runner.no_workers"); })) << broken.log();
  EXPECT_TRUE(fleet_->all_stream(30s)) << fleet_->report() << broken.log();
  EXPECT_EQ(broken.told()["why_not_acquiring"], "no worker starts here");
}

// It says that it is ready and takes its cameras, and then answers what nobody can read: that ended the whole runner once.
TEST_F(RunnerHealth, AWorkerThatAnswersNonsense_IsReplaced_AndTheRunnerGoesOn) {
  TempDir bin;
  fs::copy_file(WEIR_BINARY, bin.path() + "/weir");
  std::ofstream(bin.path() + "/nonsense.py") << R"(
import http.server, json, os, sys, threading
class Worker(http.server.BaseHTTPRequestHandler):
    def answer(self, text):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
    def do_GET(self): self.answer(b'{"cameras":[{"camera_uuid":7}],"stuck":[5]}')
    def do_POST(self): self.answer(b'{}')
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Worker)
print(json.dumps({"control": "http://127.0.0.1:%d" % server.server_port, "pid": os.getpid()}), flush=True)
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
server.serve_forever()
)";
  // The first worker is the stand-in, all others are real.
  std::ofstream(bin.path() + "/weir-worker") << fmt::format(
      "#!/bin/sh\nif [ \"$1\" = shard ] && mkdir '{0}/taken' 2>/dev/null; then exec python3 '{0}/nonsense.py'; fi\n"
      "exec '{1}' \"$@\"\n", bin.path(), WEIR_WORKER);
  fs::permissions(bin.path() + "/weir-worker", fs::perms::owner_all);
  fleet_ = std::make_unique<RunnerFleet>(FleetOptions{.runner_program = bin.path() + "/weir"});
  Runner& runner = fleet_->add("r1");
  ASSERT_TRUE(eventually(60s, [&] { return runner.logged("\"event\":\"worker.killed\""); })) << runner.log();
  EXPECT_TRUE(fleet_->all_stream(30s)) << fleet_->report();
  EXPECT_FALSE(runner.logged("runner.broken")) << runner.log();
  fleet_->history().read(fleet_->plane());
  fleet_->history().expect_one_voice();
}

// A firewall, or a network that only one host is in.
TEST_F(RunnerHealth, ACameraThatItCannotReach_IsLeftToAnotherRunner) {
  fleet_ = std::make_unique<RunnerFleet>(FleetOptions{.cameras = 1});
  fleet_->camsim().recorder_fault("recorder-1", {{"kind", "reboot"}, {"for_s", 60}});
  Runner& first = fleet_->add("r1");
  ASSERT_TRUE(eventually(10s, [&] { return fleet_->owner_of("cam-1") == "r1"; })) << fleet_->report();
  std::int64_t version = fleet_->version_of("cam-1");
  fleet_->add("r2");
  ASSERT_TRUE(eventually(20s, [&] { return fleet_->owner_of("cam-1") == "r2"; })) << fleet_->report();
  EXPECT_TRUE(first.logged("\"event\":\"camera.unreachable\"")) << first.log();
  fleet_->camsim().recorder_fault("recorder-1", {{"kind", "none"}});
  ASSERT_TRUE(fleet_->all_stream(20s)) << fleet_->report();
  EXPECT_EQ(fleet_->owner_of("cam-1"), "r2");
  EXPECT_TRUE(eventually(10s, [&] {
    fleet_->history().read(fleet_->plane());
    return fleet_->history().streaming_above("cam-1", version).has_value();
  }));
  fleet_->history().expect_one_voice();
}

// A pipe that nobody reads from, or writes to, holds up the process that opens it, as a disk does that hangs.
TEST_F(RunnerHealth, ADiskThatHangs_HoldsUpNeitherRenewals_NorTheReplacementOfAWorker_NorTheEnd) {
  Runner& runner = fleet_->add("r1");
  ASSERT_TRUE(fleet_->all_stream(20s)) << fleet_->report();
  auto versions = fleet_->versions();
  std::string folder = runner.folder() + "/runner/";
  for (std::string name : {"cameras.json.new", "crash-1.json", "crash-2.json"}) {
    fs::remove(folder + name);
    ASSERT_EQ(::mkfifo((folder + name).c_str(), 0600), 0) << name;
  }
  Reply named = fleet_->plane().call(net::Method::patch, "/v1/cameras/cam-1", {{"name", "Gate"}}, fleet_->plane().token("admin"));
  ASSERT_EQ(named.status, 200) << named.text;
  let_last(4s);  // longer than a lease
  for (const std::string& camera : fleet_->cameras()) {
    EXPECT_GT(runner.number(camera, "lease_valid_s"), 0) << "nobody renewed it\n" << fleet_->report();
    EXPECT_EQ(fleet_->version_of(camera), versions[camera]);
  }
  signal_all({runner.worker_of("cam-1")}, SIGKILL);
  EXPECT_TRUE(eventually(5s, [&] { return fleet_->version_of("cam-1") > versions["cam-1"] && runner.streams("cam-1"); }))
      << fleet_->report();
  signal_all({runner.parent()}, SIGTERM);
  EXPECT_EQ(runner.wait(15s), 0) << runner.log();
}

TEST_F(RunnerHealth, DeletedFromTheList_ItEnds_SoThatItsNextStartRegistersAnew) {
  Runner& runner = fleet_->add("r1");
  ASSERT_TRUE(fleet_->all_stream(20s)) << fleet_->report();
  for (const std::string& camera : fleet_->cameras())
    ASSERT_EQ(fleet_->plane().call(net::Method::del, "/v1/cameras/" + camera, {}, fleet_->plane().token("admin")).status, 200);
  Reply gone;
  ASSERT_TRUE(eventually(10s, [&] {
    gone = fleet_->plane().call(net::Method::del, "/v1/runners/r1", {}, fleet_->plane().token("admin"));
    return gone.status == 200;
  })) << gone.text;
  EXPECT_EQ(runner.wait(20s), 60) << runner.log();
  auto again = fleet_->make("r1", "r1");
  EXPECT_TRUE(eventually(10s, [&] { return fleet_->plane().get("/v1/runners/r1").status == 200; })) << again->log();
}

TEST_F(RunnerHealth, ItsCapacity_IsWhatItsWorkersCanTake) {
  fleet_->add("r1", {"--capacity-streams", "100", "--max-workers", "1", "--target-streams-per-shard", "3"});
  Reply shown;
  ASSERT_TRUE(eventually(10s, [&] { return (shown = fleet_->plane().get("/v1/runners/r1")).status == 200; })) << shown.text;
  EXPECT_EQ(shown.body.at("capacity_streams"), 3) << shown.text;
}

}  // namespace
}  // namespace weir::test
