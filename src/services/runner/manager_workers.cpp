#include "manager_workers.hpp"

#include "weir/base/backoff.hpp"
#include "weir/base/log.hpp"

#include <algorithm>
#include <set>

namespace weir::runner {

namespace asio = boost::asio;

namespace {

constexpr Duration kTokenLook = 20ms;  // how often a worker that waits for its token looks for it
constexpr Duration kPagesWithin = 300ms;  // somebody who asks for the runner's state waits so long for its workers

WorkerHeard heard_of(WorkerNumber worker, const link::Look& look) {
  WorkerHeard out{.worker = worker};
  for (const link::SeenCamera& each : look.cameras)
    out.cameras.push_back({.camera = each.camera,
                           .streaming = each.streaming,
                           .failures = each.failures,
                           .error = each.error,
                           .inferred = each.inferred > 0,
                           .behind = each.behind,
                           .frame_age = each.frame_age.value_or(Duration(0))});
  if (!look.stuck.empty()) out.stuck = look.stuck.front();
  return out;
}

link::LeaseGrant grant_of(const TellItem& item, const BootId& boot) {
  const lease::Speak& right = *item.right;
  return {.camera = item.camera,
          .version = right.version,
          .tenure = {boot, right.grant},
          .valid_until = right.valid_until,
          .adopt = right.adopt,
          .after = item.after};
}

}  // namespace

void WorkerProcess::kill() {
  killed = true;
  if (link) link->kill();
}

WorkerProcesses::WorkerProcesses(Shell& shell)
    : shell_(shell), control_token_(random_hex(32)), bus_url_(shell.settings.control_plane_url) {}

link::ShardConfig WorkerProcesses::shard_of(const WorkerProcess& worker, const StartWorker& order) const {
  link::ShardConfig out{.runner = shell_.owner.runner,
                        .shard = worker.shard,
                        .control_plane = bus_url_,
                        .token = bus_token_,
                        .broker = shell_.settings.broker,
                        .preload = order.models,
                        .standby = order.standby,
                        .control_token = control_token_,
                        .dials_file = shell_.settings.folder + "/dials",
                        .crash_file = worker.crash_file};
  for (const camera::Config& config : order.sources) out.sources.push_back({.config = config});
  return out;
}

asio::awaitable<void> WorkerProcesses::run(StartWorker order) {
  auto worker = std::make_shared<WorkerProcess>();
  worker->number = order.worker;
  worker->shard = fmt::format("shard-{}", order.shard);
  worker->crash_file = fmt::format("{}/crash-{}.json", shell_.settings.folder, order.worker);
  all_[order.worker] = worker;
  Status up = co_await bring_up(worker, std::move(order));
  if (up) {
    worker->ready = true;
    worker->heard = shell_.ports.clock.now();
    shell_.spawn(tell_the_bus(worker), "token");  // what has changed since it was started
    shell_.feed(WorkerUp{worker->number});
    shell_.spawn(watch(worker), "worker state");
  } else if (!worker->killed) {
    log::error("worker.start_failed", up.error().message).with("shard_id", worker->shard);
    worker->kill();
  }
  int code = 10;
  if (worker->link) code = co_await worker->link->wait();
  worker->ended = true;
  CameraId crashed = co_await shell_.ports.disk.culprit(worker->crash_file);
  log::info("worker.exited").with("shard_id", worker->shard).with("pid", worker->pid()).with("exit_code", code);
  shell_.feed(WorkerGone{worker->number, code == 0 && !up ? 10 : code, std::move(crashed)});
  all_.erase(worker->number);
}

asio::awaitable<Status> WorkerProcesses::bring_up(WorkerPtr worker, StartWorker order) {
  while (bus_token_.empty() && !shell_.over() && !worker->killed) co_await shell_.ports.clock.wait(kTokenLook);
  worker->bus_told = bus_changes_;
  CO_TRY(link, shell_.ports.workers.start(shard_of(*worker, order)));
  worker->link = std::move(link);
  if (worker->killed) worker->kill();
  CO_TRY(ready, co_await worker->link->ready());
  log::info("worker.spawned")
      .with("shard_id", worker->shard)
      .with("pid", worker->pid())
      .with("standby", order.standby)
      .with("cameras", order.sources.size());
  co_return ok();
}

// Twice a second or so. A worker that says something that cannot be read is as good as silent.
asio::awaitable<void> WorkerProcesses::watch(WorkerPtr worker) {
  while (!worker->ended && !shell_.over()) {
    auto look = co_await worker->link->look();
    if (worker->ended) co_return;
    if (look) {
      worker->heard = shell_.ports.clock.now();
      shell_.feed(heard_of(worker->number, *look));
    } else {
      shell_.feed(WorkerSilent{worker->number, worker->link->cpu_time()});
    }
    co_await shell_.ports.clock.wait(shell_.settings.worker_look);
  }
}

asio::awaitable<void> WorkerProcesses::read_pages() {
  for (const auto& [number, worker] : all_) {
    if (!worker->ready || worker->ended || std::exchange(worker->page_asked, true)) continue;
    shell_.spawn(read_page(worker), "worker page");
  }
  auto asked = [](const auto& each) { return each.second->page_asked; };
  for (Instant until = shell_.ports.clock.now() + kPagesWithin;
       std::ranges::any_of(all_, asked) && shell_.ports.clock.now() < until;)
    co_await shell_.ports.clock.wait(2ms);
}

asio::awaitable<void> WorkerProcesses::read_page(WorkerPtr worker) {
  auto page = co_await worker->link->page(std::string(link::kStateRoute));
  auto said = page && page->status == 200 ? json::parse_text(page->body) : Result<json::value>(json::value());
  if (said && said->is_object()) worker->page = *std::move(said);
  worker->page_asked = false;
}

link::Message WorkerProcesses::message_of(const Tell& tell) const {
  std::vector<CameraId> cameras;
  std::vector<link::LeaseGrant> rights;
  for (const TellItem& item : tell.items) {
    cameras.push_back(item.camera);
    if (item.right) rights.push_back(grant_of(item, shell_.owner.boot));
  }
  switch (tell.what) {
    case Message::add: {
      link::ChangeSources change;
      for (const TellItem& item : tell.items)
        change.add.push_back({.config = *item.config, .lease = grant_of(item, shell_.owner.boot)});
      return change;
    }
    case Message::remove: return link::ChangeSources{.remove = std::move(cameras)};
    case Message::activate: return link::Activate{std::move(rights)};
    case Message::extend: return link::Leases{.items = std::move(rights)};
    case Message::lose: return link::Leases{.lost = std::move(cameras)};
    case Message::silence: return link::Silence{std::move(cameras)};
    case Message::drain: break;
  }
  return link::Drain{};
}

asio::awaitable<void> WorkerProcesses::tell(Tell message) {
  Told told{.message = message.message};
  WorkerPtr worker = find(message.worker);
  if (!worker || !worker->ready) {
    co_await shell_.ports.clock.wait(1ms);
    shell_.feed(told);
    co_return;
  }
  auto said = co_await worker->link->tell(message_of(message));
  if (said) {
    told.ok = true;
    for (const link::LastWord& each : *said)
      if (each.last_capture) told.last_capture[each.camera] = *each.last_capture;
  } else if (!worker->ended) {
    log::warn("worker.control_failed", said.error().message).with("shard_id", worker->shard);
  }
  shell_.feed(told);
}

void WorkerProcesses::kill(const KillWorker& order) {
  WorkerPtr worker = find(order.worker);
  if (!worker) return;
  log::warn("worker.killed", order.why).with("pid", worker->pid()).with("shard_id", worker->shard);
  worker->kill();
}

void WorkerProcesses::use_bus(std::string url, Secret token) {
  if (!url.empty()) bus_url_ = std::move(url);
  if (!token.empty()) bus_token_ = std::move(token);
  ++bus_changes_;
  for (auto& [number, worker] : all_)
    if (worker->ready) shell_.spawn(tell_the_bus(worker), "token");
}

asio::awaitable<void> WorkerProcesses::tell_the_bus(WorkerPtr worker) {
  for (int failures = 0; worker->bus_told != bus_changes_ && !worker->ended && !shell_.over(); ++failures) {
    if (failures > 0)
      co_await shell_.ports.clock.wait(Backoff{.first = 200ms, .cap = 5s}.delay(failures, shell_.settings.draw()));
    int change = bus_changes_;
    link::Leases bus{.base_url = bus_url_, .token = bus_token_};
    auto heard = co_await worker->link->tell(std::move(bus));
    if (heard) worker->bus_told = change;
  }
}

WorkerPtr WorkerProcesses::find(WorkerNumber number) const {
  auto found = all_.find(number);
  return found == all_.end() ? nullptr : found->second;
}

std::map<std::string, WorkerPtr> WorkerProcesses::speaking(const Summary& now) const {
  std::set<WorkerNumber> speak;
  for (const CameraView& camera : now.cameras) speak.insert(camera.worker);
  std::map<std::string, WorkerPtr> out;
  for (const auto& [number, worker] : all_) {
    if (!worker->ready || worker->ended) continue;
    WorkerPtr& answers = out[worker->shard];
    if (!answers || (speak.contains(number) && !speak.contains(answers->number))) answers = worker;
  }
  return out;
}

}  // namespace weir::runner
