// What every Coordination promises, over the one in this process and a real Redis.
#include "houses.hpp"

namespace weir::test {
namespace {

using Texts = std::vector<std::string>;

class CoordinationContract : public testing::TestWithParam<House> {
 protected:
  void SetUp() override { open(); }
  void open(int detections_max = 10'000, size_t heard_max = 10'000) {
    house = std::make_unique<CoordinationHouse>(GetParam(), detections_max, heard_max);
    if (!house->unavailable.empty()) GTEST_SKIP() << house->unavailable;
  }
  Coordination& c() { return *house->made; }
  template <class T>
  T run(boost::asio::awaitable<T> what) {
    return house->run(std::move(what));
  }
  // "" where it was done, otherwise the reason.
  std::string refusal(Async<Nothing> what) {
    Status done = run(std::move(what));
    return done ? "" : done.error().reason;
  }
  std::string deliver(const std::string& text) {
    auto id = run(c().deliver(1, "worker:slave:a", text));
    EXPECT_TRUE(id) << (id ? "" : id.error().message);
    return id ? *id : "";
  }
  DetectionPage after(const std::string& id, int limit = 100) {
    auto page = run(c().detections_after(id, limit));
    EXPECT_TRUE(page) << (page ? "" : page.error().message);
    return page ? *page : DetectionPage{};
  }
  SharedTable table(ClusterTable which) {
    auto found = run(c().table(which));
    EXPECT_TRUE(found) << (found ? "" : found.error().message);
    return found ? *found : SharedTable{};
  }

  std::unique_ptr<CoordinationHouse> house;
};

const std::vector<TableChange> kSome = {{.table = ClusterTable::actual, .put = {{"d;c", "1"}}}};

TEST_P(CoordinationContract, Write_IsRefused_UntilTheEpochIsOpen) {
  EXPECT_EQ(refusal(c().write(5, kSome)), "no_epoch");
  EXPECT_EQ(refusal(c().publish(5, "worker:slave:a", "x")), "no_epoch");
  auto delivered = run(c().deliver(5, "worker:slave:a", R"({"a":1})"));
  ASSERT_FALSE(delivered);
  EXPECT_EQ(delivered.error().reason, "no_epoch");
  EXPECT_TRUE(table(ClusterTable::actual).empty());
  EXPECT_EQ(*run(c().epoch()), std::nullopt);
  EXPECT_EQ(refusal(c().open_epoch(5)), "");
  EXPECT_EQ(refusal(c().write(5, kSome)), "");
  EXPECT_EQ(*run(c().epoch()), 5);
}

TEST_P(CoordinationContract, MasterThatWasReplaced_WritesNothingMore) {
  const std::int64_t low = (std::int64_t{3} << 40) + 9, high = low + 1;  // as large as lease versions are
  ASSERT_EQ(refusal(c().open_epoch(low)), "");
  EXPECT_EQ(refusal(c().write(high, kSome)), "no_epoch") << "a new master renews its lease and opens its epoch first";
  ASSERT_EQ(refusal(c().open_epoch(high)), "");
  EXPECT_EQ(refusal(c().write(low, kSome)), "stale_epoch");
  EXPECT_EQ(refusal(c().publish(low, "worker:slave:a", "x")), "stale_epoch");
  EXPECT_EQ(run(c().deliver(low, "worker:slave:a", R"({"a":1})")).error().reason, "stale_epoch");
  EXPECT_EQ(refusal(c().open_epoch(low)), "stale_epoch");
  EXPECT_TRUE(table(ClusterTable::actual).empty());
  EXPECT_TRUE(after(std::string(kBeforeAllDetections)).items.empty());
  EXPECT_EQ(refusal(c().open_epoch(high)), "") << "after every renewal";
  EXPECT_EQ(refusal(c().write(high, kSome)), "");
}

TEST_P(CoordinationContract, Tables_TakeChangesInOrder) {
  ASSERT_EQ(refusal(c().open_epoch(1)), "");
  ASSERT_EQ(refusal(c().write(1, {{.table = ClusterTable::connections, .put = {{"ws://a", "1"}, {"ws://b", "2"}}},
                                  {.table = ClusterTable::desired, .put = {{"d;c", "{}"}}}})), "");
  EXPECT_EQ(table(ClusterTable::connections), (SharedTable{{"ws://a", "1"}, {"ws://b", "2"}}));
  TableChange change{.table = ClusterTable::connections, .remove = {"ws://a"}, .put = {{"ws://b", "3"}}};
  ASSERT_EQ(refusal(c().write(1, {change})), "");
  EXPECT_EQ(table(ClusterTable::connections), (SharedTable{{"ws://b", "3"}}));
  change = {.table = ClusterTable::connections, .empty_first = true, .put = {{"ws://c", "4"}}};
  ASSERT_EQ(refusal(c().write(1, {change})), "");
  EXPECT_EQ(table(ClusterTable::connections), (SharedTable{{"ws://c", "4"}}));
  EXPECT_EQ(*run(c().entry(ClusterTable::connections, "ws://c")), "4");
  EXPECT_EQ(*run(c().entry(ClusterTable::connections, "ws://a")), std::nullopt);
  EXPECT_EQ(table(ClusterTable::desired), (SharedTable{{"d;c", "{}"}})) << "another table";
  EXPECT_EQ(refusal(c().write(1, {})), "");
}

TEST_P(CoordinationContract, Texts_ComeBackByteByByte) {
  ASSERT_EQ(refusal(c().open_epoch(1)), "");
  std::string odd("line\r\n\0 $5 \xC3\xA4 {\"x\":\"%s\"}", 24), large(300'000, 'x');
  const SharedTable all{{odd, odd}, {"large", large}, {"", ""}};
  ASSERT_EQ(refusal(c().write(1, {{.table = ClusterTable::actual, .put = all}})), "");
  EXPECT_EQ(table(ClusterTable::actual), all);
}

TEST_P(CoordinationContract, Slaves_NeedNoEpoch) {
  EXPECT_EQ(refusal(c().put_slave("s1", "a")), "");
  EXPECT_EQ(refusal(c().put_slave("s2", "b")), "");
  EXPECT_EQ(refusal(c().remove_slave("s1")), "");
  EXPECT_EQ(table(ClusterTable::slaves), (SharedTable{{"s2", "b"}}));
}

TEST_P(CoordinationContract, Listener_HearsItsChannelsInOrder_FromItsBeginningOn) {
  ASSERT_EQ(refusal(c().open_epoch(1)), "");
  Listener first(c(), {"worker:slave:a", "worker:master:commands"}), second(c(), {"worker:slave:b"});
  ASSERT_TRUE(house->until([&] { return first.begun == 1 && second.begun == 1; }));
  for (int n = 0; n < 50; ++n) ASSERT_EQ(refusal(c().publish(1, "worker:slave:a", std::to_string(n))), "");
  ASSERT_EQ(refusal(c().tell("worker:master:commands", "go")), "");
  ASSERT_EQ(refusal(c().tell("worker:slave:b", "other")), "");
  ASSERT_TRUE(house->until([&] { return first.texts.size() == 51 && second.texts.size() == 1; }));
  for (int n = 0; n < 50; ++n) EXPECT_EQ(first.texts[static_cast<size_t>(n)], fmt::format("worker:slave:a={}", n));
  EXPECT_EQ(first.texts[50], "worker:master:commands=go");
  EXPECT_EQ(second.texts, (Texts{"worker:slave:b=other"}));
}

TEST_P(CoordinationContract, ListenerThatHasEnded_HearsNothing) {
  Listener ended(c(), {"x"}), stays(c(), {"x"});
  ASSERT_TRUE(house->until([&] { return ended.begun == 1 && stays.begun == 1; }));
  ended.listening.reset();
  ASSERT_EQ(refusal(c().tell("x", "late")), "");
  ASSERT_TRUE(house->until([&] { return stays.texts.size() == 1; }));
  EXPECT_TRUE(ended.texts.empty());
}

TEST_P(CoordinationContract, ListenerThatIsTooSlow_IsToldThatItMissedSomething) {
  open(10'000, 100);
  if (!house->made) return;
  // Its loop stands still meanwhile: what it hears waits for it.
  Listener slow(c(), {"x"});
  ASSERT_TRUE(house->until([&] { return slow.begun == 1; }));
  boost::asio::io_context other;
  int told = 0;
  for (int n = 0; n < 1000; ++n)
    test::begin<Nothing>(other, c().tell("x", std::to_string(n)), [&](Status done) { told += done ? 1 : 0; });
  ASSERT_TRUE(eventually(20s, [&] {
    other.restart();
    other.poll();
    return told == 1000;
  }));
  ASSERT_TRUE(house->until([&] { return !slow.texts.empty() && slow.texts.back() == "x=999"; }));
  EXPECT_GT(slow.begun, 1);
  EXPECT_LE(slow.texts.size(), 1000u);
}

TEST_P(CoordinationContract, Detection_IsPublishedWithItsId_AndKeptAsItWas) {
  ASSERT_EQ(refusal(c().open_epoch(1)), "");
  Listener listener(c(), {"worker:slave:a"});
  ASSERT_TRUE(house->until([&] { return listener.begun == 1; }));
  std::string id = deliver(R"({"type":"detection","n":1})");
  EXPECT_TRUE(is_stream_id(id)) << id;
  ASSERT_TRUE(house->until([&] { return listener.texts.size() == 1; }));
  EXPECT_EQ(listener.texts[0], fmt::format(R"(worker:slave:a={{"streamId":"{}","type":"detection","n":1}})", id));
  DetectionPage page = after(std::string(kBeforeAllDetections));
  EXPECT_EQ(page.items, (std::vector<KeptDetection>{{id, R"({"type":"detection","n":1})"}}));
  EXPECT_EQ(page.last, id);
}

TEST_P(CoordinationContract, WhoNamesTheLastOne_GetsWhatFollowed) {
  ASSERT_EQ(refusal(c().open_epoch(1)), "");
  EXPECT_EQ(after("").last, kBeforeAllDetections);
  std::vector<std::string> ids;
  for (int n = 0; n < 10; ++n) ids.push_back(deliver(fmt::format(R"({{"n":{}}})", n)));
  DetectionPage page = after(ids[3], 4);
  EXPECT_FALSE(page.gap);
  ASSERT_EQ(page.items.size(), 4u);
  EXPECT_EQ(page.items[0], (KeptDetection{ids[4], R"({"n":4})"}));
  EXPECT_EQ(page.last, ids[7]);
  page = after(page.last, 4);
  EXPECT_EQ(page.items.size(), 2u);
  page = after(page.last, 4);
  EXPECT_TRUE(page.items.empty());
  EXPECT_FALSE(page.gap);
  EXPECT_EQ(page.last, ids[9]) << "nothing new: ask again from the same place";
  page = after("");
  EXPECT_TRUE(page.items.empty());
  EXPECT_EQ(page.last, ids[9]);
}

TEST_P(CoordinationContract, WhoNamesOneThatIsNoLongerKept_IsToldOfTheGap) {
  open(500);
  if (!house->made) return;
  ASSERT_EQ(refusal(c().open_epoch(1)), "");
  std::string first = deliver(R"({"n":0})"), last;
  EXPECT_FALSE(after(std::string(kBeforeAllDetections)).gap);
  for (int n = 1; n < 1500; ++n) last = deliver(fmt::format(R"({{"n":{}}})", n));
  DetectionPage page = after(first, 3000);
  EXPECT_TRUE(page.gap);
  EXPECT_GE(page.items.size(), 500u);
  EXPECT_LT(page.items.size(), 1000u) << "they are bounded";
  EXPECT_EQ(page.items.back().id, last);
  EXPECT_TRUE(after(std::string(kBeforeAllDetections)).gap) << "who has none yet has missed the first as well";
  EXPECT_FALSE(after(page.items[0].id).gap);
  EXPECT_TRUE(after("5-7").gap && after("99999999999999-7").gap) << "an id that was never given out";
}

TEST_P(CoordinationContract, WhatIsNoIdOfADetection_IsRefused) {
  for (const char* id : {"x", "5", "-", "5-", "-5", " 5-0", "5-x", "+-+", "1-1-1", "99999999999999999999-0"}) {
    auto page = run(c().detections_after(id, 10));
    ASSERT_FALSE(page) << id;
    EXPECT_EQ(page.error().reason, "bad_stream_id") << id;
  }
}

INSTANTIATE_TEST_SUITE_P(Houses, CoordinationContract, testing::Values(House::in_process, House::redis),
                         [](const auto& house) { return house.param == House::redis ? "Redis" : "InProcess"; });

}  // namespace
}  // namespace weir::test
