#include "weir/cluster/master.hpp"

#include "topics.hpp"

#include "weir/base/log.hpp"
#include "weir/base/log_limit.hpp"
#include "weir/base/spawn.hpp"

#include <algorithm>

namespace weir::cluster {

namespace asio = boost::asio;

namespace {

constexpr Backoff kAskAgain{.first = 1s, .cap = 10s};  // for a model's address
constexpr Duration kPiece = 500ms;                     // of that wait, between two looks at whether this term is over

// One worker: its connection, and what it was given over time.
struct Worker {
  Link link = {};
  std::shared_ptr<WorkerSocket> socket = {};  // shared with the coroutine that reads it
  std::uint64_t dial = 0;                     // numbers the dials: what belongs to an earlier one is ignored
  std::set<std::string> given = {};
  std::optional<StateReport> report = {};
  Master::Seen seen = {};
  LogLimit complaints{10s};
};

// A subscription on its way to its worker, which has to be told where its model is.
struct Gift {
  std::string worker, subscription;
  std::uint64_t revision = 0;
};

}  // namespace

struct Master::Parts {
  Parts(asio::io_context& loop, MasterPorts reached, net::Metrics& all, MasterSettings given, Voice said);

  void spawn(asio::awaitable<void> work, std::string_view what);
  asio::awaitable<void> keep_time();
  asio::awaitable<void> converse(std::string url, std::uint64_t number);
  bool still_there(const Gift& gift) const;
  asio::awaitable<void> give(std::vector<Gift> gifts);
  void happened(const std::string& url, const LinkEvent& event);
  void perform(const std::string& url, const LinkAction& action);
  void hear(const std::string& url, const std::string& text);
  void hear_report(const std::string& url, StateReport report);
  void hear_detection(const std::string& url, const ImageDetection& detection);
  bool settled() const;
  void plan();
  void carry_out(const placement::Plan& made);
  void relieve_others(const placement::Plan& made);
  void take(const std::string& subscription, const std::string& url);
  bool send(const std::string& url, const Command& command);
  void complain(const std::string& url, std::string_view event, const std::string& why);

  asio::io_context& io;
  const MasterPorts ports;
  net::Metrics& metrics;
  const MasterSettings settings;
  const Voice voice;
  placement::World world;
  DesiredSubscriptions desired;
  std::map<std::string, std::uint64_t> anew;  // by subscription: how often it was wished to be given anew
  std::map<std::string, Worker> workers;
  std::map<std::int64_t, std::string> model_addresses;  // without their signatures
  Agenda<std::string> dues;  // by worker
  Alarm changed;
  Instant settles_at{};
  bool plan_wanted = false, stopping = false;
  int running = 0;           // coroutines
};

Master::Parts::Parts(asio::io_context& loop, MasterPorts reached, net::Metrics& all, MasterSettings given, Voice said)
    : io(loop), ports(std::move(reached)), metrics(all), settings(std::move(given)), voice(std::move(said)),
      changed(loop, ports.clock) {
  for (const std::string& url : settings.workers) {
    workers.try_emplace(url);
    world.workers[url].capacity = settings.capacity;
  }
}

void Master::Parts::spawn(asio::awaitable<void> work, std::string_view what) {
  ++running;
  weir::spawn(io.get_executor(), std::move(work), what, [this] {
    --running;
    changed.ring();
  });
}

// ---- connections ----

void Master::Parts::happened(const std::string& url, const LinkEvent& event) {
  Worker& worker = workers.at(url);
  LinkState before = worker.link.state;
  LinkStep stepped = step(worker.link, event, ports.clock.now(), ports.draw(), settings.link);
  worker.link = std::move(stepped.next);
  bool due = worker.link.due != Instant::max();
  dues.set(url, due ? std::optional(worker.link.due) : std::nullopt);
  bool online = worker.link.state == LinkState::online;
  world.workers.at(url).online = online;
  for (const LinkAction& action : stepped.actions) perform(url, action);
  if ((before == LinkState::online) != online) plan_wanted = true;
  if (before != worker.link.state) voice.changed();
  changed.ring();
}

void Master::Parts::perform(const std::string& url, const LinkAction& action) {
  Worker& worker = workers.at(url);
  if (std::holds_alternative<Dial>(action)) {
    worker.report.reset();
    world.workers.at(url).reported.clear();
    spawn(converse(url, ++worker.dial), "a connection to a detection worker");
  } else if (std::holds_alternative<HangUp>(action)) {
    ++worker.dial;
    if (auto socket = std::exchange(worker.socket, nullptr)) socket->cut();
  } else if (std::holds_alternative<AskState>(action)) {
    send(url, RequestState{});
  } else {
    const auto& tell = std::get<Tell>(action);
    log::info("detector.connection", tell.reason).with(kTopic, kConnectionTopic).with("worker", redact_url(url))
        .with("happened", tell.event);
    voice.told(url, tell);
  }
}

// One dial and the connection that came of it, to its end.
asio::awaitable<void> Master::Parts::converse(std::string url, std::uint64_t number) {
  // A worker hears the master that connected last: one whose right has passed would take it from the next master.
  if (!voice.may_act()) co_return;
  auto dialled = co_await ports.link.dial(url);
  if (workers.at(url).dial != number || stopping || !voice.may_act()) co_return;
  if (!dialled) {
    happened(url, Broken{dialled.error().message});
    co_return;
  }
  std::shared_ptr<WorkerSocket> socket = *std::move(dialled);
  workers.at(url).socket = socket;
  workers.at(url).seen.connected = ports.clock.wall();
  happened(url, Opened{});
  while (auto text = co_await socket->receive()) {
    if (workers.at(url).dial != number) co_return;
    hear(url, *text);
  }
  Worker& worker = workers.at(url);
  if (worker.dial != number) co_return;
  worker.socket.reset();
  happened(url, Broken{socket->reason(), !socket->orderly()});
}

bool Master::Parts::send(const std::string& url, const Command& command) {
  auto at = workers.find(url);
  if (at == workers.end() || at->second.socket == nullptr || !voice.may_act()) return false;
  json::object words = write_command(command);
  if (log::enabled(log::Level::debug))
    log::debug("detector.command").with(kTopic, kConnectionTopic).with("worker", redact_url(url))
        .with("type", std::string_view(words.at("type").get_string()));
  Status queued = at->second.socket->post(json::to_text(words));
  if (!queued) complain(url, "detector.unsent", queued.error().message);
  return bool(queued);
}

void Master::Parts::complain(const std::string& url, std::string_view event, const std::string& why) {
  metrics.counter("weir_cluster_complaints_total", "Messages of workers that could not be used, and commands that were not sent.",
                  {{"event", std::string(event)}}).add();
  if (auto left_out = workers.at(url).complaints.due(ports.clock.now()))
    log::warn(event, why).with(kTopic, kConnectionTopic).with("worker", redact_url(url)).with("left_out", *left_out);
}

// ---- what workers say ----

// Who stood still may hear it when the subscription has long been another worker's, by another master.
void Master::Parts::hear(const std::string& url, const std::string& text) {
  if (!voice.may_act()) return;
  auto message = read_message(text, ports.clock.wall());
  if (!message) return complain(url, "detector.message_refused", message.error().message);
  if (auto* report = std::get_if<StateReport>(&*message)) return hear_report(url, std::move(*report));
  if (const auto* detection = std::get_if<ImageDetection>(&*message)) return hear_detection(url, *detection);
  voice.patched(url, std::get<PatchSession>(*message));
}

void Master::Parts::hear_detection(const std::string& url, const ImageDetection& detection) {
  ResultVerdict verdict = judge_result(url, detection.subscription.text(), world);
  if (verdict == ResultVerdict::accepted) return voice.detected(url, detection);
  std::string what = verdict == ResultVerdict::not_its ? "a subscription that another worker has" : "a subscription that nobody wants";
  complain(url, "detector.result_dropped", fmt::format("the worker sent a result for {}, {}", detection.subscription.text(), what));
}

void Master::Parts::hear_report(const std::string& url, StateReport report) {
  Worker& worker = workers.at(url);
  placement::Worker& known = world.workers.at(url);
  known.cpu_percent = report.cpu_percent;
  known.memory_percent = report.memory_percent;
  known.reported.clear();
  for (const CameraConnection& camera : report.cameras) known.reported.push_back(camera.subscription.text());
  for (const json::Problem& problem : report.problems)
    complain(url, "detector.report_entry_refused", fmt::format("{}: {}", problem.path, problem.what));
  Instant now = ports.clock.now();
  ReportJudgement judged = judge_report(url, report, world, desired, worker.given, now);
  bool news = !judged.missing.empty() || !judged.differing.empty();
  for (const std::string& each : judged.confirmed) {
    news |= world.assignments.at(each).status != placement::Status::active;
    placement::confirm(world, each, now);
  }
  for (const std::string& each : judged.missing)
    if (worker.given.contains(each))
      plan_wanted |= placement::refuse(world, each, "the worker does not report it", now, settings.placement);
  for (const std::string& each : judged.differing)
    plan_wanted |= placement::refuse(world, each, "the worker runs it with another model or crop", now, settings.placement);
  for (const std::string& each : judged.never_given)
    complain(url, "detector.stray", fmt::format("the worker runs {}, which this master never gave to it", each));
  for (const std::string& each : judged.unwanted)
    if (auto id = Identifier::parse(each)) send(url, Unsubscribe{*id});
  for (const std::string& each : judged.over) worker.given.erase(each);
  worker.report = std::move(report);
  worker.seen.last_report = ports.clock.wall();
  if (log::enabled(log::Level::debug))
    log::debug("detector.report").with(kTopic, kConnectionTopic).with("worker", redact_url(url))
        .with("subscriptions", worker.report->cameras.size());
  if (news) voice.changed();
  voice.reported(url, *worker.report);
  happened(url, Reported{});
}

// ---- what is done ----

// Until every worker has reported, the plan does not know what the last master gave them, and would give it twice.
bool Master::Parts::settled() const {
  return ports.clock.now() >= settles_at ||
         std::ranges::all_of(workers, [](const auto& each) { return each.second.link.state == LinkState::online; });
}

void Master::Parts::plan() {
  bool all_known = settled();
  if (all_known) plan_wanted = false;
  if (!voice.may_act()) return;
  Instant now = ports.clock.now();
  placement::Plan made = (all_known ? placement::plan : placement::adopt)(world, now, settings.placement);
  if (made.empty()) return;
  placement::apply(world, made, now);
  carry_out(made);
  voice.changed();
}

void Master::Parts::take(const std::string& subscription, const std::string& url) {
  if (url.empty()) return;
  if (auto id = Identifier::parse(subscription)) send(url, Unsubscribe{*id});
}

void Master::Parts::carry_out(const placement::Plan& made) {
  if (log::enabled(log::Level::debug))
    log::debug("cluster.plan").with(kTopic, kPlacementTopic).with("dropped", made.drop.size())
        .with("assigned", made.assign.size()).with("moved", made.move.size()).with("failed", made.fail.size());
  auto count = [&](const char* what, size_t many) {
    if (many > 0)
      metrics.counter("weir_cluster_placements_total", "Subscriptions that were placed, moved, dropped or given up.",
                      {{"what", what}}).add(static_cast<double>(many));
  };
  count("drop", made.drop.size());
  count("assign", made.assign.size());
  count("move", made.move.size());
  count("fail", made.fail.size());
  for (const auto& each : made.drop) take(each.subscription, each.worker);
  for (const auto& each : made.fail) take(each.subscription, each.from);
  for (const auto& each : made.wait) take(each.subscription, each.from);
  std::map<std::int64_t, std::vector<Gift>> gifts;  // by model
  auto place = [&](const auto& each) {
    if (each.from != each.worker) take(each.subscription, each.from);
    gifts[desired.at(each.subscription).model_id].push_back(
        {each.worker, each.subscription, world.assignments.at(each.subscription).revision});
  };
  for (const auto& each : made.assign) place(each);
  for (const auto& each : made.move) place(each);
  for (auto& [model, all] : gifts) spawn(give(std::move(all)), "subscriptions of one model");
  relieve_others(made);
}

// What a predecessor gave to one worker and then to another, both may report. All but the one that is to keep it are told
// at once.
void Master::Parts::relieve_others(const placement::Plan& made) {
  if (std::ranges::find(made.assign, placement::Why::adopted, &placement::Assign::why) == made.assign.end()) return;
  for (const auto& [url, worker] : world.workers)
    for (const std::string& id : worker.reported) {
      auto has = world.assignments.find(id);
      if (has != world.assignments.end() && !has->second.worker.empty() && has->second.worker != url) take(id, url);
    }
}

bool Master::Parts::still_there(const Gift& gift) const {
  auto assignment = world.assignments.find(gift.subscription);
  auto wanted = world.desired.find(gift.subscription);
  return !stopping && assignment != world.assignments.end() && assignment->second.worker == gift.worker &&
         assignment->second.revision == gift.revision && wanted != world.desired.end() &&
         wanted->second.revision == gift.revision;
}

// The model's address is signed anew for each plan, once for all of its subscriptions: thousands that are placed at once
// are one question to the control plane. Where it cannot be had, that is no fault of the workers': it is asked for again
// for as long as the subscriptions are theirs.
asio::awaitable<void> Master::Parts::give(std::vector<Gift> gifts) {
  auto over = [this](const Gift& each) { return !still_there(each); };
  for (int tries = 0;; ++tries) {
    std::erase_if(gifts, over);
    if (gifts.empty()) co_return;
    DesiredSubscription one = desired.at(gifts.front().subscription);
    auto address = co_await ports.model_url(one);
    std::erase_if(gifts, over);
    if (address) {
      model_addresses[one.model_id] = redact_url(address->reveal());
      for (const Gift& each : gifts) {
        workers.at(each.worker).given.insert(each.subscription);
        send(each.worker, subscribe(desired.at(each.subscription), *address));
      }
      co_return;
    }
    std::string why = fmt::format("Model URL expired or inaccessible: {}", address.error().message);
    for (const Gift& each : gifts) {
      complain(each.worker, "detector.no_model", fmt::format("{}: {}", each.subscription, why));
      world.assignments.at(each.subscription).reason = why;
    }
    Instant again = ports.clock.now() + kAskAgain.delay(tries, ports.draw());
    while (!stopping && ports.clock.now() < again) co_await ports.clock.wait(kPiece);
  }
}

asio::awaitable<void> Master::Parts::keep_time() {
  settles_at = ports.clock.now() + settings.settle;
  Instant plan_at = settles_at;
  while (!stopping) {
    for (const std::string& url : dues.take_due(ports.clock.now())) happened(url, Late{});
    if (ports.clock.now() >= plan_at) {
      plan_wanted = true;
      plan_at = ports.clock.now() + settings.plan_every;
    }
    if (plan_wanted) plan();
    Instant next = std::min(dues.next().value_or(plan_at), plan_at);
    if (next > ports.clock.now() && !(plan_wanted && settled())) co_await changed.wait_until(next);
  }
}

// ---- the whole ----

Master::Master(asio::io_context& io, MasterPorts ports, net::Metrics& metrics, MasterSettings settings, Voice voice)
    : parts_(std::make_unique<Parts>(io, std::move(ports), metrics, std::move(settings), std::move(voice))) {}
Master::~Master() = default;

void Master::desire(DesiredSubscriptions desired) {
  Parts& p = *parts_;
  p.desired = std::move(desired);
  p.world.desired.clear();
  std::erase_if(p.anew, [&](const auto& each) { return !p.desired.contains(each.first); });
  for (const auto& [id, wanted] : p.desired) p.world.desired[id].revision = wanted.revision();
  for (const auto& [id, times] : p.anew) p.world.desired[id].revision += times;
  p.plan_wanted = true;
  p.changed.ring();
}

// A row that says the same under another revision is given to its worker again, as one that has changed.
size_t Master::resubscribe(const std::string& camera) {
  Parts& p = *parts_;
  size_t many = 0;
  for (auto& [id, wanted] : p.world.desired) {
    if (!id.ends_with(";" + camera)) continue;
    ++p.anew[id];
    ++wanted.revision;
    ++many;
  }
  p.plan_wanted = true;
  p.changed.ring();
  return many;
}

asio::awaitable<void> Master::run() {
  Parts& p = *parts_;
  for (const auto& [url, worker] : p.workers) p.happened(url, Begun{});
  co_await p.keep_time();
  for (const auto& [url, worker] : p.workers) p.happened(url, Closed{});
  while (p.running > 0) co_await p.changed.wait_until(p.ports.clock.now() + 1s);
}

void Master::stop() {
  parts_->stopping = true;
  parts_->changed.ring();
}

Status Master::send_to_holder(const std::string& subscription, const Command& command) {
  auto at = parts_->world.assignments.find(subscription);
  if (at == parts_->world.assignments.end() || at->second.worker.empty())
    return Error{Errc::not_found, "no_worker", fmt::format("no worker has the subscription {}", subscription)};
  if (!parts_->send(at->second.worker, command))
    return Error{Errc::unavailable, "worker_offline", fmt::format("the worker of {} is not connected", subscription)};
  return ok();
}

bool Master::send_to(const std::string& worker, const Command& command) { return parts_->send(worker, command); }

void Master::send_to_all(const Command& command) {
  for (const auto& [url, worker] : parts_->workers) parts_->send(url, command);
}

const placement::World& Master::world() const { return parts_->world; }
const DesiredSubscriptions& Master::desired() const { return parts_->desired; }
LinkState Master::state_of(const std::string& worker) const {
  auto at = parts_->workers.find(worker);
  return at == parts_->workers.end() ? LinkState::closed : at->second.link.state;
}
const StateReport* Master::report_of(const std::string& worker) const {
  auto at = parts_->workers.find(worker);
  return at == parts_->workers.end() || !at->second.report ? nullptr : &*at->second.report;
}
Master::Seen Master::seen(const std::string& worker) const {
  auto at = parts_->workers.find(worker);
  return at == parts_->workers.end() ? Seen{} : at->second.seen;
}
std::string Master::model_address(std::int64_t model) const {
  auto at = parts_->model_addresses.find(model);
  return at == parts_->model_addresses.end() ? "" : at->second;
}

}  // namespace weir::cluster
