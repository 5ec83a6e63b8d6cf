#include "testing.hpp"

#include "weir/cluster/master.hpp"

#include <boost/asio/post.hpp>

namespace weir::cluster::testing {
namespace {

constexpr const char* kA = "ws://a:8000";
constexpr const char* kB = "ws://b:8000";
constexpr const char* kC = "ws://c:8000";

class MasterTest : public ::testing::Test {
 protected:
  MasterTest() {
    for (const char* url : {kA, kB}) link_.add(url);
    spawn(io_.get_executor(), report_on(), "the workers' reports");
  }
  ~MasterTest() override {
    stop();
    over_ = true;
    pass(3s);
  }
  void start() {
    MasterSettings settings{.workers = workers_};
    Voice voice{.may_act = [this] { return may_act_; },
                .detected = [this](const std::string&, const ImageDetection& d) { detected_.push_back(d.subscription.text()); },
                .reported = [](const std::string&, const StateReport&) {},
                .patched = [this](const std::string&, const PatchSession& patch) { patched_.push_back(patch.session); },
                .told = [this](const std::string& url, const Tell& tell) { told_.push_back(url + " " + std::string(tell.event)); },
                .changed = [] {}};
    auto model_url = [this](const DesiredSubscription&) { return address(); };
    master_.emplace(io_, MasterPorts{link_, model_url, clock_, [] { return 0.5; }}, metrics_, settings, voice);
    running_ = true;
    spawn(io_.get_executor(), master_->run(), "the master", [this] { running_ = false; });
  }
  void stop() {
    if (!master_) return;
    master_->stop();
    EXPECT_TRUE(within(20s, [&] { return !running_; })) << "everything of the master ends";
    master_.reset();
  }
  Async<Secret> address() {
    ++asked_;
    co_await clock_.wait(20ms);
    if (!models_up_) co_return Error{Errc::unavailable, "away", "the control plane does not answer"};
    co_return Secret("http://plane/v1/models/7/file?signature=x");
  }
  void pass(Duration time) { clock_.run(clock_.now() + time); }
  bool within(Duration limit, const std::function<bool()>& condition) {
    for (Instant until = clock_.now() + limit; clock_.now() < until; pass(50ms))
      if (condition()) return true;
    return condition();
  }
  // As a worker does every two seconds.
  asio::awaitable<void> report_on() {
    while (!over_) {
      for (auto& [url, worker] : link_.workers)
        if (worker->up && worker->connection != 0 && !worker->silent) worker->report();
      co_await clock_.wait(2s);
    }
  }
  void desire(const std::vector<std::string>& ids) {
    DesiredSubscriptions all;
    for (const std::string& id : ids) all.emplace(id, wanted(id));
    master_->desire(std::move(all));
  }
  bool all_active(size_t count) {
    size_t active = 0;
    for (const auto& [id, each] : master_->world().assignments) active += each.status == placement::Status::active ? 1 : 0;
    return active == count && master_->world().assignments.size() == count;
  }
  FakeWorker& worker(const char* url) { return *link_.workers.at(url); }
  static ImageDetection result(const std::string& id) {
    return {.subscription = *Identifier::parse(id), .timestamp = {}, .model_id = 7, .model_name = "cars"};
  }

  asio::io_context io_;
  VirtualClock clock_{io_};
  FakeLink link_{clock_};
  net::Metrics metrics_;
  std::vector<std::string> workers_ = {kA, kB};
  std::optional<Master> master_;
  bool running_ = false, over_ = false, may_act_ = true, models_up_ = true;
  int asked_ = 0;  // for a model's address
  std::vector<std::string> detected_, told_;
  std::vector<std::int64_t> patched_;
};

TEST_F(MasterTest, ManyThatArePlacedAtOnce_AreOneQuestionForTheirModel) {
  std::vector<std::string> all;
  for (int n = 0; n < 150; ++n) all.push_back(fmt::format("d{};c", n));
  start();
  desire(all);
  EXPECT_TRUE(within(20s, [&] { return all_active(150); }));
  EXPECT_EQ(asked_, 1);
}

TEST_F(MasterTest, WhatIsDesired_IsSpreadOverTheWorkers_AndTakenBackWhenItIsNot) {
  start();
  desire({"d1;c1", "d2;c1", "d3;c2", "d4;c3"});
  ASSERT_TRUE(within(10s, [&] { return all_active(4); }));
  EXPECT_EQ(worker(kA).runs.size(), 2u);
  EXPECT_EQ(worker(kB).runs.size(), 2u);
  desire({"d1;c1"});
  ASSERT_TRUE(within(5s, [&] { return worker(kA).runs.size() + worker(kB).runs.size() == 1; }));
  EXPECT_TRUE(all_active(1));
}

TEST_F(MasterTest, OfAWorkerThatDies_AllGoElsewhere_AndWhatItStillSaysLaterIsDropped) {
  start();
  desire({"d1;c1", "d2;c2"});
  ASSERT_TRUE(within(10s, [&] { return all_active(2); }));
  std::string lost = *worker(kA).runs.begin();
  worker(kA).up = false;
  ASSERT_TRUE(within(12s, [&] { return worker(kB).runs.size() == 2 && all_active(2); }));
  // It was only cut off: it is back, still runs what it had, and says so.
  worker(kA).up = true;
  ASSERT_TRUE(within(15s, [&] { return master_->state_of(kA) == LinkState::online; }));
  worker(kA).say(result(lost));
  pass(100ms);
  EXPECT_TRUE(detected_.empty());
  EXPECT_TRUE(within(5s, [&] { return !worker(kA).runs.contains(lost); })) << "it is told to stop";
  worker(kB).say(result(lost));
  EXPECT_TRUE(within(1s, [&] { return detected_ == std::vector<std::string>{lost}; }));
}

TEST_F(MasterTest, AWorkerThatFreezes_IsHungUpAfterTenSeconds_AndItsSubscriptionsMove) {
  start();
  desire({"d1;c1", "d2;c2"});
  ASSERT_TRUE(within(10s, [&] { return all_active(2); }));
  worker(kA).silent = true;
  EXPECT_TRUE(within(13s, [&] { return worker(kB).runs.size() == 2; }));
}

TEST_F(MasterTest, ANewMaster_TakesOverWhatWorkersRun_AndDisturbsNothing) {
  worker(kA).runs = {"d1;c1", "d2;c2"};
  worker(kB).runs = {"d3;c3"};
  start();
  desire({"d1;c1", "d2;c2", "d3;c3"});
  ASSERT_TRUE(within(10s, [&] { return all_active(3); }));
  EXPECT_EQ(master_->world().assignments.at("d1;c1").worker, kA);
  EXPECT_EQ(master_->world().assignments.at("d3;c3").worker, kB);
  for (const char* url : {kA, kB})
    for (const std::string& each : worker(url).heard) EXPECT_FALSE(each.starts_with("unsubscribe")) << url << " " << each;
}

TEST_F(MasterTest, AMasterWhoseTermIsOver_SendsNothing) {
  start();
  desire({"d1;c1"});
  ASSERT_TRUE(within(10s, [&] { return all_active(1); }));
  may_act_ = false;
  auto heard = worker(kA).heard.size() + worker(kB).heard.size();
  desire({"d1;c1", "d2;c2"});
  pass(20s);
  EXPECT_EQ(worker(kA).heard.size() + worker(kB).heard.size(), heard);
}

TEST_F(MasterTest, WhatTwoWorkersRunWhenAMasterBegins_IsEndedOnOneOfThem_WithinFiveSeconds) {
  for (const char* url : {kA, kB}) worker(url).runs = {"d1;c1"};
  link_.add(kC).up = false;
  workers_.push_back(kC);  // so the master waits for all reports in vain
  start();
  desire({"d1;c1"});
  EXPECT_TRUE(within(4900ms, [&] { return worker(kA).runs.size() + worker(kB).runs.size() == 1; }));
  pass(10s);
  EXPECT_EQ(worker(kA).runs.size() + worker(kB).runs.size(), 1u);
  EXPECT_TRUE(all_active(1));
}

TEST_F(MasterTest, WhoMayNotAct_PassesNoResultOn) {
  start();
  desire({"d1;c1", "d2;c2"});
  ASSERT_TRUE(within(10s, [&] { return all_active(2); }));
  std::string has = *worker(kA).runs.begin();
  may_act_ = false;
  worker(kA).say(result(has));
  pass(1s);
  EXPECT_TRUE(detected_.empty());
  may_act_ = true;
  worker(kA).say(result(has));
  EXPECT_TRUE(within(1s, [&] { return detected_ == std::vector<std::string>{has}; }));
}

TEST_F(MasterTest, AWorkerThatAcceptsAndNeverReportsIt_LosesItToAnother) {
  worker(kA).obedient = false;
  start();
  desire({"d1;c1", "d2;c2"});
  EXPECT_TRUE(within(60s, [&] { return worker(kB).runs.size() == 2 && all_active(2); }));
}

TEST_F(MasterTest, WhatAWorkerRuns_IsItsOwnAtOnce_AlsoWhereAnotherWorkerDoesNotAnswer) {
  worker(kA).runs = {"d1;c1"};
  worker(kB).up = false;
  start();
  desire({"d1;c1", "d2;c2"});
  ASSERT_TRUE(within(1s, [&] { return master_->world().assignments.contains("d1;c1"); }));
  worker(kA).say(result("d1;c1"));
  EXPECT_TRUE(within(500ms, [&] { return detected_.size() == 1; })) << "nobody misses what it sees";
  EXPECT_FALSE(master_->world().assignments.contains("d2;c2")) << "the other worker may run it";
  EXPECT_TRUE(within(10s, [&] { return all_active(2); }));
}

TEST_F(MasterTest, AfterItsRightHasPassed_NoWorkerIsDialled) {
  start();
  desire({"d1;c1"});
  ASSERT_TRUE(within(10s, [&] { return all_active(1); }));
  worker(kA).up = worker(kB).up = false;
  pass(1s);
  int before = worker(kA).connections + worker(kB).connections;
  may_act_ = false;
  worker(kA).up = worker(kB).up = true;
  pass(30s);
  EXPECT_EQ(worker(kA).connections + worker(kB).connections, before);
}

TEST_F(MasterTest, NonsenseFromAWorker_IsCounted_AndTouchesNothingElse) {
  start();
  desire({"d1;c1", "d2;c2"});
  ASSERT_TRUE(within(10s, [&] { return all_active(2); }));
  for (const char* text : {"", "nonsense", "[]", R"({"type":"unheardOf"})", R"({"type":"imageDetection","subscriptionIdentifier":"x"})"})
    worker(kA).outbox.emplace_back(text);
  worker(kA).say(result("d9;c9"));
  worker(kA).say(PatchSession{.session = 4, .data = json::object{{"a", 1}}});
  pass(3s);
  EXPECT_TRUE(detected_.empty());
  EXPECT_EQ(patched_, std::vector<std::int64_t>{4});
  EXPECT_TRUE(all_active(2));
  EXPECT_EQ(worker(kA).connections, 1);
  EXPECT_NE(metrics_.text().find("detector.message_refused"), std::string::npos);
}

TEST_F(MasterTest, WithoutAnAddressForTheModel_ASubscriptionWaits_AndGoesOnWhenThereIsOne) {
  models_up_ = false;
  start();
  desire({"d1;c1"});
  pass(3s);
  EXPECT_TRUE(worker(kA).runs.empty() && worker(kB).runs.empty());
  models_up_ = true;
  EXPECT_TRUE(within(120s, [&] { return all_active(1); }));
}

TEST_F(MasterTest, WhatWorkersRunForNobody_IsEnded) {
  worker(kA).runs = {"d9;c9"};
  start();
  desire({});
  EXPECT_TRUE(within(5s, [&] { return worker(kA).runs.empty(); }));
  EXPECT_TRUE(std::ranges::find(told_, std::string(kA) + " worker:online") != told_.end());
}

}  // namespace
}  // namespace weir::cluster::testing
