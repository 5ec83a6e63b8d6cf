// For tests of processes of a cluster: a control plane, a bus, a Redis and workers that do what the test says, in virtual
// time. One thread.
#pragma once

#include "testing.hpp"

#include "weir/cluster/backend.hpp"

#include "fake_redis.hpp"
#include "fake_store.hpp"

namespace weir::cluster::testing {

inline constexpr const char* kA = "ws://a:8000";
inline constexpr const char* kB = "ws://b:8000";

// A control plane on the fake store; each process of the cluster has its own way to it.
class FakePlane final : public ClusterPlane {
 public:
  FakePlane(test::FakeStore& store, Clock& clock) : store_(store), clock_(clock) {}
  Async<std::vector<lease::Answer>> apply(lease::Batch batch) override {
    if (!up) co_return away();
    if (slow_leases > 0s) co_await clock_.wait(slow_leases);
    co_return co_await store_.apply(std::move(batch));
  }
  Async<std::vector<ClusterWish>> desired(ClusterId) override {
    if (!up) co_return away();
    if (slow_rows > 0s) co_await clock_.wait(slow_rows);
    co_return *wishes;
  }
  Async<Secret> model_url(std::int64_t model) override {
    if (!up) co_return away();
    if (model == kNoFile) co_return Error{Errc::conflict, "no_file", "the model has no file"};
    co_return Secret(fmt::format("http://plane/model?link={}", ++links));
  }
  Async<Nothing> subscribe(SubscriptionRecord wanted) override {
    if (!up) co_return away();
    if (wanted.camera.str() == "nowhere") co_return Error{Errc::not_found, "camera_not_found", "no such camera"};
    ad_hoc->insert_or_assign(wanted.id.str(), wanted);
    co_return ok();
  }
  Async<bool> unsubscribe(SubscriptionId subscription) override {
    if (!up) co_return away();
    co_return ad_hoc->erase(subscription.str()) > 0;
  }
  Async<std::vector<SubscriptionId>> subscriptions_of(CameraId camera) override {
    if (!up) co_return away();
    std::vector<SubscriptionId> out;
    for (const auto& [id, each] : *ad_hoc)
      if (each.camera == camera) out.push_back(each.id);
    co_return out;
  }
  Async<Secret> token() override { co_return Secret("token"); }
  static constexpr std::int64_t kNoFile = 99;  // a model without a file
  std::shared_ptr<std::vector<ClusterWish>> wishes;
  std::shared_ptr<std::map<std::string, SubscriptionRecord>> ad_hoc;
  int links = 0;
  bool up = true;
  Duration slow_rows{}, slow_leases{};  // what an answer about these takes

 private:
  static Error away() { return {Errc::unavailable, "away", "the control plane does not answer"}; }
  test::FakeStore& store_;
  Clock& clock_;
};

class FakeBus final : public EventBus {
 public:
  explicit FakeBus(Clock& clock) : clock_(clock) {}
  asio::awaitable<Result<std::vector<Confirmation>>> publish(std::vector<event::Event> events) override {
    if (!up) co_return Error{Errc::unavailable, "away", "the bus does not answer"};
    for (const event::Event& each : events) EXPECT_LT(clock_.now(), each.stamp->deadline);
    said.insert(said.end(), events.begin(), events.end());
    co_return std::vector<Confirmation>(events.size(), Confirmation::accepted);
  }
  asio::awaitable<Status> subscribe(Subscription, std::function<bool(const DeliveredEvent&)> each) override {
    for (int seen = announced;; seen = announced) {
      while (announced == seen && !over) co_await clock_.wait(20ms);
      if (over || !each(DeliveredEvent{})) co_return ok();
    }
  }
  std::vector<event::Event> said;
  int announced = 0;
  bool up = true, over = false;

 private:
  Clock& clock_;
};

class BackendTest : public ::testing::Test {
 protected:
  BackendTest() {
    for (const char* url : {kA, kB}) link_.add(url);
    spawn(io_.get_executor(), tick(), "the store's time and the workers' reports");
  }
  ~BackendTest() override {
    for (auto& [id, one] : backends_) stop(id);
    bus_.over = over_ = true;
    pass(3s);
  }
  Backend& start(const std::string& id) {
    auto& plane = planes_[id] = std::make_unique<FakePlane>(store_, clock_);
    plane->wishes = wishes_;
    plane->ad_hoc = ad_hoc_;
    auto& way = ways_[id] = redis_.connect();
    BackendSettings settings{.owner = {RunnerId::trusted(id), BootId::trusted("boot-" + id)},
                             .cluster = ClusterId::trusted("default"),
                             .master = {.workers = {kA, kB}}};
    BackendPorts ports{*plane, bus_, link_, *way, clock_};
    backends_[id] = std::make_unique<Backend>(io_, ports, metrics_, settings);
    running_[id] = true;
    spawn(io_.get_executor(), backends_[id]->run(), "a backend", [this, id] { running_[id] = false; });
    return *backends_[id];
  }
  void stop(const std::string& id) {
    backends_.at(id)->stop();
    EXPECT_TRUE(within(10s, [&] { return !running_[id]; })) << id;
  }
  // What the coroutine answers, as time passes.
  template <class T>
  Result<T> ask(Async<T> question, Duration limit = 10s) {
    std::optional<Result<T>> answer;
    auto wait = [](Async<T> asked, std::optional<Result<T>>* out) -> asio::awaitable<void> {
      out->emplace(co_await std::move(asked));
    };
    spawn(io_.get_executor(), wait(std::move(question), &answer), "a question of the test");
    EXPECT_TRUE(within(limit, [&] { return answer.has_value(); }));
    return answer ? *std::move(answer) : Error{Errc::internal, "unanswered", "the question was not answered"};
  }
  json::object state(Backend& of) {
    auto said = ask(of.state());
    return said ? *std::move(said) : json::object();
  }
  json::value epoch(Backend& of) { return state(of).at("epoch"); }
  SharedTable table(ClusterTable table) { return *ask(redis_.kept().table(table)); }
  void want(const std::string& id, std::int64_t above = 0) {
    wishes_->push_back({.subscription = wanted(id), .site = SiteId::trusted("s1"), .above = {above}});
    wishes_->back().subscription.tenant = TenantId::trusted("t1");
    ++bus_.announced;
  }
  void pass(Duration time) { clock_.run(clock_.now() + time); }
  bool within(Duration limit, const std::function<bool()>& condition) {
    for (Instant until = clock_.now() + limit; clock_.now() < until; pass(50ms))
      if (condition()) return true;
    return condition();
  }
  asio::awaitable<void> tick() {
    for (int i = 0; !over_; ++i) {
      (void)co_await store_.tick();
      for (auto& [url, worker] : link_.workers)
        if (i % 8 == 0 && worker->up && worker->connection != 0) worker->report();
      co_await clock_.wait(250ms);
    }
  }
  FakeWorker& worker_with(const std::string& subscription) {
    for (auto& [url, worker] : link_.workers)
      if (worker->runs.contains(subscription)) return *worker;
    ADD_FAILURE() << "nobody runs " << subscription;
    return *link_.workers.begin()->second;
  }
  bool runs(const std::string& subscription) {
    return std::ranges::any_of(link_.workers, [&](const auto& each) { return each.second->runs.contains(subscription); });
  }
  // Its number is where its box begins.
  void see(const std::string& subscription, int number = 1) {
    worker_with(subscription).say(ImageDetection{.subscription = *Identifier::parse(subscription),
                                                 .timestamp = clock_.wall(), .model_id = 7, .model_name = "cars",
                                                 .boxes = {{"car", 0.5, {double(number), 2, 3, 4}}}});
  }

  asio::io_context io_;
  VirtualClock clock_{io_};
  test::FakeStore store_{[this] { return clock_.wall(); }};
  FakeLink link_{clock_};
  FakeBus bus_{clock_};
  net::Metrics metrics_;
  std::shared_ptr<std::vector<ClusterWish>> wishes_ = std::make_shared<std::vector<ClusterWish>>();
  std::shared_ptr<std::map<std::string, SubscriptionRecord>> ad_hoc_ =
      std::make_shared<std::map<std::string, SubscriptionRecord>>();
  std::map<std::string, std::unique_ptr<FakePlane>> planes_;
  test::FakeRedis redis_{io_, clock_};
  std::map<std::string, std::unique_ptr<test::FakeRedis::Way>> ways_;
  std::map<std::string, std::unique_ptr<Backend>> backends_;
  std::map<std::string, bool> running_;
  bool over_ = false;
};

// A listener at one process: what it was told.
struct Ear {
  Ear(Backend& at, std::string after = "", std::function<bool()> has_room = {}) {
    auto hear = [this](const Notice& notice) {
      if (const auto* seen = std::get_if<DetectionSeen>(&notice)) {
        numbers.push_back(static_cast<int>(seen->detection.boxes.at(0).box[0]));
        ids.push_back(seen->stream_id);
      } else if (std::holds_alternative<DetectionsLost>(notice)) {
        ++lost;
      } else if (const auto* event = std::get_if<ClusterEvent>(&notice)) {
        events[event->type].push_back(event->payload);
      } else if (const auto* from = std::get_if<ListeningFrom>(&notice)) {
        begins.push_back(from->stream_id);
      } else {
        patches.push_back(std::get<SessionPatched>(notice));
      }
    };
    hearing = at.listen(std::move(after), std::move(hear), std::move(has_room));
  }
  std::vector<int> numbers;
  std::vector<std::string> ids, begins;
  int lost = 0;
  std::map<std::string, std::vector<json::object>> events;
  std::vector<SessionPatched> patches;
  std::unique_ptr<Hearing> hearing;
};

}  // namespace weir::cluster::testing
