// A worker's life: configuration, readiness, standby, deadlines, drain, and the end of its parent.
#include "shard.hpp"
#include "stall.hpp"
#include "where.hpp"

#include "weir/base/clock.hpp"
#include "weir/base/json.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

namespace weir::test {
namespace {

const std::string kProfile = "fps=10,keyframe_s=1";  // the footage as it is
const boost::json::object kBlind{{"model", {{"detector", "none"}}}};

// A name of the environment that means something else for a while.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* set = std::getenv(name)) before_ = set;
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() { before_ ? ::setenv(name_, before_->c_str(), 1) : ::unsetenv(name_); }
  Variable(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

class WorkerLife : public ::testing::Test {
 protected:
  void SetUp() override {
    if (part("footage/vtest.avi").empty() || part("lib/libtensorflowlite_c.so").empty())
      GTEST_SKIP() << "footage or model could not be fetched";
    camsim_ = std::make_unique<Camsim>(folder_, std::vector<std::string>(4, kProfile));
    plane_ = std::make_unique<WeirProcess>(folder_.path(), "sqlite:" + folder_.path() + "/weir.db");
    plane_->furnish(4);
    manager_ = std::make_unique<Manager>(*plane_, "runner-1");
  }
  boost::json::array sources(int cameras, const boost::json::object& more = {}) {
    boost::json::array all;
    for (int n = 1; n <= cameras; ++n) {
      std::string name = fmt::format("cam-{}", n);
      all.push_back(manager_->source(name, camsim_->url(name), more));
    }
    return all;
  }
  void acquire(int cameras, double ttl_s = 60) {
    for (int n = 1; n <= cameras; ++n) ASSERT_TRUE(manager_->acquire(fmt::format("cam-{}", n), ttl_s));
  }
  void start(boost::json::object config, std::vector<std::string> more = {}) {
    worker_ = std::make_unique<WorkerProcess>(folder_, "worker", std::move(config), std::move(more));
  }
  size_t detections(const std::string& camera = "*") {
    return events_of(*plane_, "detections.t1.s1." + camera).size();
  }
  bool last_status_is(const std::string& camera, const std::string& state) {
    auto all = events_of(*plane_, "stream.status.t1.s1." + camera);
    return !all.empty() && all.back().at("payload").at("state").as_string() == state;
  }

  TempDir folder_;
  std::unique_ptr<Camsim> camsim_;
  std::unique_ptr<WeirProcess> plane_;
  std::unique_ptr<Manager> manager_;
  std::unique_ptr<WorkerProcess> worker_;
};

TEST_F(WorkerLife, Ready_Within15Seconds_AndEventsAsTheSeedsSay) {
  acquire(4);
  Instant began = boot_now();
  start(manager_->config(sources(4)));
  ASSERT_TRUE(eventually(15s, [&] { return worker_->get("/ready").status == 200; })) << worker_->child().log();
  EXPECT_LT(boot_now() - began, 15s);
  ASSERT_TRUE(eventually(20s, [&] { return detections() > 4; })) << worker_->child().log();
  auto seen = events_of(*plane_, "detections.t1.s1.*").back().at("payload").as_object();
  for (const char* field : {"ts", "runner_id", "shard_id", "tenant_id", "site_id", "camera_uuid", "frame_id", "fps",
                            "detections", "latency", "event_id", "lease_version"})
    EXPECT_TRUE(seen.contains(field)) << field;
  EXPECT_EQ(seen["runner_id"].as_string(), "runner-1");
  EXPECT_EQ(seen["lease_version"].as_int64(), manager_->held(std::string(seen["camera_uuid"].as_string())).version);
  ASSERT_TRUE(eventually(15s, [&] {
    for (const auto& event : events_of(*plane_, "stream.status.t1.s1.cam-1"))
      if (event.at("payload").as_object().contains("last_frame_age_s")) return true;
    return false;
  })) << "a summary every five seconds";
  for (const char* sample : {"stream_up{camera_uuid=\"cam-1\"}", "last_frame_age_seconds{camera_uuid=\"cam-1\"}",
                             "stream_fps{camera_uuid=\"cam-1\"}",
                             "pipeline_fps{runner_id=\"runner-1\",shard_id=\"shard-0\"}",
                             "inference_latency_seconds_count{camera_uuid=\"cam-1\"}",
                             "e2e_latency_seconds_count{camera_uuid=\"cam-1\"}"})
    EXPECT_GE(worker_->metric(sample), 0) << sample;
  EXPECT_EQ(worker_->metric("stream_up{camera_uuid=\"cam-1\"}"), 1);
}

// The cameras' threads must not use objects that are destroyed meanwhile.
TEST_F(WorkerLife, WithoutAPort_ItEndsAtOnce_AndNoCameraIsBlamed) {
  int taken = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in last{.sin_family = AF_INET, .sin_port = htons(65535), .sin_addr = {htonl(INADDR_LOOPBACK)}};
  (void)(::bind(taken, reinterpret_cast<sockaddr*>(&last), sizeof last) == 0 && ::listen(taken, 1) == 0);
  boost::json::object config = manager_->config(sources(4, kBlind));
  config["crash_file"] = folder_.path() + "/crash.json";
  std::string file = folder_.path() + "/shard.json";
  std::ofstream(file) << json::to_text(config);
  ::chmod(file.c_str(), 0600);
  std::string command = fmt::format("'{}' shard --config {} --prom-worker-port 65535 --state-dir {} 2>>{}/log", WEIR_WORKER,
                                    file, folder_.path(), folder_.path());
  for (int round = 0; round < 20; ++round) ASSERT_EQ(WEXITSTATUS(std::system(command.c_str())), 40) << round;
  std::ifstream blamed(folder_.path() + "/crash.json");
  EXPECT_EQ(blamed.peek(), std::ifstream::traits_type::eof());
  ::close(taken);
}

TEST_F(WorkerLife, Sigterm_SaysTheLastWord_AndEndsWithinTheGrace) {
  acquire(2);
  start(manager_->config(sources(2)), {"--grace-timeout-s", "10"});
  ASSERT_TRUE(eventually(15s, [&] { return worker_->get("/ready").status == 200; }));
  worker_->child().signal(SIGHUP);  // meant for managers; ends no worker
  Instant began = boot_now();
  worker_->child().signal(SIGTERM);
  EXPECT_EQ(worker_->child().wait(15s), 0) << worker_->child().log();
  EXPECT_LT(boot_now() - began, 10s);
  EXPECT_TRUE(last_status_is("cam-1", "DISCONNECTED"));
  EXPECT_TRUE(last_status_is("cam-2", "DISCONNECTED"));
}

TEST_F(WorkerLife, Drain_AnswersAtOnce_AndEndsCleanly_TerminateEndsAtOnce) {
  acquire(2);
  start(manager_->config(sources(2, kBlind)));
  ASSERT_TRUE(eventually(15s, [&] { return worker_->get("/ready").status == 200; }));
  EXPECT_EQ(worker_->post("/drain", boost::json::object{}).status, 202);
  // A supervisor that stops a group of processes may signal this one at any moment, its last included.
  EXPECT_TRUE(eventually(15s, [&] {
    worker_->child().signal(SIGTERM);
    return !worker_->child().running();
  }));
  EXPECT_EQ(worker_->child().wait(1s), 0);
  for (const char* camera : {"cam-1", "cam-2"}) ASSERT_TRUE(manager_->renew(camera, 60, true));
  start(manager_->config(sources(2, kBlind)));
  ASSERT_TRUE(eventually(15s, [&] { return worker_->get("/ready").status == 200; }));
  Instant began = boot_now();
  EXPECT_EQ(worker_->post("/terminate", boost::json::object{}).status, 202);
  EXPECT_EQ(worker_->child().wait(5s), 0);
  EXPECT_LT(boot_now() - began, 3s);
}

// As where everything below a service is signalled while its runner drains the idle worker: that is done in milliseconds.
TEST_F(WorkerLife, Drain_OfAnIdleOne_IsClean_HoweverManySignalsItGets) {
  for (int round = 0; round < 5; ++round) {
    start(manager_->config({}));
    EXPECT_EQ(worker_->post("/drain", boost::json::object{}).status, 202);
    for (Instant until = boot_now() + 10s; worker_->child().running() && boot_now() < until;)
      worker_->child().signal(SIGTERM);
    EXPECT_EQ(worker_->child().wait(1s), 0) << worker_->child().log();
  }
}

TEST_F(WorkerLife, ItMayOpenAsManyFilesAsTheSystemAllows) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few{.rlim_cur = 256, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  start(manager_->config({}));
  ::setrlimit(RLIMIT_NOFILE, &before);
  rlimit its{};
  ASSERT_EQ(::prlimit(worker_->child().pid(), RLIMIT_NOFILE, nullptr, &its), 0);
  EXPECT_EQ(its.rlim_cur, before.rlim_max);
}

TEST_F(WorkerLife, LibrariesItLoads_ReportToNobody_AndLeaveNoFiles) {
  if (part("lib/libonnxruntime.so.1").empty()) GTEST_SKIP() << "ONNX Runtime could not be fetched";
  // The library sends no telemetry where it is told not to, and where it takes the machine for a build server.
  for (const char* name : {"ORT_DISABLE_TELEMETRY", "CI", "TF_BUILD", "GITHUB_ACTIONS", "GITLAB_CI"}) ::unsetenv(name);
  const std::string home = folder_.path() + "/home";
  std::filesystem::create_directory(home);
  acquire(1);
  {
    Variable home_folder("HOME", home), cache_folder("XDG_CACHE_HOME", home);
    start(manager_->config(sources(1)));
  }
  ASSERT_TRUE(eventually(30s, [&] { return detections() > 0; })) << worker_->child().log();
  ASSERT_NE(worker_->child().log().find("ONNX Runtime"), std::string::npos) << worker_->child().log();
  for (const auto& left : std::filesystem::recursive_directory_iterator(home)) ADD_FAILURE() << left.path();
}

TEST_F(WorkerLife, PassedDeadline_StopsEmission_AndItsAnswerLetsTheSpoolFollowInOrder) {
  acquire(1, 3);
  start(manager_->config(sources(1)));
  ASSERT_TRUE(eventually(20s, [&] { return worker_->state().at("spooled").as_int64() > 5; })) << worker_->child().log();
  size_t heard = detections();
  std::int64_t spooled = worker_->state().at("spooled").as_int64();
  ASSERT_TRUE(eventually(10s, [&] { return worker_->state().at("spooled").as_int64() > spooled + 5; }));
  EXPECT_EQ(detections(), heard) << "nothing is said past the deadline";
  EXPECT_EQ(worker_->state_of("cam-1"), "STREAMING") << "but it goes on looking";

  ASSERT_TRUE(manager_->renew("cam-1")) << "expired, but nobody took it";
  EXPECT_EQ(worker_->post("/leases", {{"items", boost::json::array{manager_->lease("cam-1")}}}).status, 200);
  ASSERT_TRUE(eventually(15s, [&] { return detections() > heard + 10; }));
  std::string last;
  for (const auto& event : events_of(*plane_, "detections.t1.s1.cam-1")) {
    std::string ts(event.at("payload").at("ts").as_string());
    EXPECT_LE(last, ts) << "in the order of time, spooled ones first";
    last = ts;
  }
}

TEST_F(WorkerLife, Standby_IsReadyAndSilent_UntilItIsActivated) {
  boost::json::object config = manager_->config(sources(2));
  config["standby"] = true;
  start(config);
  ASSERT_TRUE(eventually(15s, [&] { return worker_->get("/ready").status == 200; }));
  ASSERT_TRUE(eventually(15s, [&] { return worker_->number("cam-1", "inferred") > 3; }));
  EXPECT_EQ(events_of(*plane_, "detections.%23").size() + events_of(*plane_, "stream.%23").size(), 0u);
  acquire(2);
  boost::json::array leases;
  for (const char* camera : {"cam-1", "cam-2"}) {
    leases.push_back(manager_->lease(camera));
    leases.back().as_object()["after"] = to_iso(wall_now());
  }
  std::string cutover = to_iso(wall_now());
  EXPECT_EQ(worker_->post("/activate", {{"items", leases}}).status, 200);
  ASSERT_TRUE(eventually(15s, [&] { return detections() > 2; }));
  for (const auto& event : events_of(*plane_, "detections.t1.s1.*"))
    EXPECT_GT(std::string(event.at("payload").at("ts").as_string()), cutover.substr(0, 19));
}

TEST_F(WorkerLife, Endpoints_WantTheBootsToken_AndALocalName) {
  acquire(1);
  start(manager_->config(sources(1, kBlind)));
  Child& child = worker_->child();
  EXPECT_EQ(child.get("/metrics").status, 200);
  EXPECT_EQ(worker_->get("/healthz").status, 200);
  for (const char* path : {"/healthz", "/ready", "/state", "/snapshot/cam-1.jpg"}) EXPECT_EQ(child.get(path).status, 401) << path;
  for (const char* path : {"/drain", "/terminate", "/leases", "/sources", "/activate"}) {
    EXPECT_EQ(child.post(path, boost::json::object{}).status, 401) << path;
    EXPECT_EQ(child.post(path, boost::json::object{}, Secret("wrong-token-wrong-token")).status, 401) << path;
  }
  ASSERT_TRUE(eventually(15s, [&] { return worker_->get("/snapshot/cam-1.jpg").status == 200; }));
  Reply picture = worker_->get("/snapshot/cam-1.jpg");
  EXPECT_EQ(picture.headers["content-type"], "image/jpeg");
  EXPECT_EQ(picture.text.substr(0, 3), "\xFF\xD8\xFF");
  EXPECT_EQ(worker_->get("/snapshot/cam-9.jpg").status, 404);
  EXPECT_EQ(worker_->post("/sources", {{"add", {{{"camera_uuid", "x"}}}}}).status, 400);
}

TEST_F(WorkerLife, WrongConfiguration_IsRefusedBeforeAnythingConnects) {
  boost::json::object config = manager_->config(sources(1));
  config["sources"].as_array()[0].as_object()["max_fps"] = -1;
  std::string log = folder_.path() + "/refused.log", file = folder_.path() + "/shard.json";
  std::ofstream(file) << boost::json::serialize(config);
  int code = std::system(fmt::format("'{}' shard --config {} 2>{}", WEIR_WORKER, file, log).c_str());
  EXPECT_EQ(WEXITSTATUS(code), 10);
  std::string said = text_in_file(log);
  EXPECT_NE(said.find("sources[0].max_fps"), std::string::npos) << said;
  EXPECT_EQ(camsim_->dials().at("dials").as_array().size(), 0u);
}

TEST_F(WorkerLife, ParentGone_EndsTheWorkerWith70) {
  acquire(1);
  pid_t parent = ::fork();
  if (parent == 0) {
    ::pause();
    ::_exit(0);
  }
  start(manager_->config(sources(1, kBlind)), {"--manager-pid", std::to_string(parent)});
  EXPECT_TRUE(worker_->child().running());
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  EXPECT_EQ(worker_->child().wait(10s), 70);
}

TEST_F(WorkerLife, CrashedThread_NamesTheCameraItServed) {
  acquire(1);
  boost::json::object config = manager_->config(sources(1, kBlind));
  std::string record = folder_.path() + "/crash.json";
  config["crash_file"] = record;
  start(config);
  ASSERT_TRUE(eventually(15s, [&] { return worker_->state_of("cam-1") == "STREAMING"; }));
  // The camera's thread is the one that reads from the camera; a fault in it is a fault of that camera.
  std::string thread;
  for (const auto& task : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", worker_->child().pid()))) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    if (name == "cam-1") thread = task.path().filename().string();
  }
  ASSERT_FALSE(thread.empty());
  ::syscall(SYS_tgkill, worker_->child().pid(), std::stoi(thread), SIGSEGV);
  EXPECT_EQ(worker_->child().wait(10s), 128 + SIGSEGV);
  std::string line = text_in_file(record);
  EXPECT_NE(line.find("\"camera_uuid\":\"cam-1\""), std::string::npos) << line;
}

// ---- exit codes: by them a parent decides whether another try is worth it ----
int exit_of(const std::string& command) {
  int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(WorkerExit, EveryFailureAtTheStart_HasTheContractsCode) {
  TempDir folder;
  std::string log = folder.path() + "/said.log", file = folder.path() + "/shard.json", state = folder.path() + "/state";
  std::ofstream(file) << R"({"runner_id": "r", "sources": []})";
  pid_t dead = ::fork();
  if (dead == 0) ::_exit(0);
  ::waitpid(dead, nullptr, 0);
  struct Row {
    std::string words;
    int code;
    std::string said;
  };
  std::string good = fmt::format("shard --print --config {} --state-dir {}", file, state);
  for (const Row& row : std::vector<Row>{
           {"shard --help", 0, ""},
           {"shard", 10, "--config"},
           {"shard --nope", 10, "--nope"},
           {"shard --config " + folder.path() + "/absent.json", 10, "absent.json"},
           {"shard --config-json '{'", 10, "JSON"},
           {"shard --config " + file, 10, "cp.base_url"},
           {"shard --config-json '" R"({"runner_id":"r","sources":[],"cp":{"base_url":"ftp://example"}})" "'", 10, "http"},
           {good + " --grace-timeout-s soon", 10, "grace_timeout_s"},
           {good + " --manager-pid many", 10, "--manager-pid"},
           {good + " --lifeline-fd 77", 10, "--lifeline-fd"},
           {good + fmt::format(" --manager-pid {}", dead), 70, fmt::format("process {}, is gone", dead)},
           {fmt::format("shard --print --config {0} --state-dir {0}/x", file), 40, "shard.json/x"},
           {good + " --settings " + folder.path() + "/absent.yaml", 10, "absent.yaml"},
           {"probe rtsp://x/ --nope", 2, "--nope"}}) {
    std::string command = fmt::format("timeout 20 '{}' {} >{} 2>&1 </dev/null", WEIR_WORKER, row.words, log);
    EXPECT_EQ(exit_of(command), row.code) << row.words;
    std::string said = text_in_file(log);
    EXPECT_NE(said.find(row.said), std::string::npos) << row.words << ": " << said;
  }
}

// Standard output that nobody reads holds the publisher's thread for ever.
TEST(WorkerExit, DrainThatHangs_EndsWithTheGrace_AndIsNoCleanEnd) {
  if (part("footage/vtest.avi").empty()) GTEST_SKIP() << "the footage could not be fetched";
  TempDir folder;
  boost::json::object source{{"camera_uuid", "cam-1"}, {"tenant_id", "t"}, {"site_id", "s"},
                             {"url", "file://" + part("footage/vtest.avi")}, {"model", {{"detector", "none"}}}};
  std::string file = folder.path() + "/shard.json", log = folder.path() + "/log";
  std::ofstream(file) << boost::json::serialize(
      boost::json::object{{"runner_id", "r"}, {"sources", boost::json::array{source}}});
  std::string fifo = folder.path() + "/full";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  int full = ::open(fifo.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(full, 0);
  std::string block(4096, '\n');
  while (::write(full, block.data(), block.size()) > 0) continue;
  pid_t worker = ::fork();
  if (worker == 0) {
    ::dup2(::open(fifo.c_str(), O_WRONLY), 1);
    ::dup2(::open(log.c_str(), O_WRONLY | O_CREAT, 0600), 2);
    std::string state = folder.path() + "/state";
    ::execl(WEIR_WORKER, WEIR_WORKER, "shard", "--print", "--config", file.c_str(), "--state-dir", state.c_str(),
            "--prom-worker-port", "0", "--grace-timeout-s", "1", nullptr);
    ::_exit(99);
  }
  auto said = [&] { return text_in_file(log); };
  EXPECT_TRUE(eventually(20s, [&] { return said().find("STREAMING") != std::string::npos; })) << said();
  ::kill(worker, SIGTERM);
  int status = 0;
  bool ended = eventually(10s, [&] { return ::waitpid(worker, &status, WNOHANG) == worker; });
  if (!ended) ::kill(worker, SIGKILL);
  EXPECT_TRUE(ended) << said();
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 50) << said();
  EXPECT_NE(said().find("longer than its grace"), std::string::npos) << said();
  ::close(full);
}

}  // namespace
}  // namespace weir::test
