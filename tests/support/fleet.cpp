#include "fleet.hpp"

#include "run.hpp"
#include "stall.hpp"

#include "weir/base/clock.hpp"
#include "weir/base/json.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace weir::test {

namespace fs = std::filesystem;

namespace {

std::vector<std::string> words_of(int pid) {
  std::istringstream all(text_in_file(fmt::format("/proc/{}/cmdline", pid)));
  std::vector<std::string> words;
  for (std::string word; std::getline(all, word, '\0');) words.push_back(word);
  return words;
}

boost::json::array one_recorder(int cameras, const std::string& profile) {
  boost::json::array list;
  for (int n = 1; n <= cameras; ++n) list.push_back({{"name", fmt::format("cam-{}", n)}, {"profile", profile}});
  return {{{"name", "recorder-1"}, {"cameras", std::move(list)}}};
}

std::string database_for(const FleetOptions& options, const std::string& folder) {
  if (!options.database.empty()) return options.database;
  if (!options.postgres) return "sqlite:" + folder + "/weir.db";
  auto server = PostgresServer::shared();
  WEIR_ASSERT(server);
  auto made = (*server)->new_database();
  WEIR_ASSERT(made);
  return *made;
}

}  // namespace

std::string fleet_needs() {
  return part("footage/vtest.avi").empty() || part("lib/libtensorflowlite_c.so").empty()
             ? "footage or model could not be fetched"
             : "";
}

void FleetTest::SetUp() {
  if (!fleet_needs().empty()) GTEST_SKIP() << fleet_needs();
  if (!postgres()) return;
  auto server = PostgresServer::shared();
  SKIP_WITHOUT_POSTGRES(server);
}

std::string store_name(const ::testing::TestParamInfo<const char*>& store) { return store.param; }

void let_last(Duration time) {
  for (Instant end = boot_now() + time; boot_now() < end;) between_looks();
}

// ---- processes ----

std::vector<int> processes_with(const std::string& word) {
  std::vector<int> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    int pid = std::stoi(name);
    if (pid != ::getpid() && std::ranges::count(words_of(pid), word) > 0) found.push_back(pid);
  }
  return found;
}

bool ended(int pid) {
  std::string stat = text_in_file(fmt::format("/proc/{}/stat", pid));
  size_t name = stat.rfind(')');
  return name == std::string::npos || stat.substr(name, 3) == ") Z";
}

void signal_all(const std::vector<int>& pids, int number) {
  for (int pid : pids)
    if (pid > 0) ::kill(pid, number);
}

bool crash_thread(int pid, const std::string& camera) {
  std::error_code gone;
  for (const auto& task : fs::directory_iterator(fmt::format("/proc/{}/task", pid), gone)) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    if (name == camera.substr(0, 15))
      return ::syscall(SYS_tgkill, pid, std::stoi(task.path().filename()), SIGSEGV) == 0;
  }
  return false;
}

Reply get_from(const std::string& url, const std::string& target) {
  boost::asio::io_context io;
  auto client = net::HttpClient::create(io, url);
  if (!client) return {0, nullptr, client.error().message, {}};  // of a runner that did not come up
  net::ClientRequest request;
  request.target = target;
  request.timeout = 1s;
  auto response = run(io, client->send(std::move(request)));
  if (!response) return {0, nullptr, response.error().message, {}};
  Reply reply{response->status, nullptr, response->body, response->headers};
  if (auto parsed = json::parse_text(reply.text)) reply.body = *parsed;
  return reply;
}

// ---- a runner ----

Runner::Runner(std::string program, std::string id, std::string folder, std::vector<std::string> flags,
               std::string api_key)
    : program_(std::move(program)),
      id_(std::move(id)),
      folder_(std::move(folder)),
      api_key_(std::move(api_key)),
      flags_(std::move(flags)) {
  fs::create_directories(folder_);
  start();
}

Runner::~Runner() { kill_everything(); }

void Runner::start() {
  ASSERT_LT(parent_, 0) << "still running";
  std::vector<std::string> words{program_, "runner", "--runner-id", id_, "--state-dir", folder_};
  words.insert(words.end(), flags_.begin(), flags_.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::string log_path = folder_ + "/runner.log";
  int out[2];
  ASSERT_EQ(::pipe2(out, O_CLOEXEC), 0);
  parent_ = ::fork();
  if (parent_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a test that is killed leaves nothing behind
    if (!api_key_.empty()) ::setenv("API_KEY", api_key_.c_str(), 1);
    ::dup2(::open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600), 2);
    ::dup2(::open("/dev/null", O_RDONLY), 0);
    ::dup2(out[1], 1);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  ::close(out[1]);
  std::string line;
  char c = 0;
  while (::read(out[0], &c, 1) == 1 && c != '\n') line += c;
  ::close(out[0]);
  constexpr std::string_view before = "listening on ";
  ASSERT_TRUE(line.starts_with(before)) << line << "\n" << log();
  url_ = line.substr(before.size());
}

int Runner::manager() const {
  for (int pid : processes())
    if (std::ranges::count(words_of(pid), "--manager") > 0 && !ended(pid)) return pid;
  return -1;
}

std::vector<int> Runner::workers() const {
  std::vector<int> found;
  for (int pid : processes())
    if (auto words = words_of(pid); !words.empty() && words[0].ends_with("weir-worker") && !ended(pid))
      found.push_back(pid);
  return found;
}

int Runner::worker_of(const std::string& camera) const {
  boost::json::object all = told();
  boost::json::object mine = this->camera(camera);
  if (!mine.contains("shard_id") || !all.contains("workers")) return -1;
  int found = -1;
  for (const auto& worker : all["workers"].as_array())
    if (worker.at("shard_id") == mine["shard_id"]) found = static_cast<int>(worker.at("pid").to_number<int>());
  return found;
}

boost::json::object Runner::state() const {
  Reply reply = get("/state");
  return reply.body.is_object() ? reply.body.get_object() : boost::json::object{};
}

boost::json::object Runner::told() const {
  boost::json::object all;
  if (parent_ > 0) eventually(5s, [&] { return !(all = state()).empty(); });
  return all;
}

boost::json::object Runner::camera(const std::string& camera) const {
  boost::json::object all = told();
  if (all.contains("cameras"))
    for (const auto& each : all["cameras"].as_array())
      if (each.at("camera_uuid").as_string() == camera) return each.get_object();
  return {};
}

double Runner::number(const std::string& camera, std::string_view field) const {
  boost::json::object found = this->camera(camera);
  const boost::json::value* value = found.if_contains(field);
  return value != nullptr && value->is_number() ? value->to_number<double>() : -1;
}

bool Runner::streams(const std::string& camera) const {
  boost::json::object found = this->camera(camera);
  return !found.empty() && found["phase"] == "running" && found.contains("state") && found["state"] == "STREAMING";
}

std::string Runner::log() const { return text_in_file(folder_ + "/runner.log"); }

void Runner::kill_everything() {
  // The parent first: it would send the will as soon as its manager is dead.
  if (parent_ > 0) ::kill(parent_, SIGKILL);
  std::vector<int> all = processes();
  signal_all(all, SIGKILL);
  if (parent_ > 0) ::waitpid(parent_, nullptr, 0);
  parent_ = -1;
  // One of the processes may just have started another.
  eventually(5s, [&] {
    std::vector<int> left = processes();
    std::erase_if(left, ended);
    signal_all(left, SIGKILL);
    return left.empty();
  });
}

int Runner::wait(Duration limit) {
  int status = 0;
  if (parent_ < 0 || !eventually(limit, [&] { return ::waitpid(parent_, &status, WNOHANG) == parent_; })) return -1;
  parent_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// ---- a fleet ----

RunnerFleet::RunnerFleet(FleetOptions options) : options_(std::move(options)) {
  bool own = !options_.recorders.empty();
  camsim_ =
      std::make_unique<Camsim>(folder_, own ? options_.recorders : one_recorder(options_.cameras, options_.profile));
  plane_ = std::make_unique<WeirProcess>(folder_.path(), database_for(options_, folder_.path()), options_.plane_flags);
  EXPECT_EQ(plane_->post("/v1/tenants", {{"tenant_id", "t1"}}).status, 201);
  Reply site = plane_->post("/v1/sites", {{"site_id", "s1"}, {"tenant_id", "t1"}});
  EXPECT_EQ(site.status, 201) << site.text;
  Reply budget =
      plane_->call(net::Method::put, "/v1/sites/s1/budget",
                   {{"capacity", options_.capacity}, {"refill_rate", options_.refill_per_min}}, plane_->token("admin"));
  EXPECT_EQ(budget.status, 200) << budget.text;
  for (int n = 1; n <= options_.cameras; ++n) register_camera(fmt::format("cam-{}", n));
}

void RunnerFleet::register_camera(const std::string& camera, boost::json::object more) {
  boost::json::object body = options_.camera;
  for (auto& [name, value] : more) body[name] = value;
  body["camera_uuid"] = camera;
  body.emplace("tenant_id", "t1");
  body.emplace("site_id", "s1");
  body["rtsp_url"] = camsim_->url(camera);
  Reply added = plane_->post("/v1/cameras", body);
  EXPECT_EQ(added.status, 201) << added.text;
  if (std::ranges::count(cameras_, camera) == 0) cameras_.push_back(camera);
}

std::unique_ptr<Runner> RunnerFleet::make(const std::string& id, const std::string& folder,
                                          std::vector<std::string> more, std::string url, std::string api_key) const {
  std::vector<std::string> flags{"--control-plane-url", url.empty() ? plane_->url() : url, "--models-dir",
                                 part("models"), "--library-dir", part("lib"), "--log-level", "debug"};
  // Free ports; and other tests and compilers keep this machine busy.
  for (auto [flag, value] : {std::pair("--prom-manager-port", "0"), {"--prom-worker-port", "0"},
                             {"--cpu-high-pct", "100"}, {"--mem-high-pct", "100"}})
    if (std::ranges::count(more, flag) == 0) flags.insert(flags.end(), {flag, value});
  if (api_key.empty()) flags.insert(flags.end(), {"--auth-secret-file", folder_.path() + "/auth.secret"});
  flags.insert(flags.end(), options_.runner_flags.begin(), options_.runner_flags.end());
  flags.insert(flags.end(), more.begin(), more.end());
  return std::make_unique<Runner>(options_.runner_program, id, folder_.path() + "/" + folder, std::move(flags),
                                  std::move(api_key));
}

Runner& RunnerFleet::add(const std::string& id, std::vector<std::string> more, std::string url) {
  runners_[id] = make(id, id, std::move(more), std::move(url));
  return *runners_[id];
}

// A list that could not be had is not an empty one.
boost::json::array RunnerFleet::leases(bool held) {
  Reply all;
  EXPECT_TRUE(eventually(5s, [&] {
    all = plane_->get(fmt::format("/v1/leases?held={}&limit=1000", held));
    return all.status == 200;
  })) << all.text;
  return all.status == 200 ? all.body.at("items").as_array() : boost::json::array();
}

std::string RunnerFleet::owner_of(const std::string& camera) {
  for (const auto& each : leases(true))
    if (each.at("camera_uuid").as_string() == camera) return std::string(each.at("owner_id").as_string());
  return "";
}

std::map<std::string, std::int64_t> RunnerFleet::versions() {
  std::map<std::string, std::int64_t> out;
  for (const auto& each : leases(false))
    out[std::string(each.at("camera_uuid").as_string())] = each.at("version").as_int64();
  return out;
}

std::int64_t RunnerFleet::version_of(const std::string& camera) { return versions()[camera]; }

bool RunnerFleet::all_stream(Duration limit, std::vector<std::string> at) {
  if (at.empty())
    for (const auto& [id, runner] : runners_) at.push_back(id);
  return eventually(limit, [&] {
    Reply leases = plane_->get("/v1/leases?held=true&limit=1000");
    if (leases.status != 200) return false;
    std::map<std::string, std::string> owners;
    for (const auto& each : leases.body.at("items").as_array())
      owners[std::string(each.at("camera_uuid").as_string())] = std::string(each.at("owner_id").as_string());
    std::map<std::string, std::string> streaming;
    for (const std::string& id : at) {
      if (!runners_.contains(id)) continue;
      boost::json::object state = runners_.at(id)->state();
      if (!state.contains("cameras")) continue;
      for (const auto& each : state["cameras"].as_array()) {
        const auto& camera = each.get_object();
        const auto* said = camera.if_contains("state");
        if (said != nullptr && *said == "STREAMING" && camera.at("phase") == "running")
          streaming[std::string(camera.at("camera_uuid").as_string())] = id;
      }
    }
    between_looks();
    return std::ranges::all_of(cameras_, [&](const std::string& camera) {
      return owners.contains(camera) && streaming.contains(camera) && owners[camera] == streaming[camera];
    });
  });
}

std::string RunnerFleet::report() {
  std::string out = "leases: " + plane_->get("/v1/leases?held=false").text + "\n";
  for (const auto& [id, runner] : runners_) {
    std::string log = runner->log();
    out += fmt::format("---- {}: {}\n{}\n", id, json::to_text(runner->state()),
                       log.substr(log.size() - std::min<size_t>(log.size(), 6000)));
  }
  return out;
}

}  // namespace weir::test
