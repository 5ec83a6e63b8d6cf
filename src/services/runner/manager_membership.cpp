#include "manager_membership.hpp"

#include "manager_report.hpp"

#include "weir/base/backoff.hpp"
#include "weir/base/elapsed.hpp"
#include "weir/base/log.hpp"
#include "weir/event/events.hpp"
#include "weir/event/routing.hpp"

namespace weir::runner {

namespace asio = boost::asio;

namespace {
constexpr int kLoadLasts = 10;  // heartbeats: a short peak is none
constexpr int kUnknownMost = 3;
}  // namespace

asio::awaitable<void> Membership::join() {
  Clock& clock = shell_.ports.clock;
  std::map<std::string, Instant> said;  // the reasons, and when
  std::vector<ModelLabels> models;
  if (shell_.settings.models) models = co_await shell_.settings.models();
  for (int attempt = 0; !shell_.over(); ++attempt) {
    Runner self = shell_.settings.self;
    self.boot = shell_.owner.boot;
    self.models = models;
    auto registered = co_await shell_.ports.plane.register_runner(std::move(self));
    if (registered) {
      shell_.settings.on_will(shell_.owner.boot, registered->will);
      registered_ = true;
      log::info("runner.joined", "the control plane knows this runner").with("boot_id", shell_.owner.boot);
      hear(registered->flags);
      co_return;
    }
    // An earlier registration arrived and its answer was lost, the will with it: the runner holds nothing yet, so it
    // begins under another boot.
    if (registered.error().reason == "boot_known") {
      shell_.begin_anew(BootId::trusted(random_hex(16)));
      continue;
    }
    Instant& last = said[registered.error().reason];
    if (last == Instant{} || clock.now() - last >= 1min) {
      last = clock.now();
      explain_outage(registered.error());
    }
    if (shell_.stop_by) shell_.end(0);
    co_await clock.wait(Backoff{.first = 250ms, .cap = 3s}.delay(attempt, shell_.settings.draw()));
  }
}

void Membership::explain_outage(const Error& why) {
  std::string known = "no camera is known from before";
  if (auto parsed = json::parse_text(shell_.ports.disk.kept_cameras()); parsed && parsed->is_object()) {
    const json::value* cameras = parsed->get_object().if_contains("cameras");
    const json::value* when = parsed->get_object().if_contains("listed_at");
    if (cameras != nullptr && cameras->is_array() && when != nullptr && when->is_string())
      known = fmt::format("{} cameras were known at {}", cameras->get_array().size(),
                          std::string_view(when->get_string()));
  }
  log::warn("runner.waiting",
            fmt::format("the control plane {} ({}); nothing can be started without its leases; {}", what_it_does(why),
                        why.message, known))
      .with("error_code", why.reason);
}

asio::awaitable<void> Membership::keep_token() {
  Clock& clock = shell_.ports.clock;
  for (int failures = 0; !shell_.over();) {
    auto lent = co_await shell_.ports.plane.worker_token(shell_.owner.boot);
    if (!lent) {
      if (failures == 0) log::warn("runner.token_failed", lent.error().message);
      co_await clock.wait(Backoff{.first = 250ms, .cap = 5s}.delay(failures++, shell_.settings.draw()));
      continue;
    }
    failures = 0;
    workers_.use_bus("", lent->token);
    auto own = co_await shell_.ports.plane.runner_token();
    if (own) shell_.settings.use_bus_token(*own);
    token_refused_ = false;
    Instant soonest = clock.now() + 2s;
    co_await wait_elapsed(clock, std::max<Duration>(lent->life / 3, 1s), [this, soonest] {
      return shell_.over() || (token_refused_ && shell_.ports.clock.now() >= soonest);
    });
  }
}

asio::awaitable<void> Membership::beat() {
  Clock& clock = shell_.ports.clock;
  for (Instant next = clock.now(); !shell_.over();) {
    std::vector<int> pids;
    for (const auto& [number, worker] : workers_.all()) pids.push_back(worker->pid());
    Summary summary = shell_.brain.summary();
    Usage usage = shell_.settings.usage(pids);
    check_load(usage);
    measure(shell_.metrics, shell_.owner.runner, shell_.brain.summary());
    say_alive(summary, usage);
    next = std::max(next + shell_.settings.heartbeat, clock.now());
    co_await clock.wait_until(next);
  }
}

void Membership::check_load(const Usage& usage) {
  bool memory = usage.host_mem_pct > shell_.settings.mem_high_pct;
  bool over = memory || usage.host_cpu_pct > shell_.settings.cpu_high_pct;
  load_high_ = over ? std::min(load_high_ + 1, kLoadLasts) : std::max(load_high_ - 1, 0);
  if (load_high_ != kLoadLasts && load_high_ != 0) return;
  shell_.feed(LoadHeard{load_high_ == kLoadLasts,
                        memory ? "this machine's memory is nearly used up" : "this machine's processors are busy"});
}

void Membership::say_alive(const Summary& summary, const Usage& usage) {
  WallTime now = shell_.ports.clock.wall();
  shell_.spawn(tell_plane({{"type", "runner.heartbeat"}, {"boot_id", shell_.owner.boot.str()},
                           {"streams_owned", summary.owned}, {"shards", summary.shards},
                           {"cpu_pct", usage.cpu_pct}, {"mem_mb", usage.mem_mb}, {"ts", to_iso(now)},
                           {"draining", summary.draining}, {"cameras_behind", summary.behind},
                           {"why_not_acquiring", summary.why_not}, {"waiting", waiting(summary)}}), "heartbeat");
  if (!workers_.have_token()) return;
  event::RunnerHeartbeat event{.event_id = event::make_event_id(now, random_hex(8)),
                               .ts = now,
                               .runner = shell_.owner.runner,
                               .streams_owned = summary.owned,
                               .shards = summary.shards,
                               .cpu_pct = usage.cpu_pct,
                               .mem_mb = usage.mem_mb};
  std::vector<event::Event> events;
  events.push_back(event::to_event(event));
  shell_.spawn(tell_bus(std::move(events)), "heartbeat event");
}

asio::awaitable<void> Membership::tell_plane(json::object body) {
  auto flags = co_await shell_.ports.plane.heartbeat(shell_.owner.runner, std::move(body));
  shell_.watch.note("heartbeat", flags, shell_.ports.clock.now());
  if (flags) hear(*flags);
  check_known(flags);
}

asio::awaitable<void> Membership::tell_bus(std::vector<event::Event> events) {
  auto heard = co_await shell_.ports.bus.publish(std::move(events));
  if (!heard) log::debug("heartbeat.unheard", heard.error().message);
}

// A person waits for the end of a drain before they switch the host off, so the log tells it.
void Membership::hear(const RunnerFlags& flags) {
  shell_.feed(FlagsHeard{flags.cordoned, flags.drain, flags.capacity, flags.spare});
  bool ordered = flags.drain != DrainMode::none;
  if (std::exchange(drain_ordered_, ordered) && !ordered)
    log::info("runner.drain_ended", "the order to drain was taken back");
  bool empty = ordered && !shell_.stop_by && workers_.all().empty() && !shell_.brain.summary().draining;
  if (empty && !drained_) log::info("runner.drained", "no camera and no worker is left: this host may be switched off");
  drained_ = ordered && (drained_ || empty);
}

// The runner was removed from the list while it was away: nobody could see or drain the cameras that it takes. So it
// ends, and registers anew under another boot.
void Membership::check_known(const Result<RunnerFlags>& heard) {
  bool unknown = !heard && heard.error().reason == "runner_not_found";
  beats_unknown_ = unknown ? beats_unknown_ + 1 : 0;
  if (beats_unknown_ == kUnknownMost && !shell_.over())
    shell_.perform(End{60, "the control plane does not know this runner any more: started again, it registers anew"});
}

}  // namespace weir::runner
