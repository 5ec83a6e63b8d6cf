#include "testing.hpp"

#include "log_lines.hpp"
#include "stall.hpp"

#include "weir/base/clock.hpp"

#include <gtest/gtest.h>

namespace weir::egress::testing {
namespace {

using forward::Kind;

// A forwarder on its thread, between the two fakes.
class Forwarding : public ::testing::Test {
 protected:
  void start(forward::Policy policy = quick(), std::optional<Instant> valid_until = std::nullopt) {
    right_.emplace(1, valid_until);
    forwarder_.emplace(Ends{.input = [this] { return std::make_unique<FakeInput>(stage_); },
                            .output = [this] { return std::make_unique<FakeOutput>(stage_); }},
                       policy, *right_, report_);
    thread_ = std::thread([this] { end_ = forwarder_->run(); });
  }
  static forward::Policy quick() {
    return {.grace = 5s, .retry = {.first = 1ms, .cap = 5ms, .jitter = 0, .spread = 1ms}, .held_max = 10s};
  }
  forward::End join() {
    thread_.join();
    return end_;
  }
  void TearDown() override {
    if (!thread_.joinable()) return;
    forwarder_->stop();
    thread_.join();
  }
  bool written(int more) {
    int before = 0;
    stage_.set([&] { before = stage_.written; });
    return stage_.wait([&] { return stage_.written >= before + more; });
  }

  test::LogLines log_;
  Stage stage_;
  net::Metrics metrics_;
  Report report_{metrics_, {.stream = "s1", .run = "r1", .instance = "i1"}};
  std::optional<SendRight> right_;
  std::optional<Forwarder> forwarder_;
  std::thread thread_;
  forward::End end_{-1};
};

TEST_F(Forwarding, AnInputThatIsLost_LeavesTheDestinationConnected) {
  start();
  ASSERT_TRUE(written(3));
  stage_.set([&] { stage_.input_ends = forward::failure(Kind::rtsp_ended, "x"); });
  ASSERT_TRUE(stage_.wait([&] { return stage_.inputs == 2; }));
  ASSERT_TRUE(written(3));
  EXPECT_EQ(stage_.outputs, 1);
  forwarder_->stop();
  EXPECT_EQ(join().code, 0);
  EXPECT_EQ(stage_.goodbyes, 1);
  EXPECT_EQ(log_.count("egress.retry.scheduled"), 1u);
}

TEST_F(Forwarding, ADestinationThatIsLost_LeavesTheInputConnected) {
  stage_.output_refusals = {forward::failure(Kind::rtmp_refused, "x"), forward::failure(Kind::rtmp_timeout, "x")};
  start();
  ASSERT_TRUE(written(3));
  stage_.set([&] { stage_.output_ends = forward::failure(Kind::rtmp_reset, "x"); });
  ASSERT_TRUE(stage_.wait([&] { return stage_.outputs == 4; }));
  ASSERT_TRUE(written(3));
  EXPECT_EQ(stage_.inputs, 1);
  std::string metrics = metrics_.text();
  for (const char* kind : {"rtmp_refused", "rtmp_timeout", "rtmp_reset"})
    EXPECT_NE(metrics.find(std::string("egress_forwarder_retry_total{error_kind=\"") + kind), std::string::npos) << metrics;
  EXPECT_NE(metrics.find("egress_forwarder_last_error{error_kind=\"rtmp_reset\",runId=\"r1\",streamId=\"s1\"} 1"),
            std::string::npos) << metrics;
}

TEST_F(Forwarding, AnInputThatComesBackAsAnother_GetsAnotherConnection) {
  start();
  ASSERT_TRUE(written(3));
  stage_.set([&] {
    stage_.format = 2;
    stage_.input_ends = forward::failure(Kind::rtsp_ended, "x");
  });
  ASSERT_TRUE(stage_.wait([&] { return stage_.outputs == 2; }));
  EXPECT_TRUE(written(3));
}

TEST_F(Forwarding, WhatCannotBeMended_EndsIt) {
  stage_.output_refusals = {forward::failure(Kind::rtmp_publish_denied, "no")};
  start();
  EXPECT_EQ(join().code, 30);
  EXPECT_EQ(report_.last_failure().kind, Kind::rtmp_publish_denied);
}

TEST_F(Forwarding, AStop_EndsADialThatHangs) {
  stage_.input_hangs = true;
  start();
  ASSERT_TRUE(stage_.wait([&] { return stage_.inputs == 1; }));
  forwarder_->stop();
  EXPECT_EQ(join().code, 0);
}

TEST_F(Forwarding, ARightThatEnds_ResetsTheConnectionBeforeTheCallReturns_AndHolds) {
  start(quick(), boot_now() + 3600s);
  ASSERT_TRUE(written(3));
  ASSERT_TRUE(right_->extend(2, boot_now()));
  forwarder_->look_at_right();
  stage_.set([&] { EXPECT_GE(stage_.resets, 1); });
  int before = 0;
  stage_.set([&] { before = stage_.written; });
  ASSERT_TRUE(stage_.wait([&] { return stage_.goodbyes == 1; }));
  EXPECT_EQ(stage_.written, before) << "not one more packet";
  // The right is extended in time: everything is connected anew.
  ASSERT_TRUE(right_->extend(2, boot_now() + 3600s));
  forwarder_->look_at_right();
  ASSERT_TRUE(stage_.wait([&] { return stage_.outputs == 2 && stage_.inputs == 2; }));
  EXPECT_TRUE(written(3));
}

TEST_F(Forwarding, ARightThatOnlyKeeps_LetsTheStreamFlow_AndOpensNothing) {
  start(quick(), boot_now() + 3600s);
  ASSERT_TRUE(written(3));
  ASSERT_TRUE(right_->extend(2, {boot_now(), boot_now() + 3600s}));
  forwarder_->look_at_right();
  EXPECT_TRUE(written(20));
  EXPECT_EQ(stage_.resets, 0);
  stage_.set([&] { stage_.output_ends = failure(Kind::rtmp_publish_hangup, "the destination hung up"); });
  ASSERT_TRUE(test::eventually(20s, [&] { return log_.count("egress.held") == 1; })) << "the input is closed as well";
  EXPECT_EQ(stage_.inputs, 1);
  EXPECT_EQ(stage_.outputs, 1);
  ASSERT_TRUE(right_->extend(2, boot_now() + 3600s));
  forwarder_->look_at_right();
  ASSERT_TRUE(stage_.wait([&] { return stage_.outputs == 2 && stage_.inputs == 2; }));
  EXPECT_TRUE(written(3));
}

TEST_F(Forwarding, ARightThatOnlyKeeps_EndsAtItsSecondEnd) {
  start(quick(), boot_now() + 3600s);
  ASSERT_TRUE(written(3));
  ASSERT_TRUE(right_->extend(2, {boot_now(), boot_now()}));
  forwarder_->look_at_right();
  stage_.set([&] { EXPECT_GE(stage_.resets, 1); });
}

TEST_F(Forwarding, ARightThatIsBackBeforeAnybodyNoticed_CostsOneConnection_NotTheProcess) {
  start(quick(), boot_now() + 3600s);
  ASSERT_TRUE(written(3));
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(right_->extend(2 + i, boot_now()));
    forwarder_->look_at_right();
    ASSERT_TRUE(right_->extend(2 + i, boot_now() + 3600s));
    forwarder_->look_at_right();
    ASSERT_TRUE(written(3));
  }
}

TEST_F(Forwarding, ARightThatIsNotExtended_EndsItWith40) {
  forward::Policy policy = quick();
  policy.held_max = 50ms;
  start(policy, boot_now() - 1s);
  forward::End end = join();
  EXPECT_EQ(end.code, 40);
  EXPECT_EQ(end.reason, "deadline");
  EXPECT_EQ(stage_.inputs + stage_.outputs, 0) << "nobody was dialled";
}

TEST_F(Forwarding, ADestinationWithoutRoom_CostsPackets_AndTheInputIsReadOn) {
  start();
  ASSERT_TRUE(written(3));
  stage_.room = false;
  int before = stage_.written, read = stage_.read;
  ASSERT_TRUE(stage_.wait([&] { return stage_.read > read + 50; }));
  EXPECT_LE(stage_.written, before + 1);
  stage_.room = true;
  EXPECT_TRUE(written(30));
  EXPECT_EQ(stage_.inputs, 1);
}

TEST_F(Forwarding, AnInputThatEnds_WhileTheDestinationHasNoRoom_IsOpenedAgain) {
  start();
  ASSERT_TRUE(written(3));
  stage_.room = false;
  int read = stage_.read;
  ASSERT_TRUE(stage_.wait([&] { return stage_.read > read + 5; }));
  stage_.set([&] { stage_.input_ends = forward::failure(Kind::rtsp_ended, "x"); });
  EXPECT_TRUE(stage_.wait([&] { return stage_.inputs == 2; }));
}

TEST_F(Forwarding, PacketsThatWereLeftOut_AreCountedOverAllConnectionsOfTheInput) {
  start();
  for (std::uint64_t total : {0u, 10u, 12u, 3u, 3u, 4u}) report_.dropped(total, boot_now());
  EXPECT_NE(metrics_.text().find("weir_egress_dropped_packets_total{runId=\"r1\",streamId=\"s1\"} 16"), std::string::npos)
      << metrics_.text();
}

// ---- the queue between the two ends ----

class Queue : public ::testing::Test {
 protected:
  // An input that hands out what the test gives it, as soon as it is asked.
  class Given final : public CopyInput {
   public:
    Result<CopyFacts> open(Duration) override { return CopyFacts{}; }
    Result<CopyPacketPtr> read() override {
      std::unique_lock lock(mutex);
      asked = true;
      changed.notify_all();
      changed.wait(lock, [&] { return !packets.empty() || over; });
      asked = false;
      if (packets.empty()) return forward::failure(Kind::rtsp_ended, "over");
      CopyPacketPtr next = std::move(packets.front());
      packets.pop_front();
      return next;
    }
    void set_meanwhile(std::function<void()>) override {}
    void interrupt() override { finish(); }
    void finish() {
      std::lock_guard lock(mutex);
      over = true;
      changed.notify_all();
    }
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<CopyPacketPtr> packets;
    bool over = false, asked = false;  // asked: somebody waits for the next one, and has dealt with the last
  };
  Queue() : input_(new Given), intake_(std::unique_ptr<CopyInput>(input_), true, {.bytes_max = 1000, .span_max = 4s}) {}

  // Numbered by their time; "K" a key picture, "p" another, "a" sound. Read by the intake itself, or by the test.
  void give(std::string_view kinds, size_t bytes = 10) {
    std::unique_lock lock(input_->mutex);
    for (char kind : kinds) {
      bool sound = kind == 'a';
      input_->packets.push_back(packet(sound ? forward::Track::audio : forward::Track::video, kind != 'p', number_ * 1ms,
                                       bytes, Instant{} + number_ * 1ms));
      ++number_;
    }
    input_->changed.notify_all();
    if (!taking_) return input_->changed.wait(lock, [&] { return input_->packets.empty() && input_->asked; });
    lock.unlock();
    for (size_t i = 0; i < kinds.size(); ++i) intake_.read();
  }
  // The intake's thread holds on to the input until its next packet, which is one more picture here.
  void take_over() {
    std::thread taker([&] { intake_.begin_taking(); });
    EXPECT_TRUE(test::eventually(20s, [&] { return intake_.taking(); }));
    {
      std::unique_lock lock(input_->mutex);
      input_->changed.wait(lock, [&] { return input_->asked; });
      input_->packets.push_back(packet(forward::Track::video, false, number_ * 1ms, 10, Instant{} + number_ * 1ms));
      ++number_;
      input_->changed.notify_all();
    }
    taker.join();
    taking_ = true;
  }
  std::vector<int> all() {
    input_->finish();
    intake_.begin_taking();
    std::vector<int> numbers;
    while (!intake_.ended()) intake_.read();
    while (intake_.oldest() != nullptr) numbers.push_back(static_cast<int>(intake_.take()->pts->count() / 1000));
    return numbers;
  }
  Given* input_;
  Intake intake_;
  int number_ = 0;
  bool taking_ = false;
};

TEST_F(Queue, WhileNobodyTakes_ItHoldsWhatCameSinceTheLastKeyPicture) {
  give("apaKpapKap");
  EXPECT_EQ(all(), (std::vector<int>{7, 8, 9}));
}

TEST_F(Queue, WhileSomebodyTakes_NothingIsLeftOut) {
  give("Kpp");
  take_over();
  give("Kpa");
  EXPECT_EQ(all(), (std::vector<int>{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(intake_.dropped(), 0u);
}

TEST_F(Queue, AFullQueue_IsEmptiedUpToTheNewestKeyPicture) {
  give("K");
  take_over();
  give("pppKppp", 150);
  EXPECT_EQ(all(), (std::vector<int>{5, 6, 7, 8}));
  EXPECT_EQ(intake_.dropped(), 5u);
}

TEST_F(Queue, WithoutAKeyPictureInIt_AFullQueueStartsAgainAtTheNextOne) {
  give("K");
  take_over();
  give("pppppppp", 150);
  give("ppKp");
  EXPECT_EQ(all(), (std::vector<int>{12, 13}));
  EXPECT_EQ(intake_.dropped(), 12u);
}

TEST_F(Queue, ANewDestination_BeginsWithAKeyPicture) {
  give("K");
  take_over();
  while (intake_.oldest() != nullptr) intake_.take();
  intake_.stop_taking();
  taking_ = false;
  give("pp");
  take_over();  // pictures are left that nobody could decode
  EXPECT_EQ(intake_.oldest(), nullptr);
  give("pK");
  EXPECT_EQ(all(), (std::vector<int>{6}));
}

TEST_F(Queue, TheInputsEnd_LeavesWhatWasRead) {
  give("Kp");
  EXPECT_FALSE(intake_.ended());
  input_->finish();
  intake_.begin_taking();
  ASSERT_TRUE(intake_.ended());
  EXPECT_EQ(intake_.ended()->reason, "rtsp_ended");
  EXPECT_EQ(all(), (std::vector<int>{0, 1}));
}

}  // namespace
}  // namespace weir::egress::testing
