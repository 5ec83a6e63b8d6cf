// Detection workers that freeze, that come later, and that misbehave: what a real `weir cluster` makes of them, while the
// workers keep a diary of what it told them.
#include "scripted_house.hpp"

#include <cstdio>

namespace weir::test {
namespace {

class ClusterWorkers : public ScriptedHouse {
 protected:
  // `how_many` displays d<first> … of camera cam-a.
  void displays(int first, int how_many) {
    for (int n = first; n < first + how_many; ++n) display(fmt::format("d{}", n), "cam-a");
  }
  static std::string subscription(int display) { return fmt::format("d{};cam-a", display); }
  json::object worker_state(const std::string& address) const {
    json::object said = state("one");
    if (!said.empty())
      for (const json::value& each : said.at("workers").as_array())
        if (each.at("url") == json::value(address)) return each.as_object();
    return {};
  }
  // The lines of the process's log about this worker that hold this text.
  size_t logged(const std::string& text, const ScriptedWorker& about) const {
    std::istringstream lines(processes_.at("one")->log());
    size_t found = 0;
    for (std::string line; std::getline(lines, line);)
      found += line.find(text) != std::string::npos && line.find(about.address()) != std::string::npos ? 1 : 0;
    return found;
  }
};

// What the tests below and those of random changes rely on.
TEST(ScriptedDiaries, ShowWhatRanTwice_AndWhatWasDeliveredOfAWorkerThatHadLostIt) {
  auto entry = [](std::int64_t at, std::string what, std::string of = "d;c") {
    return DiaryEntry{.at = at, .what = std::move(what), .subscription = std::move(of)};
  };
  Diaries diaries;
  diaries["w0"] = {entry(1000, "subscribe"), entry(9000, "unsubscribe"), entry(20'000, "subscribe"), entry(30'000, "frozen", ""),
                   entry(60'000, "thawed", ""), entry(60'500, "unsubscribe"), entry(70'000, "subscribe"), entry(80'000, "killed", "")};
  diaries["w1"] = {entry(8700, "subscribe"), entry(19'900, "unsubscribe"), entry(45'000, "subscribe"), entry(75'000, "unsubscribe"),
                   entry(85'000, "subscribe"), entry(86'000, "unsubscribe")};
  EXPECT_EQ(longest_overlap(diaries).first, 5000) << longest_overlap(diaries).second;
  diaries["w0"].resize(6);
  EXPECT_EQ(longest_overlap(diaries).first, 500);
  diaries["w0"].resize(2);
  EXPECT_EQ(longest_overlap(diaries).first, 300);

  auto delivered = [](const std::string& plate) {
    return json::object{{"subscriptionIdentifier", "d;c"}, {"data", {{"detection", {{"licensePlateText", plate}}}}}};
  };
  std::vector<json::object> heard{delivered("w0 1500"), delivered("w0 9000"), delivered("w0 9001"), delivered("w1 7000"),
                                  delivered("w1 43500"), delivered("w1 42500")};
  EXPECT_EQ(foreign_results(heard, diaries), (std::vector<std::string>{"d;c of w0 9001", "d;c of w1 42500"}));
}

TEST_F(ClusterWorkers, AFrozenWorker_LosesItsSubscriptions_AndNothingOfItIsHeardWhenItGoesOn) {
  reserve(2);
  for (int n = 0; n < 2; ++n) work(n, fmt::format("w{}", n));
  displays(1, 4);
  start("one");
  auto all_run = [&](const std::string& at) {
    for (int n = 1; n <= 4; ++n)
      if (std::string has = runs_at("one", subscription(n)); has.empty() || (!at.empty() && has != at)) return false;
    return true;
  };
  ASSERT_TRUE(eventually(20s, [&] { return all_run(""); })) << everything();
  ASSERT_FALSE(worker(0).runs().empty()) << everything();
  std::string lost = worker(0).runs().begin()->first, display = lost.substr(0, lost.find(';'));
  ASSERT_TRUE(eventually(10s, [&] { return delivered(display, worker(0)) > 0; })) << everything();

  std::int64_t frozen = now_ms();
  worker(0).freeze();
  ASSERT_TRUE(eventually(30s, [&] { return all_run(worker(1).address()); })) << everything();
  std::printf("NOTE: what a frozen detection worker had ran elsewhere after %.1f s\n",
              static_cast<double>(now_ms() - frozen) / 1000);
  std::int64_t moved = worker(1).when("subscribe", lost, frozen);
  EXPECT_EQ(worker_state(worker(0).address()).at("online"), json::value(false));

  std::int64_t thawed = now_ms();
  worker(0).thaw();
  EXPECT_TRUE(eventually(20s, [&] { return worker(0).when("unsubscribe", lost, thawed) > 0; })) << everything();
  EXPECT_GT(worker(0).when("said", lost, thawed), 0) << "it did not speak of what it had lost: " << everything();
  EXPECT_TRUE(eventually(10s, [&] { return logged("detector.result_dropped", worker(0)) > 0; })) << everything();
  size_t so_far = delivered(display, worker(1));
  EXPECT_TRUE(eventually(20s, [&] { return delivered(display, worker(1)) > so_far + 2; })) << everything();
  for (const json::object& each : detections()) {
    std::string plate(each.at("data").at("detection").at("licensePlateText").as_string());
    if (each.at("display_id") == json::value(display) && plate.starts_with("w0 ")) {
      EXPECT_LT(std::stoll(plate.substr(3)), moved) << plate;
    }
  }
  auto [both_ms, which] = longest_overlap(diaries());
  std::printf("NOTE: a frozen detection worker that went on ran what another one had for %.2f s\n",
              static_cast<double>(both_ms) / 1000);
  EXPECT_LE(both_ms, 5000) << which;
  EXPECT_EQ(foreign_results(detections(), diaries()), std::vector<std::string>());
}

// Forty on a worker with room for forty are forty points of score: the policy moves ten at once, and leaves each
// subscription where it is for a minute first.
TEST_F(ClusterWorkers, AWorkerThatIsAdded_TakesLoadFromTheOther_TenSubscriptionsAtOnce) {
  reserve(2);
  work(0, "w0");
  displays(1, 40);
  start("one", {"--detector-capacity", "40"});
  ASSERT_TRUE(eventually(30s, [&] { return worker(0).runs().size() == 40; })) << everything();
  work(1, "w1");
  ASSERT_TRUE(eventually(20s, [&] {
    json::object added = worker_state(worker(1).address());
    return !added.empty() && added.at("online").as_bool();
  })) << everything();
  EXPECT_TRUE(worker(1).runs().empty()) << "subscriptions that have just been placed were moved";
  std::int64_t added = now_ms();
  ASSERT_TRUE(eventually(150s, [&] { return worker(1).runs().size() == 10 && worker(0).runs().size() == 30; }))
      << everything();
  std::printf("NOTE: an added detection worker was given ten of forty subscriptions after %.0f s\n",
              static_cast<double>(now_ms() - added) / 1000);
  EXPECT_TRUE(eventually(10s, [&] {
    for (int n = 1; n <= 40; ++n)
      if (runs_at("one", subscription(n)).empty()) return false;
    return true;
  })) << everything();
  std::istringstream lines(processes_.at("one")->log());
  int plans_with_moves = 0;
  for (std::string line; std::getline(lines, line);)
    if (line.find("\"cluster.plan\"") != std::string::npos) {
      auto moved = json::parse_text(line)->at("moved").to_number<int>();
      EXPECT_LE(moved, 10) << line;
      plans_with_moves += moved > 0 ? 1 : 0;
    }
  EXPECT_EQ(plans_with_moves, 1);
  auto [both_ms, which] = longest_overlap(diaries());
  EXPECT_LE(both_ms, 5000) << which;
}

TEST_F(ClusterWorkers, BadWorkers_AreMarked_AndAGoodOneIsNotDisturbed) {
  reserve(7);
  ScriptedWorker& good = work(0, "good", {"--cpu", "60"});  // whoever else comes has the better score
  displays(1, 1);
  start("one");
  ASSERT_TRUE(eventually(20s, [&] { return delivered("d1", good) > 0; })) << everything();
  std::vector<std::string> others{"--tell", "d1;cam-a", "--tell", "ghost;cam-a", "--manner"};
  auto bad = [&](int number, const std::string& manner) -> ScriptedWorker& {
    std::vector<std::string> words = others;
    words.push_back(manner);
    return work(number, manner, words);
  };
  ScriptedWorker &mute = bad(1, "mute"), &denier = bad(2, "denier"), &liar = bad(3, "liar"), &stranger = bad(4, "stranger"),
                 &garbled = bad(5, "garbled"), &huge = bad(6, "huge");
  for (ScriptedWorker* each : {&denier, &liar, &stranger, &garbled})
    ASSERT_TRUE(eventually(30s, [&] { return logged("worker:online", *each) > 0; })) << each->name() << everything();
  displays(2, 6);

  // Every subscription comes to run on a worker that really runs it.
  std::string reasons;
  EXPECT_TRUE(eventually(90s, [&] {
    json::object said = state("one");
    if (said.empty()) return false;
    bool settled = true;
    for (int n = 1; n <= 7; ++n) {
      const json::value* one = said.at("subscriptions").as_object().if_contains(subscription(n));
      if (one == nullptr) return false;
      if (one->at("reason").is_string()) reasons += one->at("reason").as_string();
      auto at = std::ranges::find_if(scripted_, [&](const auto& each) { return one->at("worker") == json::value(each->address()); });
      settled &= one->at("status") == "active" && at != scripted_.end() && (*at)->runs().contains(subscription(n)) &&
                 at->get() != &denier && at->get() != &liar && at->get() != &mute && at->get() != &huge;
    }
    return settled;
  })) << everything();
  EXPECT_NE(reasons.find("the worker does not report it"), std::string::npos) << reasons;

  // Each is marked for what it did.
  auto marked = [&](const std::string& text, const ScriptedWorker& who) {
    EXPECT_TRUE(eventually(30s, [&] { return logged(text, who) > 0; })) << who.name() << ": " << text << everything();
  };
  marked("the worker sent no state report in time", mute);
  marked("detector.stray", liar);
  marked("detector.result_dropped", stranger);
  marked("detector.message_refused", garbled);
  marked("the worker sent a message that is too large", huge);
  EXPECT_EQ(worker_state(mute.address()).at("online"), json::value(false));
  for (const ScriptedWorker* each : {&good, &stranger, &garbled, &liar, &denier})
    EXPECT_EQ(worker_state(each->address()).at("online"), json::value(true)) << each->name();

  // The good one was told once what it runs, and is heard all the while; nobody else is heard about it.
  EXPECT_TRUE(good.runs().contains("d1;cam-a"));
  EXPECT_EQ(std::ranges::count_if(good.diary(), [](const auto& each) { return each.subscription == "d1;cam-a"; }), 1);
  EXPECT_EQ(std::ranges::count_if(good.diary(), [](const auto& each) { return each.what == "connected"; }), 1);
  size_t so_far = delivered("d1", good);
  EXPECT_TRUE(eventually(20s, [&] { return delivered("d1", good) > so_far + 2; })) << everything();
  for (const json::object& each : detections()) {
    EXPECT_NE(each.at("display_id"), json::value("ghost"));
    if (each.at("display_id") == json::value("d1")) {
      EXPECT_EQ(each.at("worker"), json::value(good.address()));
    }
  }
  EXPECT_EQ(foreign_results(detections(), diaries()), std::vector<std::string>());
}

}  // namespace
}  // namespace weir::test
