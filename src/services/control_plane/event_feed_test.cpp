#include "stream_board.hpp"

#include "scripted_store.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <gtest/gtest.h>

namespace weir::control_plane {
namespace {

namespace asio = boost::asio;

// A client that takes everything, or nothing while `stuck`.
class Sink final : public net::EventStream {
 public:
  explicit Sink(asio::io_context& io) : free_(io, asio::steady_timer::time_point::max()) {}
  asio::awaitable<Status> send_text(std::string_view events) override {
    while (stuck) co_await free_.async_wait(asio::as_tuple(asio::use_awaitable));
    text += events;
    co_return ok();
  }
  void let_go() {
    stuck = false;
    free_.cancel();
  }
  int events() const {
    int found = 0;
    for (size_t at = text.find("data: {\"routing_key\""); at != std::string::npos;
         at = text.find("data: {\"routing_key\"", at + 1))
      ++found;
    return found;
  }
  bool has(std::string_view part) const { return text.find(part) != std::string::npos; }

  std::string text;
  bool stuck = false;
  bool ended = false;

 private:
  asio::steady_timer free_;
};

class Feed : public testing::Test {
 protected:
  Feed() {
    store_.up = true;
    start_reader(4000);
  }
  ~Feed() override {
    for (auto& stop : stops_) stop->emit(asio::cancellation_type::all);
    clock_.run(clock_.now() + 1min);
  }
  void start_reader(size_t window_bytes) {
    feed_ = std::make_unique<EventFeed>(store_, clock_, instruments_, window_bytes);
    spawn(feed_->run(), nullptr);
  }
  void spawn(asio::awaitable<void> what, Sink* sink) {
    auto stop = stops_.emplace_back(std::make_shared<asio::cancellation_signal>());
    asio::co_spawn(io_, std::move(what), asio::bind_cancellation_slot(stop->slot(), [sink](std::exception_ptr) {
                     if (sink != nullptr) sink->ended = true;
                   }));
  }
  // Lives as long as what was spawned.
  Sink& new_sink() { return *sinks_.emplace_back(std::make_unique<Sink>(io_)); }
  Listener listener(std::string_view pattern = "#", EventPlace after = {1, 0}) {
    return {*event::TopicPattern::create(pattern), {}, after};
  }
  void listen(Sink& sink, Listener who) { spawn(feed_->serve(std::move(who), sink), &sink); }
  void pass(Duration time = 1s) { clock_.run(clock_.now() + time); }
  // `count` more events of about 200 bytes.
  void store(int count, std::string key = "detections.t1.s1.c1", std::string tenant = "t1") {
    for (int i = 0; i < count; ++i)
      keep({.topic = "detections.topic",
            .routing_key = key,
            .payload = fmt::format(R"({{"x":"{:->100}"}})", i),
            .tenant = TenantId::trusted(tenant)});
    feed_->wake();
  }
  void keep(event::Event event) {
    store_.stored.push_back({std::move(event), ++store_.last_event.sequence, clock_.wall()});
  }

  asio::io_context io_;
  VirtualClock clock_{io_};
  net::Metrics metrics_;
  Instruments instruments_{metrics_};
  ScriptedStore store_;
  std::unique_ptr<EventFeed> feed_;
  std::vector<std::unique_ptr<Sink>> sinks_;
  std::vector<std::shared_ptr<asio::cancellation_signal>> stops_;
};

TEST_F(Feed, AWatcher_SeesWhatNobodyListensTo_AndForgetsWhenSomethingWasMissed) {
  StreamBoard board;
  feed_->watch(board);
  feed_->wake();
  pass();
  lease::LeaseRow row{CameraId::trusted("c1")};
  row.grant = lease::Version{7};
  row.released = false;
  keep({.topic = std::string(event::kStatusTopic),
        .routing_key = "stream.status.t1.s1.c1",
        .payload = R"({"camera_uuid":"c1","lease_version":7,"state":"STREAMING"})",
        .tenant = TenantId::trusted("t1")});
  feed_->wake();
  pass();
  ASSERT_TRUE(board.about(row, clock_.now()).is_object());
  EXPECT_EQ(board.about(row, clock_.now()).at("state").as_string(), "STREAMING");
  ++store_.last_event.epoch;
  feed_->wake();
  pass();
  EXPECT_TRUE(board.about(row, clock_.now()).is_null());
}

TEST_F(Feed, Listeners_GetWhatMatches_AndOnlyTheirTenants) {
  Sink &all = new_sink(), &some = new_sink(), &tenant = new_sink();
  listen(all, listener());
  listen(some, listener("stream.#"));
  Listener bound = listener();
  bound.tenant = TenantId::trusted("t2");
  listen(tenant, bound);
  pass();
  store(3);
  store(2, "stream.status.t2.s.c", "t2");
  store(1, "runner.heartbeat.r", "");
  pass();
  EXPECT_EQ(all.events(), 6);
  EXPECT_EQ(some.events(), 2);
  EXPECT_EQ(tenant.events(), 2);
  EXPECT_TRUE(all.has("id: 1-1\nevent: detections.topic\ndata: {\"routing_key\":\"detections.t1.s1.c1\",\"topic\":"));
  EXPECT_FALSE(all.ended);
  EXPECT_NE(metrics_.text().find("weir_event_subscribers 3"), std::string::npos);
}

TEST_F(Feed, AppendsOfThisProcess_AreHandedOnWithinMilliseconds_OthersWithinAPoll) {
  Sink &sink = new_sink();
  listen(sink, listener());
  pass();
  store(1);
  pass(10ms);
  EXPECT_EQ(sink.events(), 1);
  pass(10s);
  keep({.topic = "control.topic", .routing_key = "camera.created.t.s.c", .payload = "{}"});
  pass(250ms);
  EXPECT_EQ(sink.events(), 2);
}

TEST_F(Feed, ListenersWhoAreBehind_ReadAFewAtATime_AndAllArrive_ThoughSomeLeave) {
  store(40);
  pass();
  store_.page_events_max = 10;
  store_.read_takes = [this] { return clock_.wait(20ms); };
  std::vector<Sink*> sinks;
  for (int i = 0; i < 30; ++i) listen(*sinks.emplace_back(&new_sink()), listener());
  pass(50ms);
  for (size_t i : {2, 15, 29}) stops_.at(stops_.size() - 30 + i)->emit(asio::cancellation_type::all);
  pass(10s);
  for (size_t i = 0; i < sinks.size(); ++i) EXPECT_TRUE(sinks[i]->ended || sinks[i]->events() == 40) << i;
  EXPECT_EQ(std::ranges::count_if(sinks, [](Sink* sink) { return sink->ended; }), 3);
  EXPECT_LE(store_.reads_most, 5) << "four of them, and the feed's own reader";
}

TEST_F(Feed, ASlowListener_IsCutOffWithTheReason_AndOthersAreNotAffected) {
  Sink &slow = new_sink(), &quick = new_sink();
  listen(slow, listener());
  listen(quick, listener());
  pass();
  slow.stuck = true;
  for (int i = 0; i < 20; ++i) {
    store(5);
    pass();
  }
  EXPECT_EQ(quick.events(), 100);
  EXPECT_EQ(slow.events(), 0);
  slow.let_go();
  pass();
  EXPECT_EQ(slow.events(), 5) << "what it was about to take when it fell behind";
  EXPECT_TRUE(slow.has("event: error\ndata: {\"code\":\"slow_subscriber\""));
  EXPECT_TRUE(slow.ended);
  EXPECT_FALSE(quick.ended);
  EXPECT_NE(metrics_.text().find("weir_event_subscribers_cut_total 1"), std::string::npos);
  EXPECT_NE(metrics_.text().find("weir_event_subscribers 1"), std::string::npos);

  // The subscriber resumes where it was and has lost nothing: one that is still catching up is not too slow, however
  // far behind.
  Sink &resumed = new_sink();
  listen(resumed, listener("#", {1, 5}));
  pass();
  EXPECT_EQ(resumed.events(), 95);
  EXPECT_FALSE(resumed.ended);
}

TEST_F(Feed, WhatWasForgotten_IsSaid) {
  store(10);
  store_.forgotten_to = 6;
  std::erase_if(store_.stored, [](const StoredEvent& event) { return event.sequence <= 6; });
  Sink &sink = new_sink();
  listen(sink, listener("#", {1, 2}));
  pass();
  EXPECT_EQ(sink.text.find("id: 1-6\nevent: gap\n"), 0u) << sink.text.substr(0, 200);
  EXPECT_EQ(sink.events(), 4);
  Sink &none = new_sink();
  listen(none, listener("#", {1, 6}));
  pass();
  EXPECT_EQ(none.events(), 4);
  EXPECT_FALSE(none.has("gap"));
}

TEST_F(Feed, ANewEpoch_EndsEveryStream_BecauseCursorsMeanNothingNow) {
  Sink &sink = new_sink();
  listen(sink, listener());
  pass();
  store(1);
  pass();
  store_.last_event.epoch = 2;
  pass();
  EXPECT_TRUE(sink.ended);
  EXPECT_TRUE(sink.has("feed_restarted"));
  Sink &old = new_sink(), &fresh = new_sink();
  listen(old, listener("#", {1, 1}));
  listen(fresh, listener("#", {2, 1}));
  pass();
  store(1);
  pass();
  EXPECT_TRUE(old.ended);
  EXPECT_EQ(fresh.events(), 1);
}

TEST_F(Feed, AStream_EndsWithItsToken) {
  Sink &sink = new_sink();
  Listener who = listener();
  who.until = clock_.wall() + 65s;
  listen(sink, who);
  pass(64s);
  EXPECT_FALSE(sink.ended);
  pass(2s);
  EXPECT_TRUE(sink.ended) << "also where nothing happens";
  EXPECT_TRUE(sink.has("token_expired"));
}

TEST_F(Feed, AListenerWhomNothingConcerns_IsToldHowFarItCame) {
  Sink &sink = new_sink();
  listen(sink, listener("nothing.#"));
  pass();
  store(3);
  pass(10s);
  store(3);
  pass(10s);
  EXPECT_EQ(sink.events(), 0);
  EXPECT_TRUE(sink.has("id: 1-6\n\n")) << sink.text;
}

TEST_F(Feed, TheReader_EndsAtOnceWhenItIsCancelled) {
  Sink& idle = new_sink();
  EventFeed other(store_, clock_, instruments_, 4000);
  spawn(other.run(), &idle);
  pass();
  stops_.back()->emit(asio::cancellation_type::total);
  clock_.run(clock_.now());
  EXPECT_TRUE(idle.ended);
}

TEST_F(Feed, AStoreThatIsAway_OnlyDelays) {
  Sink &sink = new_sink();
  listen(sink, listener());
  pass();
  store_.up = false;
  store(2);
  pass(5s);
  EXPECT_EQ(sink.events(), 0);
  store_.up = true;
  pass();
  EXPECT_EQ(sink.events(), 2);
}

}  // namespace
}  // namespace weir::control_plane
