#include "weir/runner/manager.hpp"

#include "manager_feeds.hpp"
#include "manager_report.hpp"
#include "manager_spools.hpp"

#include "weir/base/log.hpp"

#include <boost/asio/co_spawn.hpp>

namespace weir::runner {

namespace asio = boost::asio;

namespace {

constexpr size_t kHappenedMax = 10;

std::uint64_t seed_of(const ManagerSettings& settings) { return static_cast<std::uint64_t>(settings.draw() * 0x1p53); }

// Notes for a person who looks now: the screen of `weir up` shows these above its table.
bool worth_showing(const Note& note) {
  return note.warning || note.event.starts_with("rollout.") || note.event.starts_with("runner.");
}

}  // namespace

Shell::Shell(asio::io_context& loop, ManagerPorts reached, net::Metrics& counters, ManagerSettings given)
    : io(loop),
      ports(reached),
      metrics(counters),
      settings(std::move(given)),
      owner{settings.self.id, settings.self.boot},
      brain(settings.policy, owner.boot, owner.runner, seed_of(settings)),
      brain_changed(io, ports.clock),
      ended(io, ports.clock) {}

void Shell::feed(const Event& event) {
  if (over()) return;
  for (Action& action : brain.handle(event, {ports.clock.now(), ports.clock.wall()})) perform(std::move(action));
  brain_changed.ring();
}

void Shell::spawn(asio::awaitable<void> work, std::string_view what) {
  asio::co_spawn(io, std::move(work), [this, what](const std::exception_ptr& failed) {
    if (!failed) return;
    try {
      std::rethrow_exception(failed);
    } catch (const std::exception& e) {
      log::error("runner.broken", fmt::format("{}: {}", what, e.what()));
    }
    end(50);
  });
}

void Shell::end(int with) {
  code = with;
  ended.ring();
}

void Shell::begin_anew(BootId boot) {
  owner.boot = std::move(boot);
  brain = Brain(brain.policy(), owner.boot, owner.runner, seed_of(settings));
  if (stop_by) feed(StopAsked{*stop_by});
}

// The brain's actions, each to the part that performs it.
struct Manager::Parts {
  Parts(asio::io_context& io, ManagerPorts ports, net::Metrics& metrics, ManagerSettings settings);

  void perform(Action action);
  asio::awaitable<void> ask_leases(AskLeases ask);
  asio::awaitable<void> ask_token(AskToken ask);
  asio::awaitable<void> ask_budget(SiteId site);
  asio::awaitable<void> report_crash(CameraId camera);
  asio::awaitable<void> keep_time();
  asio::awaitable<int> run();
  void record(const Note& note);
  net::Counter& counted(const std::string& event);

  Shell shell;
  WorkerProcesses workers{shell};
  Membership membership{shell, workers};
  Feeds feeds{shell, workers, membership};
  LeftSpools spools{shell};
  json::array happened;  // the last things worth a look
};

Manager::Parts::Parts(asio::io_context& io, ManagerPorts ports, net::Metrics& metrics, ManagerSettings settings)
    : shell(io, ports, metrics, std::move(settings)) {
  shell.perform = [this](Action action) { perform(std::move(action)); };
  // Prometheus sees a counter rise only from a number that it has read before: so the counters that alerts watch
  // begin at 0.
  for (const char* event : {"worker.crashed", "worker.frozen", "camera.alone"}) counted(event);
}

void Manager::Parts::perform(Action action) {
  if (auto* ask = std::get_if<AskLeases>(&action)) shell.spawn(ask_leases(std::move(*ask)), "leases");
  else if (auto* token = std::get_if<AskToken>(&action)) shell.spawn(ask_token(std::move(*token)), "tokens");
  else if (auto* budget = std::get_if<AskBudget>(&action)) shell.spawn(ask_budget(budget->site), "budgets");
  else if (auto* start = std::get_if<StartWorker>(&action)) shell.spawn(workers.run(std::move(*start)), "worker");
  else if (auto* tell = std::get_if<Tell>(&action)) shell.spawn(workers.tell(std::move(*tell)), "worker messages");
  else if (auto* crash = std::get_if<ReportCrash>(&action)) shell.spawn(report_crash(crash->camera), "crash report");
  else if (auto* note = std::get_if<Note>(&action)) record(*note);
  else if (auto* kill = std::get_if<KillWorker>(&action)) workers.kill(*kill);
  else if (auto* end = std::get_if<End>(&action)) {
    log::info("runner.ended", end->why).with("exit_code", end->code);
    shell.end(end->code);
  }
}

net::Counter& Manager::Parts::counted(const std::string& event) {
  return shell.metrics.counter("weir_runner_events_total", "What the runner decided, by kind", {{"event", event}});
}

void Manager::Parts::record(const Note& note) {
  WorkerPtr worker = workers.find(note.worker);
  int pid = worker ? worker->pid() : 0;
  log::Entry(note.warning ? log::Level::warn : log::Level::info, note.event, note.text)
      .with("camera_uuid", note.camera)
      .with("shard_id", worker ? worker->shard : std::string())
      .with("pid", pid);
  counted(note.event).add();
  if (shell.settings.on_note) shell.settings.on_note(note);
  if (!worth_showing(note)) return;
  happened.push_back({{"ts", to_iso(shell.ports.clock.wall())}, {"event", note.event}, {"text", note.text},
                      {"camera_uuid", note.camera.str()}, {"pid", pid}});
  if (happened.size() > kHappenedMax) happened.erase(happened.begin());
}

asio::awaitable<void> Manager::Parts::ask_leases(AskLeases ask) {
  lease::Operation operation = ask.questions.front().operation;
  lease::Batch batch{.operation = operation, .owner = shell.owner, .ttl = shell.brain.policy().lease.ttl};
  for (const lease::Question& question : ask.questions) batch.asks.push_back(question.ask);
  Instant asked = shell.ports.clock.now();
  auto answers = co_await shell.ports.plane.apply(std::move(batch));
  shell.watch.note("leases", answers, shell.ports.clock.now());
  shell.metrics.histogram("weir_runner_lease_seconds", "How long the control plane took to answer about leases",
                          net::Metrics::latency_buckets()).observe(seconds(shell.ports.clock.now() - asked));
  if (!answers) {
    shell.metrics.counter("weir_runner_lease_unanswered_total", "Lease questions without a usable answer").add();
    log::debug("lease.unanswered", answers.error().message).with("error_code", answers.error().reason);
  }
  LeasesHeard heard;
  for (size_t i = 0; i < ask.questions.size(); ++i) {
    std::uint64_t id = ask.questions[i].id;
    const CameraId& camera = ask.questions[i].ask.subject;
    if (answers) heard.answers.push_back({camera, lease::Answered{id, (*answers)[i]}});
    else heard.answers.push_back({camera, lease::Unanswered{id}});
  }
  shell.feed(heard);
}

asio::awaitable<void> Manager::Parts::ask_token(AskToken ask) {
  BudgetUse use{ask.camera, ask.grant};
  auto answer = co_await shell.ports.plane.consume(ask.site, use);
  TokenHeard heard{.camera = ask.camera, .grant = ask.grant};
  if (answer) {
    heard.granted = answer->granted;
    heard.refused = !answer->granted;
    heard.retry_after = answer->retry_after;
  }
  shell.feed(heard);
}

asio::awaitable<void> Manager::Parts::ask_budget(SiteId site) {
  auto tokens = co_await shell.ports.plane.budget(site);
  shell.feed(BudgetHeard{site, tokens ? std::optional(*tokens) : std::nullopt});
}

asio::awaitable<void> Manager::Parts::report_crash(CameraId camera) {
  auto reported = co_await shell.ports.plane.report_crash(camera, shell.owner);
  if (!reported) log::warn("camera.crash_unreported", reported.error().message).with("camera_uuid", camera);
}

asio::awaitable<void> Manager::Parts::keep_time() {
  Clock& clock = shell.ports.clock;
  while (!shell.over()) {
    Instant due = std::max(shell.brain.wake_at(clock.now()), clock.now() + 1ms);
    co_await shell.brain_changed.wait_until(due);
    if (clock.now() >= due) shell.feed(TimePassed{});
  }
}

asio::awaitable<int> Manager::Parts::run() {
  Clock& clock = shell.ports.clock;
  co_await membership.join();
  if (!shell.over()) {
    shell.spawn(keep_time(), "time");
    shell.spawn(membership.keep_token(), "token");
    shell.spawn(feeds.list_cameras(), "cameras");
    shell.spawn(spools.keep([this] { return feeds.listed(); }), "spools");
    shell.spawn(membership.beat(), "heartbeat");
    for (const char* pattern : {"lease.#", "camera.#"}) shell.spawn(feeds.follow(pattern), "feed");
  }
  while (!shell.over()) co_await shell.ended.wait_until(clock.now() + 1h);
  shell.brain_changed.ring();
  co_return *shell.code;
}

Manager::Manager(asio::io_context& io, ManagerPorts ports, net::Metrics& metrics, ManagerSettings settings)
    : parts_(std::make_unique<Parts>(io, ports, metrics, std::move(settings))) {}

Manager::~Manager() = default;

asio::awaitable<int> Manager::run() { return parts_->run(); }

void Manager::stop(Duration grace) {
  Shell& shell = parts_->shell;
  shell.stop_by = shell.ports.clock.now() + grace;
  shell.feed(StopAsked{*shell.stop_by});
}

void Manager::binary_changed() { parts_->shell.feed(BinaryChanged{}); }

void Manager::change(const Policy& times, std::string control_plane_url) {
  parts_->shell.feed(TimesChanged{times.lease, times.poll, times.drain_batch, times.drain_interval});
  if (control_plane_url != parts_->workers.bus_url()) parts_->workers.use_bus(std::move(control_plane_url), Secret());
}

bool Manager::registered() const { return parts_->membership.registered(); }
const RunnerId& Manager::id() const { return parts_->shell.owner.runner; }
const Brain& Manager::brain() const { return parts_->shell.brain; }

asio::awaitable<json::object> Manager::state() {
  co_await parts_->workers.read_pages();
  json::object out = describe(parts_->shell, parts_->workers);
  out["runner_id"] = id().str();
  out["boot_id"] = parts_->shell.owner.boot.str();
  out["registered"] = registered();
  out["listed"] = parts_->feeds.listed();
  out["happened"] = parts_->happened;
  co_return out;
}

std::vector<std::string> Manager::shards() const {
  std::vector<std::string> out;
  for (const auto& [shard, worker] : parts_->workers.speaking(brain().summary())) out.push_back(shard);
  return out;
}

asio::awaitable<Result<WorkerPage>> Manager::worker_page(std::string shard, std::string path) {
  auto all = parts_->workers.speaking(brain().summary());
  auto found = all.find(shard);
  if (found == all.end()) co_return Error{Errc::not_found, "no_worker", "there is no worker for that shard"};
  WorkerPtr worker = found->second;
  co_return co_await worker->link->page(std::move(path));
}

}  // namespace weir::runner
