// For the manager's tests: a control plane, a bus, a disk and workers that do what the test says, in virtual time.
// One thread.
#pragma once

#include "weir/runner/manager.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include <gtest/gtest.h>

#include <algorithm>

namespace weir::runner {

namespace asio = boost::asio;

// A worker process as the test wants it to be.
struct FakeWorker {
  int pid = 0;
  link::ShardConfig shard;
  std::map<CameraId, std::optional<link::LeaseGrant>> cameras = {};
  std::vector<link::Message> told = {};
  std::optional<std::string> says = {};     // instead of a look
  std::optional<std::string> answers = {};  // to what it is told
  bool starts = true;                       // else its first line is nonsense
  bool silent = false;                      // it does not answer
  int pages_read = 0;
  std::optional<int> exit_code = {};

  template <class M>
  int heard() const {
    return static_cast<int>(std::ranges::count_if(told, [](const auto& m) { return std::holds_alternative<M>(m); }));
  }
};

class FakeLink final : public WorkerLink {
 public:
  FakeLink(Clock& clock, std::shared_ptr<FakeWorker> worker) : clock_(clock), worker_(std::move(worker)) {}
  int pid() const override { return worker_->pid; }
  // The worker goes on using processor time.
  Duration cpu_time() const override { return clock_.now().time_since_epoch(); }
  void kill() override { worker_->exit_code = 137; }
  asio::awaitable<int> wait() override {
    while (!worker_->exit_code) co_await clock_.wait(10ms);
    co_return *worker_->exit_code;
  }
  Async<Nothing> ready() override {
    co_await clock_.wait(50ms);
    if (!worker_->starts) co_return Error{Errc::unavailable, "worker", "the worker did not name its address"};
    co_return ok();
  }
  Async<link::Look> look() override {
    CO_TRY(said, co_await reply(link::write_look(seen()), worker_->says));
    CO_TRY(parsed, json::parse_text(said));
    co_return link::read_look(parsed);
  }
  Async<std::vector<link::LastWord>> tell(link::Message message) override {
    std::vector<link::LastWord> said;
    if (!worker_->silent) said = obey(message);
    CO_TRY(answer, co_await reply(link::write_answer(message, said), worker_->answers));
    co_return link::read_answer(message, answer);
  }
  Async<WorkerPage> page(std::string path) override {
    ++worker_->pages_read;
    std::string body = std::move(path);
    if (body == link::kStateRoute) body = R"({"published":3,"delivering":1,"pipeline_fps":5,"cameras":[]})";
    CO_TRY(answer, co_await reply(json::value(), std::move(body)));
    co_return WorkerPage{200, answer};
  }

 private:
  Async<std::string> reply(json::value usual, std::optional<std::string> instead) {
    co_await clock_.wait(worker_->silent ? Duration(1s) : Duration(1ms));
    if (worker_->silent || worker_->exit_code) co_return Error{Errc::unavailable, "worker", "no answer"};
    co_return instead ? *instead : json::to_text(usual);
  }
  link::Look seen() const {
    link::Look out{.protocol = link::kProtocol};
    for (const auto& [id, lease] : worker_->cameras)
      out.cameras.push_back({.camera = id, .streaming = true, .inferred = 1, .frame_age = 100ms});
    return out;
  }
  std::vector<link::LastWord> obey(const link::Message& message) {
    std::vector<link::LastWord> said;
    worker_->told.push_back(message);
    if (const auto* change = std::get_if<link::ChangeSources>(&message)) {
      for (const link::Source& each : change->add) worker_->cameras[each.config.camera] = each.lease;
      for (const CameraId& each : change->remove) {
        worker_->cameras.erase(each);
        said.push_back({each, clock_.wall()});
      }
    }
    if (const auto* silence = std::get_if<link::Silence>(&message))
      for (const CameraId& each : silence->cameras) said.push_back({each, clock_.wall()});
    if (std::holds_alternative<link::Drain>(message)) worker_->exit_code = 0;
    return said;
  }
  Clock& clock_;
  const std::shared_ptr<FakeWorker> worker_;
};

class FakeHost final : public WorkerHost {
 public:
  explicit FakeHost(Clock& clock) : clock_(clock) {}
  Result<std::unique_ptr<WorkerLink>> start(const link::ShardConfig& shard) override {
    auto made = std::make_shared<FakeWorker>();
    made->pid = 100 + static_cast<int>(all.size());
    made->shard = shard;
    made->starts = start_well;
    for (const link::Source& each : shard.sources) made->cameras[each.config.camera] = each.lease;
    all.push_back(made);
    return std::unique_ptr<WorkerLink>(new FakeLink(clock_, made));
  }
  std::vector<std::shared_ptr<FakeWorker>> all;
  bool start_well = true;

 private:
  Clock& clock_;
};

// Grants every camera to each runner that asks.
class FakePlane final : public ControlPlane {
 public:
  explicit FakePlane(Clock& clock) : clock_(clock) {}
  Async<Registration> register_runner(Runner runner) override {
    CO_TRY(there, co_await answered());
    boots.push_back(runner.boot.str());
    if (boots.size() <= known_boots) co_return Error{Errc::conflict, "boot_known", "known"};
    co_return Registration{.flags = flags, .will = Secret("will")};
  }
  Async<RunnerFlags> heartbeat(RunnerId, json::object body) override {
    CO_TRY(there, co_await answered());
    beats.push_back(std::move(body));
    if (forgotten) co_return Error{Errc::not_found, "runner_not_found", "who?"};
    co_return flags;
  }
  Async<DesiredCameras> desired(DesiredFilter) override {
    CO_TRY(there, co_await answered());
    co_return DesiredCameras{cameras};
  }
  Async<std::vector<Holding>> held() override { co_return std::vector<Holding>(); }
  Async<std::vector<lease::LeaseRow>> leases() override {
    CO_TRY(there, co_await answered());
    co_return rows;
  }
  Async<std::vector<lease::Answer>> apply(lease::Batch batch) override {
    CO_TRY(there, co_await answered());
    std::vector<lease::Answer> out;
    for (const lease::Ask& ask : batch.asks) out.push_back(answer(batch, ask));
    co_return out;
  }
  Async<BudgetAnswer> consume(SiteId, BudgetUse) override { co_return BudgetAnswer{.granted = true}; }
  Async<double> budget(SiteId) override { co_return 4.0; }
  Async<LentToken> worker_token(BootId) override {
    CO_TRY(there, co_await answered());
    co_return LentToken{Secret("bus-token"), 1h};
  }
  Async<Secret> runner_token() override { co_return Secret("own-token"); }
  Async<Nothing> report_crash(CameraId camera, lease::Owner) override {
    crashed.push_back(camera);
    co_return ok();
  }
  Async<Nothing> send_picture(CameraId, RunnerId, SnapshotPicture picture) override {
    pictures.push_back(std::move(picture));
    co_return ok();
  }

  bool away = false, forgotten = false;
  size_t known_boots = 0;  // registrations that are answered so first
  RunnerFlags flags = {};
  std::vector<DesiredCamera> cameras;
  std::vector<lease::LeaseRow> rows;
  std::vector<std::string> boots;
  std::vector<json::object> beats;
  std::vector<CameraId> crashed;
  std::vector<SnapshotPicture> pictures;

 private:
  Async<Nothing> answered() {
    co_await clock_.wait(2ms);
    if (away) co_return Error{Errc::unavailable, "unavailable", "nobody there"};
    co_return ok();
  }
  lease::Answer answer(const lease::Batch& batch, const lease::Ask& ask) {
    lease::Version& grant = grants_[ask.subject];
    lease::Answer out{.subject = ask.subject, .version = ask.version.value_or(lease::Version{}), .ttl = batch.ttl};
    if (batch.operation == lease::Operation::release) out.outcome = lease::Outcome::released;
    if (batch.operation == lease::Operation::renew)
      out.outcome = ask.rotate ? lease::Outcome::rotated : lease::Outcome::renewed;
    if (batch.operation == lease::Operation::acquire) out.outcome = lease::Outcome::granted;
    if (ask.rotate || batch.operation == lease::Operation::acquire) out.version = {++versions_};
    if (batch.operation == lease::Operation::acquire) grant = out.version;
    out.grant = grant;
    return out;
  }
  Clock& clock_;
  std::int64_t versions_ = 0;
  std::map<CameraId, lease::Version> grants_;
};

class FakeBus final : public EventBus {
 public:
  explicit FakeBus(Clock& clock) : clock_(clock) {}
  asio::awaitable<Result<std::vector<Confirmation>>> publish(std::vector<event::Event> events) override {
    published += events.size();
    co_return std::vector<Confirmation>(events.size(), Confirmation::accepted);
  }
  asio::awaitable<Status> subscribe(Subscription wanted, std::function<bool(const DeliveredEvent&)> each) override {
    listeners[wanted.pattern] = std::move(each);
    co_await clock_.wait(1h);
    co_return Error{Errc::unavailable, "bus", "over"};
  }
  void say(const std::string& pattern, const std::string& key, const json::object& payload) {
    DeliveredEvent event;
    event.cursor = "1";
    event.topic = "t";
    event.routing_key = key;
    event.payload = json::to_text(payload);
    listeners.at(pattern)(event);
  }
  size_t published = 0;
  std::map<std::string, std::function<bool(const DeliveredEvent&)>> listeners;

 private:
  Clock& clock_;
};

class FakeRunnerDisk final : public RunnerDisk {
 public:
  asio::awaitable<CameraId> culprit(std::string) override { co_return std::exchange(blamed, CameraId()); }
  bool keep_cameras(std::string list) override {
    kept = std::move(list);
    return true;
  }
  std::string kept_cameras() override { return kept; }
  asio::awaitable<std::vector<SpoolContent>> spools() override { co_return left; }
  asio::awaitable<std::uint64_t> drop(SpoolContent what) override {
    dropped.push_back(what.camera);
    std::erase_if(left, [&](const SpoolContent& each) { return each.camera == what.camera; });
    co_return 1;
  }
  CameraId blamed;
  std::string kept;
  std::vector<SpoolContent> left;
  std::vector<CameraId> dropped;
};

class ManagerTest : public ::testing::Test {
 protected:
  // Cameras "a", "b" …, one worker for each.
  void begin(int cameras) {
    for (int n = 0; n < cameras; ++n) want(std::string(1, static_cast<char>('a' + n)));
    ManagerSettings settings;
    settings.self = {.id = RunnerId::trusted("r"), .boot = BootId::trusted("boot-1")};
    settings.policy.shard_size = 1;
    settings.policy.workers_max = 8;
    settings.policy.spare = false;
    settings.folder = "/folder";
    settings.usage = [](const std::vector<int>&) { return Usage{}; };
    settings.on_will = [this](const BootId& boot, const Secret&) { wills_.push_back(boot.str()); };
    settings.use_bus_token = [](const Secret&) {};
    settings.control_plane_url = "http://plane:1";
    settings.draw = [] { return 0.5; };
    manager_.emplace(io_, ManagerPorts{clock_, plane_, bus_, host_, disk_}, metrics_, settings);
    asio::co_spawn(io_, manager_->run(), [this](const std::exception_ptr&, int code) { code_ = code; });
  }
  void want(const std::string& name) {
    DesiredCamera camera;
    camera.config.camera = CameraId::trusted(name);
    camera.config.site = SiteId::trusted("s");
    camera.config.rtsp_url = Secret("rtsp://h/" + name);
    camera.version = "v1";
    plane_.cameras.push_back(std::move(camera));
  }
  void pass(Duration d) { clock_.run(clock_.now() + d); }
  bool within(Duration limit, const std::function<bool()>& done) {
    for (Instant until = clock_.now() + limit; !done(); pass(10ms))
      if (clock_.now() >= until) return false;
    return true;
  }
  // What the manager says of itself when somebody asks now.
  json::object state() {
    std::optional<json::object> said;
    asio::co_spawn(io_, manager_->state(), [&](const std::exception_ptr&, json::object all) { said = std::move(all); });
    EXPECT_TRUE(within(1s, [&] { return said.has_value(); }));
    return said.value_or(json::object());
  }
  // The living worker that has the camera with the right to speak; null where none has.
  std::shared_ptr<FakeWorker> speaker(const std::string& name) {
    std::shared_ptr<FakeWorker> found;
    for (const auto& each : host_.all) {
      auto camera = each->cameras.find(CameraId::trusted(name));
      if (!each->exit_code && camera != each->cameras.end() && camera->second) found = each;
    }
    return found;
  }

  asio::io_context io_{1};
  VirtualClock clock_{io_};
  FakePlane plane_{clock_};
  FakeBus bus_{clock_};
  FakeHost host_{clock_};
  FakeRunnerDisk disk_;
  net::Metrics metrics_;
  std::vector<std::string> wills_;
  std::optional<Manager> manager_;
  std::optional<int> code_;
};

}  // namespace weir::runner
