#include "weir/cluster/backend.hpp"

#include "lease_keeper.hpp"

#include "weir/base/log.hpp"
#include "weir/base/random.hpp"
#include "weir/base/spawn.hpp"
#include "weir/event/routing.hpp"

#include <algorithm>
#include <deque>

namespace weir::cluster {

namespace asio = boost::asio;

namespace {

constexpr Duration kReleaseWithin = 3s;
constexpr Duration kIdle = 60s;
constexpr Duration kRotation = 100ms;    // what a later version may take to come
constexpr Duration kUnsent = 500ms;      // before results are sent again
constexpr Duration kAgain = 1s;          // after a feed that ended, or rows that could not be read
constexpr size_t kWaitingMax = 10'000;   // events; more are left out
constexpr size_t kBatchMax = 200;
constexpr const char* kMasterHelp = "1 while this process is the cluster's master";
// What a change of rows is announced by: one feed each, because a pattern knows no "or".
constexpr std::string_view kChanges[] = {"*.created.#", "*.updated.#", "*.deleted.#"};

std::string word(LinkState state) {
  constexpr std::string_view words[] = {"connecting", "online", "offline", "reconnecting", "closed"};
  return std::string(words[static_cast<size_t>(state)]);
}
std::string word(placement::Status status) {
  constexpr std::string_view words[] = {"pending", "active", "failed", "recovering"};
  return std::string(words[static_cast<size_t>(status)]);
}
json::value percent(std::optional<double> value) { return value ? json::value(*value) : json::value(nullptr); }

}  // namespace

struct Backend::Parts {
  Parts(asio::io_context& loop, BackendPorts reached, net::Metrics& all, BackendSettings given);

  void look_at_lease();
  void spawn_for_term(asio::awaitable<void> work, std::string_view what);
  asio::awaitable<void> term();
  asio::awaitable<void> follow(std::string pattern);
  asio::awaitable<void> refresh();
  asio::awaitable<void> publish();
  asio::awaitable<void> give_back();
  Voice voice();
  void saw(const std::string& worker, const ImageDetection& detection);
  void count_lost(std::string_view why, size_t many);
  json::object state() const;

  asio::io_context& io;
  const BackendPorts ports;
  net::Metrics& metrics;
  const BackendSettings settings;
  LeaseKeeper lease;
  Alarm look_soon, publish_soon, changed;
  bool over = false;

  // Of the present term.
  struct Seen {
    CameraId camera;
    event::Event event;
  };
  bool in_term() const { return master != nullptr && !over && lease.valid(); }
  std::unique_ptr<Master> master;
  std::map<std::string, ClusterWish> wishes;  // by subscription
  std::deque<Seen> waiting;                   // to be published
  bool term_runs = false;
  int term_work = 0;                          // coroutines
};

Backend::Parts::Parts(asio::io_context& loop, BackendPorts reached, net::Metrics& all, BackendSettings given)
    : io(loop), ports(reached), metrics(all), settings(std::move(given)),
      lease(loop, ports.plane, ports.clock, settings.owner, {settings.tenant, {}}, settings.lease, settings.cluster,
            [this] { look_at_lease(); }),
      look_soon(loop, ports.clock), publish_soon(loop, ports.clock), changed(loop, ports.clock) {}

void Backend::Parts::spawn_for_term(asio::awaitable<void> work, std::string_view what) {
  ++term_work;
  spawn(io.get_executor(), std::move(work), what, [this] {
    --term_work;
    changed.ring();
  });
}

void Backend::Parts::count_lost(std::string_view why, size_t many) {
  metrics.counter("weir_cluster_results_lost_total", "Results of workers that were not published.",
                  {{"why", std::string(why)}}).add(static_cast<double>(many));
}

// ---- the term ----

void Backend::Parts::look_at_lease() {
  changed.ring();
  if (over || term_runs || !lease.valid()) return;
  term_runs = true;
  spawn(io.get_executor(), term(), "a term as master");
}

asio::awaitable<void> Backend::Parts::term() {
  log::info("master-acquired", "this process is the cluster's master").with("cluster", settings.cluster)
      .with("version", lease.version().n);
  metrics.gauge("weir_cluster_master", kMasterHelp).set(1);
  MasterPorts reached{ports.link, [this](const DesiredSubscription& wanted) { return ports.plane.model_url(wanted.model_id); },
                      ports.clock, [] { return random_unit(); }};
  master = std::make_unique<Master>(io, std::move(reached), metrics, settings.master, voice());
  spawn_for_term(master->run(), "the master");
  spawn_for_term(refresh(), "the desired state");
  spawn_for_term(publish(), "the workers' results");
  // The right is extended by every renewal; this coroutine is there when it is not.
  while (in_term()) co_await changed.wait_until(lease.valid_until());
  master->stop();
  while (term_work > 0) {
    look_soon.ring();
    publish_soon.ring();
    co_await changed.wait_until(ports.clock.now() + 100ms);
  }
  master.reset();
  wishes.clear();
  if (!waiting.empty()) count_lost("term_over", waiting.size());
  waiting.clear();
  metrics.gauge("weir_cluster_master", kMasterHelp).set(0);
  log::info("master-lost", "this process is no longer the cluster's master").with("cluster", settings.cluster);
  term_runs = false;
  look_at_lease();
}

Voice Backend::Parts::voice() {
  return {.may_act = [this] { return !over && lease.valid(); },
          .detected = [this](const std::string& worker, const ImageDetection& detection) { saw(worker, detection); },
          .reported = [](const std::string&, const StateReport&) {},
          .patched = [this](const std::string&, const PatchSession& patch) {
            // Nobody listens for sessions at this process.
            master->send_to_all(PatchSessionResult{patch.session, false, "nobody listens"});
          },
          .told = [](const std::string&, const Tell&) {},
          .changed = [] {}};
}

// Asks again at once after an announcement, and now and then without one.
asio::awaitable<void> Backend::Parts::refresh() {
  while (in_term()) {
    auto read = co_await ports.plane.desired(settings.cluster);
    if (!in_term()) co_return;
    if (read) {
      DesiredSubscriptions desired;
      wishes.clear();
      bool later_needed = false;
      for (ClusterWish& wish : *read) {
        std::string id = wish.subscription.id.text();
        later_needed = later_needed || (lease.version().n != 0 && wish.above >= lease.version());
        desired.emplace(id, wish.subscription);
        wishes.emplace(std::move(id), std::move(wish));
      }
      if (later_needed) lease.rotate();
      metrics.gauge("weir_cluster_desired", "Subscriptions that the rows ask for").set(static_cast<double>(desired.size()));
      master->desire(std::move(desired));
    } else {
      log::warn("cluster.rows_unread", "what the cluster shall do cannot be read; it goes on as it is")
          .with("error", read.error().message);
    }
    co_await look_soon.wait_until(ports.clock.now() + (read ? settings.look_every : kAgain));
  }
}

asio::awaitable<void> Backend::Parts::follow(std::string pattern) {
  while (!over) {
    Subscription subscription{.pattern = pattern};
    Status ended = co_await ports.bus.subscribe(std::move(subscription), [this](const DeliveredEvent&) {
      look_soon.ring();
      return !over;
    });
    if (over) co_return;
    if (!ended) log::debug("cluster.feed_ended", ended.error().message);
    look_soon.ring();  // what was announced meanwhile was not heard
    co_await ports.clock.wait(kAgain);
  }
}

// ---- what workers see ----

void Backend::Parts::saw(const std::string& worker, const ImageDetection& detection) {
  auto wish = wishes.find(detection.subscription.text());
  if (wish == wishes.end()) return count_lost("unwanted", 1);
  if (waiting.size() >= kWaitingMax) return count_lost("queue_full", 1);
  const DesiredSubscription& wanted = wish->second.subscription;
  auto camera = CameraId::trusted(detection.subscription.camera);
  event::Event event{.topic = std::string(event::kDetectionsTopic),
                     .routing_key = event::detections_key({wanted.tenant, wish->second.site, camera}),
                     .event_id = event::make_event_id(ports.clock.wall(), random_hex(8))};
  json::array boxes;
  for (const Box& box : detection.boxes)
    boxes.push_back(json::object{{"class", box.label}, {"conf", box.score},
                                 {"bbox_xyxy", json::array(box.box.begin(), box.box.end())}});
  json::object payload = write_detection(detection);
  payload["event_id"] = event.event_id;
  payload["ts"] = to_iso(detection.timestamp);
  payload["runner_id"] = settings.owner.runner.str();
  payload["tenant_id"] = wanted.tenant.str();
  payload["site_id"] = wish->second.site.str();
  payload["camera_uuid"] = camera.str();
  payload["display_id"] = detection.subscription.display;
  payload["worker"] = redact_url(worker);
  payload["detections"] = std::move(boxes);
  event.payload = json::to_text(payload);
  event.captured = detection.timestamp;
  waiting.push_back({std::move(camera), std::move(event)});
  publish_soon.ring();
}

// In order, each batch until it is known what became of it, or until the term is over.
asio::awaitable<void> Backend::Parts::publish() {
  while (in_term()) {
    if (waiting.empty() || lease.version().n == 0) {
      co_await publish_soon.wait_until(ports.clock.now() + (waiting.empty() ? kIdle : kRotation));
      continue;
    }
    std::vector<event::Event> batch;
    for (size_t i = 0; i < std::min(waiting.size(), kBatchMax); ++i) {
      event::Stamp stamp{waiting[i].camera, lease.version(), lease.valid_until()};
      batch.push_back(event::stamped(waiting[i].event, std::move(stamp)));
    }
    size_t sent = batch.size();
    auto answers = co_await ports.bus.publish(std::move(batch));
    if (!answers) {
      co_await ports.clock.wait(kUnsent);
      continue;
    }
    auto stale = static_cast<size_t>(std::ranges::count(*answers, Confirmation::stale));
    if (stale > 0) count_lost("stale", stale);
    metrics.counter("weir_cluster_results_total", "Results of workers that were published.")
        .add(static_cast<double>(sent - stale));
    waiting.erase(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(sent));
  }
}

// ---- the whole ----

asio::awaitable<void> Backend::Parts::give_back() {
  while (term_runs) co_await ports.clock.wait(20ms);
  lease.close();
}

json::object Backend::Parts::state() const {
  json::array workers;
  json::object placed;
  std::map<std::string, json::array> of_worker;
  if (master) {
    for (const auto& [id, each] : master->world().assignments) {
      if (!each.worker.empty()) of_worker[each.worker].emplace_back(id);
      placed[id] = json::object{{"worker", each.worker.empty() ? json::value(nullptr) : json::value(redact_url(each.worker))},
                                {"status", word(each.status)},
                                {"reason", each.reason.empty() ? json::value(nullptr) : json::value(each.reason)}};
    }
    for (const auto& [url, worker] : master->world().workers) {
      json::array& has = of_worker[url];
      workers.push_back(json::object{{"url", redact_url(url)},
                                     {"state", word(master->state_of(url))},
                                     {"online", worker.online},
                                     {"cpuUsage", percent(worker.cpu_percent)},
                                     {"memoryUsage", percent(worker.memory_percent)},
                                     {"capacity", worker.capacity},
                                     {"subscriptionCount", has.size()},
                                     {"subscriptions", std::move(has)}});
    }
  }
  return {{"processId", settings.owner.runner.str()},
          {"cluster", settings.cluster.str()},
          {"isMaster", master != nullptr},
          {"epoch", lease.version().n == 0 ? json::value(nullptr) : json::value(lease.version().n)},
          {"totalWorkers", settings.master.workers.size()},
          {"workers", std::move(workers)},
          {"subscriptions", std::move(placed)}};
}

Backend::Backend(asio::io_context& io, BackendPorts ports, net::Metrics& metrics, BackendSettings settings)
    : parts_(std::make_unique<Parts>(io, ports, metrics, std::move(settings))) {}
Backend::~Backend() = default;

asio::awaitable<void> Backend::run() {
  Parts& p = *parts_;
  for (std::string_view pattern : kChanges)
    spawn(p.io.get_executor(), p.follow(std::string(pattern)), "the announcements of changes");
  co_await p.lease.run(kReleaseWithin);
}

// The term ends first, so that nothing is said any more when the lease is given back.
void Backend::stop() {
  Parts& p = *parts_;
  if (std::exchange(p.over, true)) return;
  p.changed.ring();
  p.look_soon.ring();
  spawn(p.io.get_executor(), p.give_back(), "the lease's end");
}

bool Backend::ready() const { return parts_->lease.answered(); }
bool Backend::is_master() const { return parts_->master != nullptr; }
json::object Backend::state() const { return parts_->state(); }

}  // namespace weir::cluster
