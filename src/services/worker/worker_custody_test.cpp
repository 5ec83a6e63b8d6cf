// What a worker still publishes about a camera that is taken from it, given back to it or dialled anew.
#include "worker_testing.hpp"

namespace weir::worker {
namespace {

TEST_F(WorkerTest, RemovedCamera_SaysItsLastWord_AndOthersAreNotTouched) {
  make({source("a"), source("b")});
  ASSERT_TRUE(eventually(10s, [&] { return is("a", "STREAMING") && is("b", "STREAMING"); }));
  test::run(io_, worker_->remove(CameraId::trusted("a")));
  EXPECT_EQ(heard("stream.status.t.s.a", "DISCONNECTED"), 1);
  EXPECT_TRUE(about("a").empty());
  EXPECT_EQ(metrics_.text().find("camera_uuid=\"a\""), std::string::npos);
  std::int64_t received = count("b", "received");
  EXPECT_TRUE(eventually(5s, [&] { return count("b", "received") > received + 5; }));
  EXPECT_EQ(fake("b")->dials, 1);
}

TEST_F(WorkerTest, RemovedOrSilencedAgainWhileAnEventIsOnItsWay_NobodyHearsThatItIsSilentBeforeItIs) {
  make({source("a")});
  ASSERT_TRUE(eventually(10s, [&] { return is("a", "STREAMING"); }));
  bus_held_ = true;
  ASSERT_TRUE(eventually(10s, [&] { return bus_waited_.load(); }));
  int answered = 0;
  auto remove = [&]() -> asio::awaitable<void> {
    co_await worker_->remove(CameraId::trusted("a"));
    ++answered;
  };
  auto silence = [&]() -> asio::awaitable<void> {
    co_await worker_->silence(CameraId::trusted("a"));
    ++answered;
  };
  for (int i = 0; i < 2; ++i) asio::co_spawn(io_, remove(), asio::detached);
  asio::co_spawn(io_, silence(), asio::detached);
  auto looks = [&](const std::function<bool()>& condition) {
    return eventually(4s, [&] {
      io_.restart();
      io_.poll();
      return condition();
    });
  };
  EXPECT_TRUE(looks([&] { return fake("a")->closed == 1; }));
  EXPECT_EQ(answered, 0);
  bus_held_ = false;
  EXPECT_TRUE(looks([&] { return answered == 3; }));
}

TEST_F(WorkerTest, AddedAgainWhileItsThreadEnds_DialsAfterIt_AndSpeaks) {
  make({source("a")});
  ASSERT_TRUE(eventually(10s, [&] { return is("a", "STREAMING"); }));
  fake("a")->stuck = true;
  ASSERT_TRUE(eventually(10s, [&] { return fake("a")->hangs.load(); }));
  bool removed = false;
  auto remove = [&]() -> asio::awaitable<void> {
    co_await worker_->remove(CameraId::trusted("a"));
    removed = true;
  };
  asio::co_spawn(io_, remove(), asio::detached);
  io_.poll();
  worker_->add(source("a"));
  grant("a");
  auto looks = [&](const std::function<bool()>& condition) {
    return eventually(4s, [&] {
      io_.restart();
      io_.poll();
      return condition();
    });
  };
  EXPECT_TRUE(looks([&] { return removed; })) << "the thread hangs for longer than anybody waits";
  EXPECT_EQ(fake("a")->dials, 1) << "two connections at once";
  fake("a")->stuck = false;
  EXPECT_TRUE(looks([&] { return fake("a")->dials == 2 && fake("a")->closed == 1; }));
  int before = heard("detections.t.s.a");
  EXPECT_TRUE(looks([&] { return heard("detections.t.s.a") > before; })) << "the removal silenced the one that came after it";
}

TEST_F(WorkerTest, ChangedTwiceWhileItsThreadEnds_DialsAfterIt) {
  make({source("a")});
  ASSERT_TRUE(eventually(10s, [&] { return is("a", "STREAMING"); }));
  fake("a")->stuck = true;
  ASSERT_TRUE(eventually(10s, [&] { return fake("a")->hangs.load(); }));
  Source changed = source("a");
  changed.config.transport = camera::Transport::udp;
  worker_->add(changed);
  worker_->add(source("a"));
  Instant since = boot_now();
  ASSERT_TRUE(eventually(10s, [&] { return boot_now() > since + 1s || fake("a")->dials > 1; }));
  EXPECT_EQ(fake("a")->dials, 1) << "two connections at once";
  fake("a")->stuck = false;
  EXPECT_TRUE(eventually(10s, [&] { return is("a", "STREAMING"); }));
  EXPECT_EQ(fake("a")->dials, 2) << "the one between them had nothing to dial for";
  EXPECT_EQ(fake("a")->closed, 1);
}

TEST_F(WorkerTest, ThreadThatOutlivedItsCamerasChange_HasNoLastWord) {
  make({source("a")});
  ASSERT_TRUE(eventually(10s, [&] { return is("a", "STREAMING"); }));
  fake("a")->stuck_dial = 1;
  ASSERT_TRUE(eventually(10s, [&] { return fake("a")->hangs.load(); }));
  Source changed = source("a");
  changed.config.transport = camera::Transport::udp;
  worker_->add(changed);
  ASSERT_TRUE(eventually(15s, [&] { return fake("a")->dials == 2 && is("a", "STREAMING"); })) << "nobody waits for ever";
  int before = heard("stream.status.t.s.a", "DISCONNECTED");
  fake("a")->stuck_dial = 0;
  ASSERT_TRUE(eventually(10s, [&] { return fake("a")->closed == 1; }));
  int seen = heard("detections.t.s.a");
  ASSERT_TRUE(eventually(10s, [&] { return heard("detections.t.s.a") > seen + 10; }));
  EXPECT_EQ(heard("stream.status.t.s.a", "DISCONNECTED"), before);
  EXPECT_TRUE(is("a", "STREAMING"));
}

TEST_F(WorkerTest, LostCamera_Stops) {
  make({source("a")});
  ASSERT_TRUE(eventually(10s, [&] { return is("a", "STREAMING"); }));
  worker_->lose(CameraId::trusted("a"));
  EXPECT_TRUE(worker_->lost_all());
  EXPECT_TRUE(eventually(5s, [&] { return fake("a")->closed == 1; }));
}

TEST_F(WorkerTest, LostCamera_LeavesNoSeries_WhateverItsThreadSaysLast) {
  make({source("a"), source("b")});
  ASSERT_TRUE(eventually(10s, [&] { return is("a", "STREAMING") && is("b", "STREAMING"); }));
  // A camera that is down when it is lost counts an error on its way out.
  fake("b")->up = false;
  ASSERT_TRUE(eventually(10s, [&] { return metrics_.text().find("code=\"RTSP_PROTOCOL\"") != std::string::npos; }));
  for (const char* camera : {"a", "b"}) worker_->lose(CameraId::trusted(camera));
  EXPECT_TRUE(test::run(io_, worker_->drain(clock_.now() + 10s))) << "every thread has ended";
  EXPECT_EQ(metrics_.text().find("camera_uuid="), std::string::npos) << metrics_.text();
}

TEST_F(WorkerTest, AddedAgainAfterALoss_HasItsSeriesAgain) {
  make({source("a")});
  ASSERT_TRUE(eventually(10s, [&] { return is("a", "STREAMING"); }));
  worker_->lose(CameraId::trusted("a"));
  worker_->add(source("a"));
  EXPECT_TRUE(
      eventually(10s, [&] { return metrics_.text().find("stream_up{camera_uuid=\"a\"} 1") != std::string::npos; }));
}

TEST_F(WorkerTest, AddedAgainAfterALoss_SaysNothingOfTheTimeBefore) {
  make({source("a")});
  ASSERT_TRUE(eventually(10s, [&] { return heard("stream.status.t.s.a", "STREAMING") == 1; }));
  worker_->lose(CameraId::trusted("a"));
  ASSERT_TRUE(test::run(io_, worker_->drain(clock_.now() + 10s))) << "its thread has said its last word";
  worker_->add(source("a"));
  grant("a");
  EXPECT_TRUE(eventually(10s, [&] { return heard("stream.status.t.s.a", "STREAMING") == 2; }));
  EXPECT_EQ(heard("stream.status.t.s.a", "DISCONNECTED"), 0) << "others had spoken for the camera since";
}

TEST_F(WorkerTest, PictureFromBeforeALoss_IsNotSpokenOfUnderTheNextLease) {
  eyes_->blocked = true;
  make({source("a")});
  ASSERT_TRUE(eventually(10s, [&] { return eyes_->looking && count("a", "dropped") > 2; }));
  fake("a")->frozen = true;
  std::string lost_at = to_iso(wall_now());
  worker_->lose(CameraId::trusted("a"));
  worker_->add(source("a"));
  grant("a");
  eyes_->blocked = false;
  ASSERT_TRUE(eventually(10s, [&] { return eyes_->looks > 0; }));
  fake("a")->frozen = false;
  ASSERT_TRUE(eventually(10s, [&] { return heard("detections.t.s.a") > 0; }));
  std::string first(payload("detections.t.s.a", 0).at("ts").as_string());
  EXPECT_GE(first, lost_at) << "others had the camera since";
}

TEST_F(WorkerTest, PictureFromBeforeANewDial_IsSpokenOf) {
  eyes_->blocked = true;
  make({source("a")});
  ASSERT_TRUE(eventually(10s, [&] { return eyes_->looking.load(); }));
  fake("a")->frozen = true;
  Source changed = source("a");
  changed.config.transport = camera::Transport::udp;
  worker_->add(changed);
  eyes_->blocked = false;
  EXPECT_TRUE(eventually(10s, [&] { return heard("detections.t.s.a") > 0; })) << "the camera was its own all the time";
}

}  // namespace
}  // namespace weir::worker
