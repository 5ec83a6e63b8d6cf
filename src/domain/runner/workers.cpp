#include "weir/runner/workers.hpp"

namespace weir::runner {

using restart::Fault;

namespace {

// A worker's thread gives up a camera that sends nothing; where all cameras have sent nothing for longer and still
// count as streaming, it is the threads that stand still.
bool stands_still(const WorkerHeard& event, const Cameras& cameras, Duration stall) {
  constexpr Duration kNotice = 1s;
  return !event.cameras.empty() && std::ranges::all_of(event.cameras, [&](const SeenCamera& seen) {
    const Camera* camera = find_in(cameras, seen.camera);
    if (camera == nullptr || !seen.streaming) return false;
    const auto& snapshot = camera->wish.config.snapshot;
    return seen.frame_age > stall + kNotice + (snapshot ? 2 * from_seconds(snapshot->interval_s) : Duration(0));
  });
}

std::string reason(Fault fault, const Worker& worker, Instant now) {
  switch (fault) {
    case Fault::late: return "the worker did not get ready in time";
    case Fault::undrained: return "the worker did not drain within its grace";
    case Fault::hung: return fmt::format("a thread of the worker hangs with camera {}", worker.stuck.str());
    case Fault::frozen:
      return fmt::format("the worker has not answered for {:.1f} s and uses no processor time: it is frozen",
                         seconds(worker.process.since_heard(now)));
    case Fault::silent: return "the worker has not answered for too long";
    case Fault::still: return "all cameras of the worker stand still, and it has not noticed";
  }
  return "";
}

}  // namespace

WorkerNumber Workers::start(StartWorker order, std::map<CameraId, Given> sources, Turn& turn) {
  order.worker = ++last_;
  all[last_] = {.shard = order.shard, .program = program_, .process = restart::Supervised(turn.now),
                .sources = std::move(sources)};
  turn.act(std::move(order));
  return last_;
}

void Workers::kill(WorkerNumber number, std::string why, Turn& turn, std::optional<Fault> fault) {
  if (Worker* worker = find(number); worker != nullptr && worker->process.kill(turn.now, fault))
    turn.act(KillWorker{number, std::move(why)});
}

void Workers::dismiss(WorkerNumber number, Turn& turn) {
  Worker* worker = find(number);
  if (worker == nullptr || worker->draining()) return;
  if (worker->starting()) return kill(number, "the worker is not needed any more", turn);
  worker->process.drained(turn.now);
  tell(number, Message::drain, {}, turn);
}

std::uint64_t Workers::tell(WorkerNumber worker, Message what, std::vector<TellItem> items, Turn& turn) {
  turn.act(Tell{worker, ++messages_, what, items});
  sent_.emplace(messages_, Sent{worker, what, std::move(items)});
  return messages_;
}

std::optional<Sent> Workers::answered(std::uint64_t message) {
  auto found = sent_.extract(message);
  if (found.empty()) return std::nullopt;
  return std::move(found.mapped());
}

Workers::Gone Workers::remove(WorkerNumber number) {
  Gone gone{std::move(all.extract(number).mapped()), {}};
  for (auto it = sent_.begin(); it != sent_.end();) {
    auto next = std::next(it);
    if (it->second.worker == number) gone.unanswered.insert(sent_.extract(it));
    it = next;
  }
  return gone;
}

void Workers::hear(const WorkerHeard& event, const Cameras& cameras, const Turn& turn) {
  Worker* worker = find(event.worker);
  if (worker == nullptr) return;
  worker->process.answered(
      turn.now, {.hung = !event.stuck.empty(), .still = stands_still(event, cameras, turn.policy.stall)});
  worker->stuck = event.stuck;
  worker->looked_at = true;
  for (auto* said : {&worker->streaming, &worker->unseen, &worker->behind}) said->clear();
  for (const SeenCamera& seen : event.cameras) {
    if (seen.streaming) worker->streaming.insert(seen.camera);
    if (seen.behind) worker->behind.insert(seen.camera);
    const Camera* camera = find_in(cameras, seen.camera);
    bool detects = camera != nullptr && camera->wish.config.model.detector != "none";
    if (detects && !seen.inferred) worker->unseen.insert(seen.camera);
  }
}

void Workers::hear(const WorkerSilent& event, const Turn& turn) {
  if (Worker* worker = find(event.worker))
    worker->process.unanswered(turn.now, event.cpu_time, turn.policy.supervision());
}

void Workers::overslept(Duration slept) {
  for (auto& [number, worker] : all) worker.process.overslept(slept);
}

void Workers::check(Turn& turn) {
  for (auto& [number, worker] : all) {
    auto fault = worker.process.fault(turn.now, turn.policy.supervision());
    if (!fault) continue;
    std::string why = reason(*fault, worker, turn.now);
    if (*fault == Fault::hung)
      turn.warn("worker.hung", "a thread hangs with this camera: a new worker takes over", worker.stuck, number);
    else if (*fault != Fault::late && *fault != Fault::undrained)
      turn.warn("worker.frozen", why + "; another worker takes over", {}, number);
    kill(number, std::move(why), turn, fault);
  }
}

bool Workers::running(WorkerNumber number) const {
  const Worker* worker = find(number);
  return worker != nullptr && worker->process.running();
}

int cameras_behind(const Fleet& fleet) {
  return static_cast<int>(std::ranges::count_if(fleet.cameras, [&](const auto& each) {
    const Worker* worker = fleet.workers.find(each.second.voice.on);
    return worker != nullptr && worker->behind.contains(each.first);
  }));
}

bool needs_new_model(const Camera& camera, const Workers& workers) {
  const Worker* worker = workers.find(camera.voice.on);
  const Given* given = worker == nullptr ? nullptr : find_in(worker->sources, camera.id());
  const camera::Model& model = camera.wish.config.model;
  return given != nullptr && (given->model.detector != model.detector || given->model.name != model.name);
}

}  // namespace weir::runner
