#include "testing.hpp"

#include "weir/cluster/backend.hpp"

#include "fake_store.hpp"

namespace weir::cluster::testing {
namespace {

constexpr const char* kA = "ws://a:8000";
constexpr const char* kB = "ws://b:8000";

// A control plane on the fake store; each process of the cluster has its own way to it.
class FakePlane final : public ClusterPlane {
 public:
  explicit FakePlane(test::FakeStore& store) : store_(store) {}
  Async<std::vector<lease::Answer>> apply(lease::Batch batch) override {
    if (!up) co_return away();
    co_return co_await store_.apply(std::move(batch));
  }
  Async<std::vector<ClusterWish>> desired(ClusterId) override {
    if (!up) co_return away();
    co_return *wishes;
  }
  Async<Secret> model_url(std::int64_t) override { co_return Secret("http://plane/model"); }
  Async<Secret> token() override { co_return Secret("token"); }
  std::shared_ptr<std::vector<ClusterWish>> wishes;
  bool up = true;

 private:
  static Error away() { return {Errc::unavailable, "away", "the control plane does not answer"}; }
  test::FakeStore& store_;
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
    auto& plane = planes_[id] = std::make_unique<FakePlane>(store_);
    plane->wishes = wishes_;
    BackendSettings settings{.owner = {RunnerId::trusted(id), BootId::trusted("boot-" + id)},
                             .cluster = ClusterId::trusted("default"),
                             .master = {.workers = {kA, kB}}};
    backends_[id] = std::make_unique<Backend>(io_, BackendPorts{*plane, bus_, link_, clock_}, metrics_, settings);
    running_[id] = true;
    spawn(io_.get_executor(), backends_[id]->run(), "a backend", [this, id] { running_[id] = false; });
    return *backends_[id];
  }
  void stop(const std::string& id) {
    backends_.at(id)->stop();
    EXPECT_TRUE(within(10s, [&] { return !running_[id]; })) << id;
  }
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
  void see(const std::string& subscription) {
    worker_with(subscription).say(ImageDetection{.subscription = *Identifier::parse(subscription),
                                                 .timestamp = clock_.wall(), .model_id = 7, .model_name = "cars",
                                                 .boxes = {{"car", 0.5, {1, 2, 3, 4}}}});
  }

  asio::io_context io_;
  VirtualClock clock_{io_};
  test::FakeStore store_{[this] { return clock_.wall(); }};
  FakeLink link_{clock_};
  FakeBus bus_{clock_};
  net::Metrics metrics_;
  std::shared_ptr<std::vector<ClusterWish>> wishes_ = std::make_shared<std::vector<ClusterWish>>();
  std::map<std::string, std::unique_ptr<FakePlane>> planes_;
  std::map<std::string, std::unique_ptr<Backend>> backends_;
  std::map<std::string, bool> running_;
  bool over_ = false;
};

TEST_F(BackendTest, OfTwoProcesses_OneIsTheMaster_AndWhatWorkersSeeIsPublishedUnderItsVersion) {
  want("d1;c1");
  Backend& one = start("one");
  ASSERT_TRUE(within(10s, [&] { return one.is_master() && runs("d1;c1"); }));
  Backend& two = start("two");
  pass(20s);
  EXPECT_FALSE(two.is_master());
  EXPECT_TRUE(two.ready());
  see("d1;c1");
  ASSERT_TRUE(within(2s, [&] { return bus_.said.size() == 1; }));
  const event::Event& said = bus_.said[0];
  EXPECT_EQ(said.routing_key, "detections.t1.s1.c1");
  EXPECT_EQ(said.stamp->version.n, one.state().at("epoch").as_int64());
  auto payload = *json::parse_text(said.payload);
  EXPECT_EQ(payload.at("runner_id"), "one");
  EXPECT_EQ(payload.at("lease_version"), said.stamp->version.n);
  EXPECT_EQ(payload.at("detections").at(0).at("class"), "car");
  EXPECT_EQ(json::to_text(payload.at("detections").at(0).at("bbox_xyxy")), "[1,2,3,4]");
}

TEST_F(BackendTest, AnAnnouncedChange_IsOnTheWireAtOnce) {
  Backend& one = start("one");
  ASSERT_TRUE(within(15s, [&] { return one.is_master(); }));
  pass(7s);
  want("d1;c1");
  EXPECT_TRUE(within(200ms, [&] { return runs("d1;c1"); }));
  wishes_->clear();
  ++bus_.announced;
  EXPECT_TRUE(within(200ms, [&] { return !runs("d1;c1"); }));
}

TEST_F(BackendTest, AMasterThatIsCutOff_IsSilentAtItsDeadline_AndItsSuccessorAdoptsWhatRuns) {
  want("d1;c1");
  Backend& one = start("one");
  ASSERT_TRUE(within(10s, [&] { return runs("d1;c1"); }));
  Backend& two = start("two");
  pass(3s);
  planes_["one"]->up = false;
  EXPECT_TRUE(within(6s, [&] { return !one.is_master(); })) << "it ends its term by itself";
  EXPECT_FALSE(two.is_master()) << "before anybody else may begin one";
  EXPECT_TRUE(runs("d1;c1")) << "the worker goes on";
  ASSERT_TRUE(within(10s, [&] { return two.is_master(); }));
  pass(10s);
  size_t given = worker_with("d1;c1").times("subscribe d1;c1");
  see("d1;c1");
  ASSERT_TRUE(within(2s, [&] { return bus_.said.size() == 1; }));
  EXPECT_EQ(json::parse_text(bus_.said[0].payload)->at("runner_id"), "two");
  EXPECT_LE(given, 2u) << "once by each master at most";
  planes_["one"]->up = true;
  pass(10s);
  EXPECT_FALSE(one.is_master());
}

TEST_F(BackendTest, ACameraWithALaterVersion_MakesTheMasterRotate) {
  Backend& one = start("one");
  ASSERT_TRUE(within(10s, [&] { return one.is_master(); }));
  std::int64_t before = one.state().at("epoch").as_int64();
  want("d1;c1", before);
  ASSERT_TRUE(within(10s, [&] { return runs("d1;c1") && one.state().at("epoch").is_int64(); }));
  EXPECT_TRUE(within(5s, [&] { return one.state().at("epoch") != json::value(nullptr) && one.state().at("epoch").as_int64() > before; }));
  EXPECT_TRUE(one.is_master()) << "in the same term";
}

TEST_F(BackendTest, ABusThatIsAway_GetsEverythingOnceWhenItIsBack) {
  want("d1;c1");
  Backend& one = start("one");
  ASSERT_TRUE(within(10s, [&] { return one.is_master() && runs("d1;c1"); }));
  bus_.up = false;
  for (int i = 0; i < 5; ++i) see("d1;c1");
  pass(3s);
  EXPECT_TRUE(bus_.said.empty());
  bus_.up = true;
  EXPECT_TRUE(within(2s, [&] { return bus_.said.size() == 5; }));
  pass(2s);
  EXPECT_EQ(bus_.said.size(), 5u);
}

TEST_F(BackendTest, AProcessThatIsStopped_GivesTheLeaseBackAtOnce) {
  Backend& one = start("one");
  ASSERT_TRUE(within(10s, [&] { return one.is_master(); }));
  Backend& two = start("two");
  pass(2s);
  stop("one");
  EXPECT_FALSE(one.is_master());
  EXPECT_TRUE(within(3s, [&] { return two.is_master(); }));
}

}  // namespace
}  // namespace weir::cluster::testing
