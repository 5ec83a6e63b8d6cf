#include "term.hpp"

#include "topics.hpp"

#include "weir/base/log.hpp"

namespace weir::cluster {

namespace asio = boost::asio;

namespace {

constexpr Duration kAgain = 1s;           // after rows that could not be read
constexpr Duration kRowsApart = 100ms;    // two readings of all rows
constexpr Duration kPatchLook = 250ms;
constexpr const char* kMasterHelp = "1 while this process is the cluster's master";

std::map<std::string, std::string> shown_addresses(const std::vector<std::string>& workers) {
  std::map<std::string, std::string> out;
  for (const std::string& url : workers) out.emplace(url, redact_url(url));
  return out;
}
std::set<std::string> values_of(const std::map<std::string, std::string>& map) {
  std::set<std::string> out;
  for (const auto& [key, value] : map) out.insert(value);
  return out;
}

}  // namespace

Term::Term(Process process)
    : process_(std::move(process)), id_(process_.settings.owner.runner.str()),
      shown_(shown_addresses(process_.settings.master.workers)), crew_(process_.io, process_.ports.clock),
      changed_(process_.io, process_.ports.clock), look_soon_(process_.io, process_.ports.clock),
      patches_alarm_(process_.io, process_.ports.clock),
      pen_(process_.io, process_.ports.coordination, process_.lease, process_.ports.clock, process_.metrics,
           process_.may_act, [this] { moved_on(); }),
      roster_(process_.io, process_.ports.coordination, pen_, process_.ports.clock, process_.metrics, id_,
              values_of(shown_),
              {[this](std::string event, const std::string& slave) { happened(std::move(event), {{"slaveId", slave}}); },
               [this] { courier_.go_on(); }}),
      master_(process_.io,
              {process_.ports.link,
               [this](const DesiredSubscription& wanted) { return process_.ports.plane.model_url(wanted.model_id); },
               process_.ports.clock, process_.settings.draw},
              process_.metrics, process_.settings.master, voice()),
      courier_(crew_, pen_, process_.metrics, [this](const std::string& worker) { return roster_.slave_of(worker); },
               [this](const DetectionRouted& what) { process_.feed.tell(DetectionSeen{"", what.worker, what.detection}); }),
      crier_(process_.io, pen_, process_.ports.clock, [this](const Saying& what) { tell_here(what); }),
      tables_(process_.io, pen_, master_, process_.ports.clock, id_),
      results_(process_.io, process_.ports.bus, process_.lease, process_.ports.clock, process_.metrics,
               process_.settings.owner.runner) {}

// ---- from beginning to end ----

asio::awaitable<void> Term::run() {
  log::info("master-acquired", "this process is the cluster's master").with(kTopic, kClusterTopic)
      .with("cluster", process_.settings.cluster).with("version", process_.lease.version().n);
  process_.metrics.gauge("weir_cluster_master", kMasterHelp).set(1);
  happened("master-acquired", {{"processId", id_}});
  crew_.spawn(master_.run(), "the master");
  crew_.spawn(pen_.keep_open(), "the cluster's epoch");
  crew_.spawn(roster_.run(), "the cluster's processes");
  crew_.spawn(crier_.run(), "the cluster's events");
  crew_.spawn(tables_.run(), "the cluster's tables");
  crew_.spawn(results_.run(), "the workers' results");
  crew_.spawn(refresh(), "the desired state");
  crew_.spawn(end_late_patches(), "sessions' changes");
  std::vector<std::string> channels{std::string(kMasterCommands), std::string(kUpstream)};
  auto listening = process_.ports.coordination.listen(std::move(channels), [this](const Heard& each) { heard(each); });
  // Each renewal moves the right's end on and rings changed_; where none came in time, this loop ends the term.
  while (goes_on()) co_await changed_.wait_until(process_.lease.valid_until());
  over_ = true;
  listening.reset();
  master_.stop();
  pen_.stop();
  roster_.stop();
  crier_.stop();
  tables_.stop();
  results_.stop();
  look_soon_.ring();
  patches_alarm_.ring();
  co_await crew_.wait();
  if (courier_.waiting() > 0) results_.count_lost("term_over_redis", courier_.waiting());
  process_.metrics.gauge("weir_cluster_master", kMasterHelp).set(0);
  log::info("master-lost", "this process is no longer the cluster's master").with(kTopic, kClusterTopic)
      .with("cluster", process_.settings.cluster);
  process_.feed.tell(ClusterEvent{"master-lost", {{"processId", id_}}});
}

void Term::look() {
  changed_.ring();
  pen_.look();
}

// The pen became ready, or ceased to be.
void Term::moved_on() {
  courier_.go_on();
  crier_.go_on();
  tables_.go_on();
  roster_.go_on();
}

// ---- what is desired ----

void Term::rows_changed() {
  rows_changed_ = true;
  look_soon_.ring();
}

asio::awaitable<void> Term::refresh() {
  while (goes_on()) {
    rows_changed_ = false;
    Instant began = process_.ports.clock.now();
    auto read = co_await process_.ports.plane.desired(process_.settings.cluster);
    if (!goes_on()) co_return;
    if (read)
      take_rows(*std::move(read));
    else
      log::warn("cluster.rows_unread", "the control plane did not say what the cluster shall do; the master keeps its present subscriptions")
          .with(kTopic, kClusterTopic).with("error", read.error().message);
    Instant next = process_.ports.clock.now() + (read ? process_.settings.look_every : kAgain);
    if (!rows_changed_) co_await look_soon_.wait_until(next);
    while (goes_on() && process_.ports.clock.now() < began + kRowsApart)
      co_await process_.ports.clock.wait_until(began + kRowsApart);
  }
}

void Term::take_rows(std::vector<ClusterWish> rows) {
  DesiredSubscriptions desired;
  wishes_.clear();
  bool later_needed = false;
  for (ClusterWish& wish : rows) {
    std::string id = wish.subscription.id.text();
    later_needed |= process_.lease.version().n != 0 && wish.above >= process_.lease.version();
    desired.emplace(id, wish.subscription);
    wishes_.emplace(std::move(id), std::move(wish));
  }
  if (later_needed) process_.lease.rotate();
  process_.metrics.gauge("weir_cluster_desired", "Subscriptions that the rows ask for")
      .set(static_cast<double>(desired.size()));
  master_.desire(std::move(desired));
  tables_.changed();
}

// ---- what the master hears ----

Voice Term::voice() {
  return {.may_act = [this] { return goes_on(); },
          .detected = [this](const std::string& worker, const ImageDetection& seen) { saw(worker, seen); },
          .reported = [this](const std::string& worker, const StateReport& report) {
            if (!somebody_listens()) return;
            json::object said = write_message(report);
            said.erase("type");
            happened("worker:state_report", {{"url", shown(worker)}, {"report", std::move(said)}});
          },
          .patched = [this](const std::string& worker, const PatchSession& patch) { patched(worker, patch); },
          .told = [this](const std::string& worker, const Tell& tell) { told(worker, tell); },
          .changed = [this] { tables_.changed(); }};
}

void Term::saw(const std::string& worker, const ImageDetection& detection) {
  auto wish = wishes_.find(detection.subscription.text());
  if (wish == wishes_.end()) return results_.count_lost("unwanted", 1);
  courier_.take(shown(worker), detection);
  results_.take(shown(worker), detection, wish->second);
}

void Term::told(const std::string& worker, const Tell& tell) {
  json::object payload{{"url", shown(worker)}};
  if (tell.event == "worker:disconnected") payload["reason"] = tell.reason;
  if (tell.event == "worker:websocket_error") payload["error"] = tell.reason;
  happened(std::string(tell.event), std::move(payload));
}

void Term::patched(const std::string& worker, const PatchSession& patch) {
  auto refuse = [&](std::string why) {
    master_.send_to(worker, PatchSessionResult{patch.session, false, std::move(why)});
  };
  if (!somebody_listens()) return refuse("nobody listens");
  if (!patches_.open(worker, patch.session, process_.ports.clock.now()))
    return refuse("too many changes of sessions wait for an answer");
  crier_.tell(PatchRequested{patch.session, patch.data});
  patches_alarm_.ring();
}

asio::awaitable<void> Term::end_late_patches() {
  while (goes_on()) {
    for (const Patches::Open& each : patches_.late(process_.ports.clock.now()))
      master_.send_to(each.worker, PatchSessionResult{each.session, false, "no listener answered in time"});
    co_await patches_alarm_.wait_until(process_.ports.clock.now() + kPatchLook);
  }
}

void Term::happened(std::string event, json::object payload) {
  process_.metrics.counter("weir_cluster_events_total", "What happened to workers and processes of the cluster.",
                           {{"event", event}}).add();
  crier_.tell(ClusterHappened{std::move(event), std::move(payload)});
}

void Term::tell_here(const Saying& what) {
  if (const auto* happened = std::get_if<ClusterHappened>(&what))
    process_.feed.tell(ClusterEvent{happened->event, happened->payload});
  else if (const auto* patch = std::get_if<PatchRequested>(&what))
    process_.feed.tell(SessionPatched{patch->session, patch->data});
}

// ---- what other processes ask ----

Status Term::set_session(const SetSessionId& session) {
  if (!goes_on()) return Error{Errc::unavailable, "no_master", "this process is not the cluster's master any more", {}};
  master_.send_to_all(session);
  return ok();
}

Status Term::answer_patch(const PatchSessionResult& result) {
  auto asked = patches_.answered(result.session);
  if (asked.empty())
    return Error{Errc::conflict, "patch_over", "the answer comes too late, or another one was first", {}};
  for (const Patches::Open& each : asked) master_.send_to(each.worker, result);
  return ok();
}

// A request under a lower epoch is served: its sender has not heard of this master yet. A higher one means that a newer
// master may exist, so the control plane is asked about the lease.
void Term::heard(const Heard& heard) {
  if (!goes_on()) return;
  if (heard.begun) return rows_changed();  // what was said before may have been missed
  auto said = read_announcement(heard.text);
  if (!said) {
    log::debug("cluster.unread", said.error().message).with(kTopic, kClusterTopic).with("channel", heard.channel);
    return;
  }
  if (said->epoch > process_.lease.version().n) process_.lease.look();
  if (log::enabled(log::Level::debug) && !std::holds_alternative<Heartbeat>(said->what))
    log::debug("cluster.asked", heard.text).with(kTopic, kPlacementTopic).with("channel", heard.channel);
  if (std::holds_alternative<RegenerateSubscriptions>(said->what)) rows_changed();
  else if (const auto* heartbeat = std::get_if<Heartbeat>(&said->what)) roster_.heard(*heartbeat);
  else if (const auto* set = std::get_if<SessionSet>(&said->what))
    answer(set->slave, set->request, set_session({set->display, set->session}));
  else if (const auto* answered = std::get_if<PatchAnswered>(&said->what))
    answer(answered->slave, answered->request, answer_patch(answered->result));
}

void Term::answer(const std::string& slave, std::int64_t request, const Status& done) {
  CommandResponse response{.slave = slave, .request = request, .success = bool(done)};
  if (!done) response.reason = done.error().reason, response.message = done.error().message;
  crew_.spawn(respond(std::move(response)), "an answer to another process");
}

asio::awaitable<void> Term::respond(CommandResponse response) {
  std::string channel = slave_channel(response.slave);
  Saying what = std::move(response);
  (void)co_await pen_.publish(std::move(channel), std::move(what));
}

}  // namespace weir::cluster
