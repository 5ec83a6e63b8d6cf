#include "weir/runner/manager.hpp"

#include "worker_process.hpp"

#include "weir/base/backoff.hpp"
#include "weir/base/elapsed.hpp"
#include "weir/base/log.hpp"
#include "weir/base/random.hpp"
#include "weir/event/events.hpp"
#include "weir/event/routing.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace weir::runner {

namespace asio = boost::asio;

namespace {

std::uint64_t random_seed() {
  std::uint64_t seed = 0;
  for (char c : random_hex(8)) seed = seed * 31 + static_cast<unsigned char>(c);
  return seed;
}

constexpr size_t kHappenedMax = 10;
constexpr int kPicturesMax = 4;  // sent up at once
constexpr Duration kSpoolsEvery = 15s;  // what dead workers left is looked for

// Until the timer is cancelled or its time has come.
asio::awaitable<void> wait(asio::steady_timer& timer, Duration d) {
  boost::system::error_code ignored;
  timer.expires_after(d);
  co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
}

}  // namespace

Manager::Manager(asio::io_context& io, Clock& clock, ControlPlane& plane, EventBus& bus, ProcessHost& host,
                 Spool& spool, net::Metrics& metrics, ManagerSettings settings)
    : io_(io),
      clock_(clock),
      plane_(plane),
      bus_(bus),
      host_(host),
      spool_(spool),
      metrics_(metrics),
      settings_(std::move(settings)),
      owner_{settings_.self.id, settings_.self.boot},
      control_token_(random_hex(32)),
      brain_(settings_.policy, owner_.boot, owner_.runner, random_seed()),
      time_(io),
      cameras_due_(io),
      ended_(io) {
  // Prometheus sees a counter rise only from a number that it has read before: what alerts watch begins at 0.
  for (const char* event : {"worker.crashed", "worker.frozen", "camera.alone"}) counted(event);
}

Manager::~Manager() = default;

void Manager::spawn(asio::awaitable<void> work, std::string_view what) {
  asio::co_spawn(io_, std::move(work), [this, what](const std::exception_ptr& failed) {
    if (!failed) return;
    try {
      std::rethrow_exception(failed);
    } catch (const std::exception& e) {
      log::error("runner.broken", fmt::format("{}: {}", what, e.what()));
    }
    code_ = 50;
    ended_.cancel();
  });
}

void Manager::feed(const Event& event) {
  if (code_) return;
  for (Action& action : brain_.handle(event, {clock_.now(), clock_.wall()})) perform(std::move(action));
  time_.cancel();
}

void Manager::perform(Action action) {
  if (auto* ask = std::get_if<AskLeases>(&action)) spawn(ask_leases(std::move(*ask)), "leases");
  else if (auto* token = std::get_if<AskToken>(&action)) spawn(ask_token(std::move(*token)), "tokens");
  else if (auto* budget = std::get_if<AskBudget>(&action)) spawn(ask_budget(budget->site), "budgets");
  else if (auto* start = std::get_if<StartWorker>(&action)) spawn(run_worker(std::move(*start)), "worker");
  else if (auto* message = std::get_if<Tell>(&action)) spawn(tell(std::move(*message)), "worker messages");
  else if (auto* crash = std::get_if<ReportCrash>(&action)) spawn(report_crash(crash->camera), "crash report");
  else if (auto* note = std::get_if<Note>(&action)) record(*note);
  else if (auto* kill = std::get_if<KillWorker>(&action)) {
    auto found = workers_.find(kill->worker);
    if (found == workers_.end()) return;
    log::warn("worker.killed", kill->why).with("pid", found->second->pid()).with("shard_id", found->second->shard);
    found->second->kill();
  } else if (auto* end = std::get_if<End>(&action)) {
    log::info("runner.ended", end->why).with("exit_code", end->code);
    code_ = end->code;
    ended_.cancel();
  }
}

net::Counter& Manager::counted(const std::string& event) {
  return metrics_.counter("weir_runner_events_total", "What the runner decided, by kind", {{"event", event}});
}

void Manager::record(const Note& note) {
  auto worker = workers_.find(note.worker);
  log::Entry(note.warning ? log::Level::warn : log::Level::info, note.event, note.text)
      .with("camera_uuid", note.camera)
      .with("shard_id", worker == workers_.end() ? std::string() : worker->second->shard)
      .with("pid", worker == workers_.end() ? 0 : worker->second->pid());
  counted(note.event).add();
  // For whoever looks at it now: the screen shows these above its table.
  if (!note.warning && !note.event.starts_with("rollout.") && !note.event.starts_with("runner.")) return;
  happened_.push_back({{"ts", to_iso(clock_.wall())}, {"event", note.event}, {"text", note.text},
                       {"camera_uuid", note.camera.str()}, {"pid", worker == workers_.end() ? 0 : worker->second->pid()}});
  if (happened_.size() > kHappenedMax) happened_.erase(happened_.begin());
}

// ---- the control plane ----

asio::awaitable<void> Manager::ask_leases(AskLeases ask) {
  lease::Operation operation = ask.questions.front().operation;
  lease::Batch batch{.operation = operation, .owner = owner_, .ttl = brain_.policy().lease.ttl};
  for (const lease::Question& question : ask.questions) batch.asks.push_back(question.ask);
  Instant asked = clock_.now();
  auto answers = co_await plane_.apply(std::move(batch));
  watch_.note("leases", answers, clock_.now());
  metrics_.histogram("weir_runner_lease_seconds", "How long the control plane took to answer about leases",
                     net::Metrics::latency_buckets()).observe(seconds(clock_.now() - asked));
  if (!answers) {
    metrics_.counter("weir_runner_lease_unanswered_total", "Lease questions without a usable answer").add();
    log::debug("lease.unanswered", answers.error().message).with("error_code", answers.error().reason);
  }
  LeasesHeard heard;
  for (size_t i = 0; i < ask.questions.size(); ++i) {
    std::uint64_t id = ask.questions[i].id;
    const CameraId& camera = ask.questions[i].ask.camera;
    if (answers) heard.answers.push_back({camera, lease::Answered{id, (*answers)[i]}});
    else heard.answers.push_back({camera, lease::Unanswered{id}});
  }
  feed(heard);
}

asio::awaitable<void> Manager::ask_token(AskToken ask) {
  BudgetUse use{ask.camera, ask.grant};
  auto answer = co_await plane_.consume(ask.site, use);
  TokenHeard heard{.camera = ask.camera, .grant = ask.grant};
  if (answer) {
    heard.granted = answer->granted;
    heard.refused = !answer->granted;
    heard.retry_after = answer->retry_after;
  }
  feed(heard);
}

asio::awaitable<void> Manager::ask_budget(SiteId site) {
  auto tokens = co_await plane_.budget(site);
  feed(BudgetHeard{site, tokens ? std::optional(*tokens) : std::nullopt});
}

asio::awaitable<void> Manager::report_crash(CameraId camera) {
  auto reported = co_await plane_.report_crash(camera, owner_);
  if (!reported) log::warn("camera.crash_unreported", reported.error().message).with("camera_uuid", camera);
}

// Registers until it is heard; the rest waits for it, because the last will must be in place before the first lease.
asio::awaitable<void> Manager::join() {
  std::map<std::string, Instant> said;  // the reasons, and when
  std::vector<ModelLabels> models;
  if (settings_.models) models = co_await settings_.models();
  for (int attempt = 0; !code_; ++attempt) {
    Runner self = settings_.self;
    self.boot = owner_.boot;
    self.models = models;
    auto registered = co_await plane_.register_runner(std::move(self));
    if (registered) {
      settings_.on_will(owner_.boot, registered->will);
      registered_ = true;
      log::info("runner.joined", "the control plane knows this runner").with("boot_id", owner_.boot);
      hear(registered->flags);
      co_return;
    }
    // An earlier attempt arrived and its answer was lost, the will with it: nothing is held yet, so another boot begins.
    if (registered.error().reason == "boot_known") {
      owner_.boot = BootId::trusted(random_hex(16));
      brain_ = Brain(brain_.policy(), owner_.boot, owner_.runner, random_seed());
      if (stop_by_) feed(StopAsked{*stop_by_});
      continue;
    }
    Instant& last = said[registered.error().reason];
    if (last == Instant{} || clock_.now() - last >= 1min) {
      last = clock_.now();
      explain_outage(registered.error());
    }
    if (stop_by_) {
      code_ = 0;
      ended_.cancel();
    }
    co_await clock_.wait(Backoff{.first = 250ms, .cap = 3s}.delay(attempt, random_unit()));
  }
}

asio::awaitable<void> Manager::keep_time() {
  while (!code_) {
    Duration left = brain_.wake_at(clock_.now()) - clock_.now();
    co_await wait(time_, std::max<Duration>(left, 1ms));
    if (code_) co_return;
    if (time_.expiry() <= std::chrono::steady_clock::now()) feed(TimePassed{});
  }
}

asio::awaitable<void> Manager::beat() {
  Instant next = clock_.now();
  for (int high = 0; !code_;) {
    Summary summary = brain_.summary();
    std::vector<int> pids;
    for (const auto& [number, worker] : workers_) pids.push_back(worker->pid());
    Usage usage = settings_.usage(pids);
    event::RunnerHeartbeat event{.event_id = event::make_event_id(clock_.wall(), random_hex(8)),
                                 .ts = clock_.wall(),
                                 .runner = owner_.runner,
                                 .streams_owned = summary.owned,
                                 .shards = summary.shards,
                                 .cpu_pct = usage.cpu_pct,
                                 .mem_mb = usage.mem_mb};
    bool over = usage.host_cpu_pct > settings_.cpu_high_pct || usage.host_mem_pct > settings_.mem_high_pct;
    high = over ? std::min(high + 1, 10) : std::max(high - 1, 0);  // a short peak is none
    bool memory = usage.host_mem_pct > settings_.mem_high_pct;
    if (high == 10 || high == 0)
      feed(LoadHeard{high == 10, memory ? "this machine's memory is nearly used up" : "this machine's processors are busy"});
    measure();
    json::object body{{"type", "runner.heartbeat"}, {"streams_owned", summary.owned}, {"shards", summary.shards},
                      {"cpu_pct", usage.cpu_pct},   {"mem_mb", usage.mem_mb},         {"ts", to_iso(event.ts)},
                      {"draining", summary.draining}, {"cameras_behind", summary.behind},
                      {"why_not_acquiring", summary.why_not}, {"waiting", waiting(summary)}};
    spawn([](Manager* self, json::object beat_body) -> asio::awaitable<void> {
      auto flags = co_await self->plane_.heartbeat(self->owner_.runner, std::move(beat_body));
      self->watch_.note("heartbeat", flags, self->clock_.now());
      if (flags) self->hear(*flags);
      self->check_known(flags);
    }(this, std::move(body)), "heartbeat");
    if (!bus_token_.empty()) {
      std::vector<OutgoingEvent> events(1);
      events[0] = {std::string(kStatusTopic), event::heartbeat_key(owner_.runner), event.event_id, event::to_json(event)};
      spawn([](Manager* self, std::vector<OutgoingEvent> said) -> asio::awaitable<void> {
        auto heard = co_await self->bus_.publish(std::move(said));
        if (!heard) log::debug("heartbeat.unheard", heard.error().message);
      }(this, std::move(events)), "heartbeat event");
    }
    next = std::max(next + settings_.heartbeat, clock_.now());
    co_await clock_.wait_until(next);
  }
}

// A drain has an end that somebody waits for, before the host is switched off.
void Manager::hear(const RunnerFlags& flags) {
  feed(FlagsHeard{flags.cordoned, flags.drain, flags.capacity, flags.spare});
  bool ordered = flags.drain != DrainMode::none;
  if (std::exchange(drain_ordered_, ordered) && !ordered)
    log::info("runner.drain_ended", "the order to drain was taken back");
  bool empty = ordered && !stop_by_ && workers_.empty() && !brain_.summary().draining;
  if (empty && !drained_) log::info("runner.drained", "no camera and no worker is left: this host may be switched off");
  drained_ = ordered && (drained_ || empty);
}

// Deleted from the list while it was away: what it takes nobody could see or drain. It begins anew under another boot.
void Manager::check_known(const Result<RunnerFlags>& heard) {
  bool unknown = !heard && heard.error().reason == "runner_not_found";
  beats_unknown_ = unknown ? beats_unknown_ + 1 : 0;
  if (beats_unknown_ == 3 && !code_)
    perform(End{60, "the control plane does not know this runner any more: started again, it registers anew"});
}

// The workers' token, renewed long before it ends.
asio::awaitable<void> Manager::keep_token() {
  for (int failures = 0; !code_;) {
    auto lent = co_await plane_.worker_token(owner_.boot);
    if (!lent) {
      if (failures == 0) log::warn("runner.token_failed", lent.error().message);
      co_await clock_.wait(Backoff{.first = 250ms, .cap = 5s}.delay(failures++, random_unit()));
      continue;
    }
    failures = 0;
    bus_token_ = lent->token;
    if (auto own = co_await plane_.runner_token()) settings_.use_bus_token(*own);
    tell_workers_the_bus();
    token_refused_ = false;
    Instant soonest = clock_.now() + 2s;
    co_await wait_elapsed(clock_, std::max<Duration>(lent->life / 3, 1s), [this, soonest] {
      return code_.has_value() || (token_refused_ && clock_.now() >= soonest);
    });
  }
}

void Manager::tell_workers_the_bus() {
  ++bus_changes_;
  for (auto& [number, worker] : workers_)
    if (worker->control) spawn(tell_the_bus(worker), "token");
}

// Until it has heard: a worker that is not told spools all that it sees.
asio::awaitable<void> Manager::tell_the_bus(WorkerPtr worker) {
  for (int failures = 0; worker->bus_told != bus_changes_ && !worker->ended && !code_; ++failures) {
    if (failures > 0) co_await clock_.wait(Backoff{.first = 200ms, .cap = 5s}.delay(failures, random_unit()));
    int change = bus_changes_;
    json::object body;
    body["token"] = bus_token_.reveal();
    body["base_url"] = bus_url_;
    auto answer = co_await worker->post("/leases", std::move(body), control_token_, 3s);
    if (answer && answer->status < 300) worker->bus_told = change;
  }
}

void Manager::list_again() {
  changed_meanwhile_ = true;
  cameras_due_.cancel();
}

void Manager::change(const Policy& times, std::string control_plane_url) {
  feed(TimesChanged{times.lease, times.poll, times.drain_batch, times.drain_interval});
  if (control_plane_url == bus_url_) return;
  bus_url_ = std::move(control_plane_url);
  tell_workers_the_bus();
}

asio::awaitable<void> Manager::list_cameras() {
  while (!code_) {
    changed_meanwhile_ = false;
    auto cameras = co_await plane_.desired(settings_.filter);
    watch_.note("cameras", cameras, clock_.now());
    if (cameras) {
      remember_cameras(cameras->readable);
      CamerasListed listed{.cameras = {}, .unreadable = std::move(cameras->unreadable)};
      for (DesiredCamera& each : cameras->readable)
        listed.cameras.push_back({std::move(each.config), std::move(each.version), each.crashes});
      feed(listed);
      listed_ = true;
      co_await learn_holders();
    } else {
      log::debug("cameras.unlisted", cameras.error().message);
    }
    Duration pause = cameras ? settings_.camera_poll : Duration(1s);
    if (!changed_meanwhile_) co_await wait(cameras_due_, from_seconds(seconds(pause) * (0.75 + 0.5 * random_unit())));
    co_await clock_.wait(30ms);  // changes come in swarms
  }
}

// Whoever takes no more cameras does not ask for them, and the feed begins when it joins: what seems to wait for an owner
// may have one.
asio::awaitable<void> Manager::learn_holders() {
  Summary summary = brain_.summary();
  bool asks = summary.acquiring && summary.owned < brain_.policy().room();
  if (asks || summary.pending == 0 || clock_.now() < holders_due_) co_return;
  auto held = co_await plane_.held();
  if (!held) co_return;
  holders_due_ = clock_.now() + 30s;  // it can be a long list
  HoldersHeard heard;
  for (Holding& each : *held)
    if (each.runner != owner_.runner) heard.others.emplace(std::move(each.camera), each.version);
  feed(heard);
}

asio::awaitable<void> Manager::keep_spools() {
  while (!code_) {
    if (listed_) co_await drop_left_spools();
    co_await wait_elapsed(clock_, listed_ ? kSpoolsEvery : Duration(1s), [this] { return code_.has_value(); });
  }
}

// What a dead worker spooled waits for its tenure to go on. Where another owner came first nobody will publish it, and
// the camera may never come back to this host (rule 8).
asio::awaitable<void> Manager::drop_left_spools() {
  auto tenure_of = [this](const CameraId& camera) {
    const lease::HolderState* holder = brain_.holder(camera);
    bool held = holder != nullptr && holder->phase == lease::Phase::holding;
    return held ? lease::Tenure{owner_.boot, holder->grant} : lease::Tenure{};
  };
  auto listed = [](Spool* spool) -> asio::awaitable<std::vector<SpoolContent>> { co_return spool->list(); };
  std::vector<SpoolContent> found = co_await asio::co_spawn(disk_, listed(&spool_), asio::use_awaitable);
  std::erase_if(found, [&](const SpoolContent& each) { return each.tenure == tenure_of(each.camera); });
  if (found.empty()) co_return;
  auto rows = co_await plane_.leases();
  if (!rows) co_return;
  std::map<CameraId, lease::LeaseRow> row_of;
  for (lease::LeaseRow& row : *rows) row_of.emplace(row.camera, std::move(row));
  for (const SpoolContent& left : found) {
    auto row = row_of.find(left.camera);  // unknown is not lost
    if (code_ || row == row_of.end() || !lease::is_over(left.tenure, row->second, owner_.boot)) continue;
    bool enabled_again = !row->second.assignable && tenure_of(left.camera) != lease::Tenure{};
    if (enabled_again) continue;
    auto dropped = [](Spool* spool, SpoolContent what) -> asio::awaitable<std::uint64_t> {
      co_return spool->drop(what.camera, what.tenure);
    };
    std::uint64_t events = co_await asio::co_spawn(disk_, dropped(&spool_, left), asio::use_awaitable);
    if (events == 0) continue;  // whoever writes it hears of the loss himself
    metrics_.counter("weir_events_dropped_total", "Events that were given up, by the reason", {{"reason", "lost"}})
        .add(static_cast<double>(events));
    log::warn("spool.dropped", row->second.assignable ? "another owner has had this camera since: its events are dropped"
                                                      : "this camera is disabled or deleted: its events are dropped")
        .with("camera_uuid", left.camera)
        .with("events", events);
  }
}

asio::awaitable<void> Manager::follow(std::string pattern) {
  std::string cursor;
  for (int failures = 0; !code_;) {
    if (bus_token_.empty()) {
      co_await clock_.wait(50ms);
      continue;
    }
    bool heard = false;
    Subscription wanted{.pattern = pattern, .after = cursor, .progress = [&](const std::string& at) {
                          cursor = at;
                          heard = true;
                        }};
    Status ended = co_await bus_.subscribe(std::move(wanted), [&](const DeliveredEvent& event) {
      cursor = event.cursor;
      heard = true;
      hear(event);
      return !code_;
    });
    failures = heard ? 0 : failures + 1;
    if (code_) co_return;
    if (!ended) log::debug("feed.ended", ended.error().message).with("pattern", pattern);
    if (!ended && ended.error().code == Errc::unauthorized) token_refused_ = true;
    list_again();  // what was missed meanwhile is looked up
    co_await clock_.wait(Backoff{.first = 100ms, .cap = 2s}.delay(failures, random_unit()));
  }
}

void Manager::hear(const DeliveredEvent& event) {
  std::string_view key = event.routing_key;
  bool wanted = key.starts_with("camera.snapshot_wanted.");
  if (key.starts_with("camera.") && !wanted) {
    list_again();
    return;
  }
  auto payload = json::parse_text(event.payload);
  if (!payload || !payload->is_object()) return;
  const json::object& said = payload->get_object();
  auto text = [&](std::string_view name) {
    const json::value* found = said.if_contains(name);
    return found != nullptr && found->is_string() ? std::string(found->get_string()) : std::string();
  };
  if (wanted) {
    bool busy = pictures_under_way_ == kPicturesMax;  // whoever waits asks again
    bool mine = text("runner_id") == owner_.runner.str() && text("boot_id") == owner_.boot.str();
    if (mine && !busy)
      spawn(send_picture(CameraId::trusted(text("camera_uuid")), text("request_id")), "picture");
    return;
  }
  LeaseNews news{.camera = CameraId::trusted(text("camera_uuid")), .runner = RunnerId::trusted(text("runner_id"))};
  if (const json::value* version = said.if_contains("version"); version != nullptr && version->is_int64())
    news.version = {version->get_int64()};
  news.free = key.starts_with("lease.released.") || key.starts_with("lease.expired.") || key.starts_with("lease.revoked.");
  bool taken = key.starts_with("lease.granted.") || key.starts_with("lease.stolen.");
  if (news.free || taken) feed(news);
}

// ---- from the beginning to the end ----

void Manager::stop(Duration grace) {
  stop_by_ = clock_.now() + grace;
  feed(StopAsked{*stop_by_});
}

asio::awaitable<int> Manager::run() {
  spawn(join(), "registration");
  while (!registered_ && !code_) co_await clock_.wait(20ms);
  if (!code_) {
    spawn(keep_time(), "time");
    spawn(keep_token(), "token");
    spawn(list_cameras(), "cameras");
    spawn(keep_spools(), "spools");
    spawn(beat(), "heartbeat");
    for (const char* pattern : {"lease.#", "camera.#"}) spawn(follow(pattern), "feed");
  }
  while (!code_) co_await wait(ended_, std::chrono::hours(1));
  for (asio::steady_timer* timer : {&time_, &cameras_due_}) timer->cancel();
  co_return *code_;
}

}  // namespace weir::runner
