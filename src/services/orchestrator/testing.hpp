// For the orchestrator's tests: a plane on the fake store, processes and a MediaMTX that do what the test says, in
// virtual time. One thread.
#pragma once

#include "fake_store.hpp"

#include "weir/base/spawn.hpp"
#include "weir/orchestrator/orchestrator.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace weir::orchestrator {

namespace asio = boost::asio;

// A child process as the test wants it to be. It outlives the orchestrator that started it.
struct FakeProcess {
  KeptSpec spec;
  std::int64_t version = 0;
  Term term = {};
  std::optional<std::optional<int>> end = {};
  std::string control = {};
  bool stop_ends = true;  // whether it heeds an order to stop
  int stops = 0, kills = 0;
  bool alive() const { return !end; }
};

class FakeKept final : public Kept {
 public:
  static inline Duration extension_takes{};
  FakeKept(Clock& clock, std::shared_ptr<FakeProcess> process) : clock_(clock), process_(std::move(process)) {}
  const std::string& name() const override { return process_->spec.name; }
  const std::string& note() const override { return process_->spec.note; }
  std::int64_t version() const override { return process_->version; }
  Instant ends_at() const override { return process_->term.keep_until; }
  const std::string& control() const override { return process_->control; }
  bool running() const override { return process_->alive(); }
  asio::awaitable<Status> extend(std::int64_t version, Term term) override {
    if (extension_takes > 0s) co_await clock_.wait(extension_takes);
    if (version < process_->version) co_return Error{Errc::conflict, "stale_version", "a higher one was used"};
    process_->version = version;
    process_->term = term;
    co_return ok();
  }
  void stop() override {
    ++process_->stops;
    if (process_->stop_ends && process_->alive()) process_->end = 0;
  }
  void kill() override {
    ++process_->kills;
    if (process_->alive()) process_->end = 137;
  }
  asio::awaitable<std::optional<int>> wait() override {
    auto process = process_;
    Clock& clock = clock_;
    while (process->alive()) co_await clock.wait(10ms);
    co_return *process->end;
  }

 private:
  Clock& clock_;
  std::shared_ptr<FakeProcess> process_;
};

class FakeHost final : public KeptHost {
 public:
  explicit FakeHost(Clock& clock) : clock_(clock) {}
  asio::awaitable<Result<std::unique_ptr<Kept>>> start(KeptSpec spec) override {
    if (start_takes > 0s) co_await clock_.wait(start_takes);
    for (const auto& each : all)
      if (each->spec.name == spec.name && each->alive())
        co_return Error{Errc::conflict, "kept_alive", "an earlier process of that name lives"};
    all.push_back(std::make_shared<FakeProcess>(FakeProcess{spec, spec.version, {spec.valid_until, spec.valid_until}}));
    co_return std::unique_ptr<Kept>(new FakeKept(clock_, all.back()));
  }
  std::vector<std::unique_ptr<Kept>> adopt() override {
    std::vector<std::unique_ptr<Kept>> found;
    for (const auto& each : all)
      if (each->alive()) found.push_back(std::make_unique<FakeKept>(clock_, each));
    return found;
  }
  std::vector<std::shared_ptr<FakeProcess>> named(std::string_view name) const {
    std::vector<std::shared_ptr<FakeProcess>> out;
    for (const auto& each : all)
      if (each->spec.name == name) out.push_back(each);
    return out;
  }
  std::shared_ptr<FakeProcess> living(std::string_view name) const {
    for (const auto& each : all)
      if (each->spec.name == name && each->alive()) return each;
    return nullptr;
  }
  std::vector<std::shared_ptr<FakeProcess>> all;
  Duration start_takes{};

 private:
  Clock& clock_;
};

class FakeMedia final : public MediaServer {
 public:
  Async<std::vector<MediaPath>> list(std::function<bool(std::string_view)> wanted) override {
    if (!up) co_return Error{Errc::unavailable, "away", "MediaMTX does not answer"};
    std::vector<MediaPath> out;
    for (const auto& [name, path] : paths)
      if (wanted(name) && !left_out.contains(name)) out.push_back(path);
    co_return out;
  }
  Async<std::optional<MediaPath>> find(std::string name) override {
    if (!up) co_return Error{Errc::unavailable, "away", "MediaMTX does not answer"};
    auto at = paths.find(name);
    co_return at == paths.end() ? std::nullopt : std::optional(at->second);
  }
  Async<Nothing> kick(MediaClient) override { co_return ok(); }
  void publish(const std::string& name, const std::string& source) {
    paths[name] = {.name = name, .ready = true, .source_type = "rtspSession", .source_id = source};
  }
  std::map<std::string, MediaPath> paths;
  std::set<std::string> left_out;  // of lists, as of one that is told in pages
  bool up = true;
};

class FakePlane final : public StreamPlane {
 public:
  FakePlane(test::FakeStore& store, Clock& clock) : store_(store), clock_(clock) {}
  Async<std::vector<lease::Answer>> apply(lease::Batch batch) override {
    if (!up) co_return away();
    co_return co_await store_.apply(std::move(batch));
  }
  Async<StreamRecord> record(SubjectId id) override {
    if (!up) co_return away();
    co_return co_await store_.show_stream(std::move(id), {});
  }
  Async<std::vector<StreamRecord>> records() override {
    if (!up) co_return away();
    co_return co_await store_.list_streams({}, {}, 1000);
  }
  Async<Nothing> tell(StreamTold told) override {
    if (!up) co_return away();
    ++tells;
    co_return co_await store_.tell_stream(std::move(told));
  }
  Async<Nothing> publish(event::Event event) override {
    if (!up) co_return away();
    CO_TRY(shown, co_await store_.show(event.stamp->camera, {}));
    if (shown.row.released || shown.row.version != event.stamp->version)
      co_return Error{Errc::conflict, "stale", "the lease has another version"};
    published.push_back(std::move(event));
    co_return ok();
  }
  // The states that were published of a stream, in order.
  std::string states_of(const std::string& stream) const {
    std::string out;
    for (const event::Event& each : published)
      if (each.routing_key.ends_with("." + stream)) out += each.routing_key.substr(12, each.routing_key.find('.', 12) - 11);
    return out;
  }
  asio::awaitable<Status> follow(std::function<void(const StreamOrder&)> each) override {
    while (up) {
      for (const StreamOrder& order : std::exchange(orders, {})) each(order);
      co_await clock_.wait(50ms);
    }
    co_return away();
  }
  std::vector<StreamOrder> orders;
  std::vector<event::Event> published;
  int tells = 0;
  bool up = true;

 private:
  static Error away() { return {Errc::unavailable, "away", "the control plane does not answer"}; }
  test::FakeStore& store_;
  Clock& clock_;
};

class OrchestratorTest : public ::testing::Test {
 protected:
  OrchestratorTest() { spawn(io_.get_executor(), tick(), "the store's time"); }
  ~OrchestratorTest() override {
    ticking_ = false;
    for (auto& each : all_)
      if (each) each->stop();
    for (FakeHost* host : {&host_, &other_host_})
      for (const auto& each : host->all)
        if (each->alive()) each->end = 0;
    pass(2s);
  }

  // Under another id it is another orchestrator, on a host of its own.
  Orchestrator& start(const std::string& id = "orc", const std::string& boot = "b1") {
    OrchestratorSettings settings;
    settings.owner = {RunnerId::trusted(id), BootId::trusted(boot)};
    settings.home = {TenantId::trusted("t1"), SiteId::trusted("s1")};
    settings.programs = {.worker = "/opt/weir-worker", .forwarder = "/opt/weir-egress",
                         .rtsp_base = Secret("rtsp://127.0.0.1:8554"), .folder = "/tmp/x",
                         .worker_settings = {{"stream_owner", id}}};
    settings.file = file_;
    all_.push_back(std::make_unique<Orchestrator>(io_, OrchestratorPorts{plane_, id == "orc" ? host_ : other_host_, media_, clock_}, metrics_,
                                                  settings));
    spawn(io_.get_executor(), all_.back()->run(), "the orchestrator");
    pass(100ms);
    return *all_.back();
  }
  void pass(Duration time) { clock_.run(clock_.now() + time); }
  // What the store answers now.
  template <class T>
  Result<T> ask(Async<T> question) {
    std::optional<Result<T>> answer;
    spawn(io_.get_executor(), [](Async<T> asked, std::optional<Result<T>>& out) -> asio::awaitable<void> {
      out.emplace(co_await std::move(asked));
    }(std::move(question), answer), "a question to the store");
    pass(1ms);
    return *std::move(answer);
  }
  // In virtual time.
  bool within(Duration limit, const std::function<bool()>& condition) {
    for (Instant until = clock_.now() + limit; clock_.now() < until; pass(50ms))
      if (condition()) return true;
    return condition();
  }
  void publish(const std::string& stream, const std::string& source) {
    media_.publish("live/" + stream + "/in", source);
  }
  static stream::Hook hook(const std::string& stream, const std::string& source) {
    return {stream::StreamId::trusted(stream), {"rtspSession", source, {}}};
  }
  // As MediaMTX does when the worker publishes.
  void worker_publishes(const std::string& stream) { media_.publish("live/" + stream + "/out", "worker"); }
  std::string state_of(const Orchestrator& orchestrator, const std::string& stream) {
    boost::json::object view = orchestrator.view(stream::StreamId::trusted(stream));
    return view.empty() ? "" : std::string(view.at("state").as_string());
  }
  asio::awaitable<void> tick() {
    while (ticking_) {
      (void)co_await store_.tick();
      co_await clock_.wait(250ms);
    }
  }

  asio::io_context io_;
  VirtualClock clock_{io_};
  test::FakeStore store_{[this] { return clock_.wall(); }};
  FakePlane plane_{store_, clock_};
  FakeHost host_{clock_}, other_host_{clock_};
  FakeMedia media_;
  net::Metrics metrics_;
  std::map<stream::StreamId, stream::Wishes> file_;
  std::vector<std::unique_ptr<Orchestrator>> all_;
  bool ticking_ = true;
};

}  // namespace weir::orchestrator
