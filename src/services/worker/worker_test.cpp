// The worker's cameras with sources, detectors and a bus that do what the test says. Threads and time are real, so every
// expectation waits for its condition.
#include "weir/worker/worker.hpp"

#include "picture_testing.hpp"
#include "publisher_testing.hpp"
#include "run.hpp"
#include "stall.hpp"

#include "weir/worker/endpoints.hpp"
#include "weir/worker/publisher_thread.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <gtest/gtest.h>

namespace weir::worker {
namespace {

using restart::StreamErrorCode;
using test::eventually;

struct FakePacket final : Packet {
  size_t bytes() const override { return 100; }
};

// A camera as the test wants it to be. Any thread.
struct FakeCamera {
  std::atomic<int> dials = 0, closed = 0;
  std::atomic<bool> up = true;          // else refuses
  std::atomic<bool> frozen = false;     // connected, but silent
  std::atomic<bool> stuck = false;      // its library never comes back
  std::atomic<bool> hangs = false;      // so it is now
  std::atomic<int> moving = 1;          // each picture differs from the one before
  std::atomic<int> decoded = 0, alone = 0;
  std::atomic<int> keyframe_every = 5;
};

class FakeVideo final : public VideoSource {
 public:
  explicit FakeVideo(std::shared_ptr<FakeCamera> camera) : camera_(std::move(camera)) {}
  ~FakeVideo() override { ++camera_->closed; }
  Result<StreamFacts> open() override {
    ++camera_->dials;
    if (!camera_->up) return stream_failure(StreamErrorCode::tcp_refused, "connection refused");
    return facts();
  }
  // 50 pictures a second.
  Result<PacketPtr> read() override {
    for (; camera_->stuck; camera_->hangs = true) test::between_looks();
    Instant due = boot_now() + 20ms;
    while (boot_now() < due || camera_->frozen) {
      if (stopped_) return stream_failure(StreamErrorCode::rtsp_protocol, "interrupted");
      if (!camera_->up) return stream_failure(StreamErrorCode::rtsp_protocol, "the camera ended the stream");
      test::between_looks();
    }
    auto packet = std::make_shared<FakePacket>();
    packet->number = next_++;
    packet->key = packet->number % camera_->keyframe_every == 0;
    packet->stream_time = packet->number * Duration(20ms);
    packet->received = boot_now();
    packet->captured = wall_now();
    return PacketPtr(packet);
  }
  Result<std::vector<PicturePtr>> decode(const PacketPtr& packet) override {
    ++camera_->decoded;
    return std::vector<PicturePtr>{picture_of(*packet)};
  }
  Result<PicturePtr> decode_alone(const PacketPtr& packet) override {
    ++camera_->alone;
    return picture_of(*packet);
  }
  void restart_decoder() override {}
  void close() override {}
  void interrupt() override { stopped_ = true; }
  StreamFacts facts() const override { return {.codec = "h264", .width = 64, .height = 48, .fps = 50}; }

 private:
  PicturePtr picture_of(const Packet& packet) {
    bool bright = camera_->moving != 0 && packet.number % 2 == 0;
    auto made = std::make_shared<GreyPicture>(64, 48, 100);
    if (bright) made->paint(0, 0, 40, 48, 220);
    made->number = packet.number;
    made->stream_time = packet.stream_time;
    made->received = packet.received;
    made->captured = packet.captured;
    return made;
  }
  std::shared_ptr<FakeCamera> camera_;
  std::atomic<bool> stopped_ = false;
  std::int64_t next_ = 0;
};

// Sees one person in every picture, when the test lets it.
struct Eyes {
  std::atomic<bool> blocked = false;
  std::atomic<int> looks = 0;
};
class FakeDetector final : public Detector {
 public:
  explicit FakeDetector(std::shared_ptr<Eyes> eyes) : eyes_(std::move(eyes)) {}
  Result<std::vector<std::vector<Detection>>> detect(std::span<const Look> looks) override {
    while (eyes_->blocked) test::between_looks();
    ++eyes_->looks;
    return std::vector<std::vector<Detection>>(looks.size(), {{"person", 0.9, {10, 10, 30, 40}}});
  }

 private:
  std::shared_ptr<Eyes> eyes_;
};

class WorkerTest : public ::testing::Test {
 protected:
  WorkerTest() : publisher_([this](asio::io_context&) { return make_bus(); }, std::make_unique<FakeSpool>(disk_)) {}
  ~WorkerTest() override {
    eyes_->blocked = false;
    if (worker_) {
      EXPECT_TRUE(test::run(io_, worker_->drain(clock_.now() + 10s)));
    }
    end(publisher_.publisher());
    worker_.reset();
  }

  void make(std::vector<Source> sources, WorkerSettings settings = {}) {
    ShardConfig shard{.runner = RunnerId::trusted("r")};
    shard.sources = std::move(sources);
    worker_ = std::make_unique<Worker>(
        clock_, metrics_, publisher_.publisher(), shard, settings,
        [this](const DialRequest& request) -> Result<std::unique_ptr<VideoSource>> {
          return std::unique_ptr<VideoSource>(new FakeVideo(camera(request.url.reveal())));
        },
        [this](const camera::Model& model) -> Result<std::unique_ptr<Detector>> {
          if (model.name == "missing") return stream_failure(StreamErrorCode::model_error, "no such model");
          return std::unique_ptr<Detector>(new FakeDetector(eyes_));
        });
    for (const auto& [name, fake] : cameras_) grant(name.substr(name.rfind('/') + 1));
  }
  std::shared_ptr<FakeCamera> camera(const std::string& url) {
    std::lock_guard guard(mutex_);
    auto& found = cameras_[url];
    if (!found) found = std::make_shared<FakeCamera>();
    return found;
  }
  std::shared_ptr<FakeCamera> fake(const std::string& id) { return camera("rtsp://h/" + id); }
  Source source(const std::string& id, const std::string& model = "") {
    fake(id);
    Source made;
    made.config.camera = CameraId::trusted(id);
    made.config.tenant = TenantId::trusted("t");
    made.config.site = SiteId::trusted("s");
    made.config.rtsp_url = Secret("rtsp://h/" + id);
    made.config.model.name = model;
    made.config.max_fps = 100;
    made.config.motion_gating.min_area_px = 100;
    return made;
  }
  void grant(const std::string& id, Duration valid = 1h) {
    worker_->grant({.camera = CameraId::trusted(id),
                    .version = {++versions_},
                    .tenure = {BootId::trusted("b"), {1}},
                    .valid_until = clock_.now() + valid});
  }
  json::object about(const std::string& id) {
    json::object state = worker_->state();
    for (auto& each : state["cameras"].as_array())
      if (each.at("camera_uuid").as_string() == id) return each.as_object();
    return {};
  }
  std::int64_t count(const std::string& id, const char* field) {
    json::object found = about(id);
    return found.empty() ? -1 : found[field].as_int64();
  }
  bool is(const std::string& id, std::string_view state) {
    json::object found = about(id);
    return !found.empty() && found["state"].as_string() == state;
  }
  // What the bus has, by routing key.
  int heard(std::string_view key, std::string_view text = "") {
    std::lock_guard guard(mutex_);
    return static_cast<int>(std::ranges::count_if(heard_, [&](const OutgoingEvent& e) {
      return e.routing_key == key && e.payload.find(text) != std::string::npos;
    }));
  }

 private:
  // Hands on what the fenced fake would accept; it runs on the publisher's thread.
  class Bus final : public EventBus {
   public:
    explicit Bus(WorkerTest& test) : test_(test) {}
    asio::awaitable<Result<std::vector<Confirmation>>> publish(std::vector<OutgoingEvent> events) override {
      for (; test_.bus_held_; test_.bus_waited_ = true) co_await test_.clock_.wait(5ms);
      std::lock_guard guard(test_.mutex_);
      for (OutgoingEvent& event : events) test_.heard_.push_back(std::move(event));
      co_return std::vector<Confirmation>(events.size(), Confirmation::accepted);
    }
    asio::awaitable<Status> subscribe(Subscription, std::function<bool(const DeliveredEvent&)>) override {
      co_return ok();
    }

   private:
    WorkerTest& test_;
  };
  std::unique_ptr<EventBus> make_bus() { return std::make_unique<Bus>(*this); }
  void end(Publisher& publisher) {
    auto flushed = [](Publisher& p, Instant until) -> asio::awaitable<int> {
      co_await p.flush_and_stop(until);
      co_return 0;
    };
    test::run(io_, flushed(publisher, clock_.now() + 5s));
  }

 protected:
  asio::io_context io_{1};
  RealClock clock_;
  net::Metrics metrics_;
  FakeDisk disk_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<FakeCamera>> cameras_;
  std::vector<OutgoingEvent> heard_;
  std::atomic<bool> bus_held_ = false, bus_waited_ = false;
  std::shared_ptr<Eyes> eyes_ = std::make_shared<Eyes>();
  std::int64_t versions_ = 0;
  PublisherThread publisher_;
  std::unique_ptr<Worker> worker_;
};

TEST_F(WorkerTest, Camera_StreamsAndIsSeen) {
  make({source("a")});
  EXPECT_TRUE(eventually(10s, [&] { return heard("detections.t.s.a", "person") > 2; }));
  EXPECT_TRUE(is("a", "STREAMING"));
  EXPECT_GE(heard("stream.status.t.s.a", "STREAMING"), 1);
}

TEST_F(WorkerTest, RefusedCamera_IsReportedWithItsCode_AndTriedAgainUntilItComesBack) {
  fake("a")->up = false;
  make({source("a")});
  ASSERT_TRUE(eventually(10s, [&] { return heard("stream.error.t.s.a", "TCP_REFUSED") > 0; }));
  EXPECT_EQ(about("a")["error"].at("code").as_string(), "TCP_REFUSED");
  fake("a")->up = true;
  EXPECT_TRUE(eventually(20s, [&] { return is("a", "STREAMING"); }));
  EXPECT_GT(fake("a")->dials, 1);
  EXPECT_FALSE(about("a").contains("error"));
}

TEST_F(WorkerTest, SlowDetector_CostsPictures_NeverDelay_AndStarvesNobody) {
  eyes_->blocked = true;
  make({source("a"), source("b")}, {.inference_threads = 1});
  ASSERT_TRUE(eventually(10s, [&] { return count("a", "dropped") > 10 && count("b", "dropped") > 10; }));
  std::int64_t received = count("a", "received");
  EXPECT_TRUE(eventually(5s, [&] { return count("a", "received") > received + 10; }));
  EXPECT_LT(about("a")["last_frame_age_s"].to_number<double>(), 1.0);
  eyes_->blocked = false;
  EXPECT_TRUE(eventually(10s, [&] { return count("a", "inferred") > 5 && count("b", "inferred") > 5; }));
}

TEST_F(WorkerTest, MissingModel_IsAnErrorOfItsCamera_OthersAreSeen) {
  make({source("a", "missing"), source("b")}, {.inference_threads = 1});
  EXPECT_TRUE(eventually(10s, [&] { return heard("stream.error.t.s.a", "MODEL_ERROR") > 0; }));
  EXPECT_TRUE(eventually(10s, [&] { return heard("detections.t.s.b") > 2; }));
  EXPECT_TRUE(is("a", "STREAMING"));
  EXPECT_EQ(heard("stream.error.t.s.b"), 0);
  EXPECT_EQ(heard("stream.error.t.s.a", "MODEL_ERROR"), 1) << "said once a try, not once a picture";
}

TEST_F(WorkerTest, OtherThresholds_TakeEffect_WithoutANewConnection) {
  make({source("a")});
  ASSERT_TRUE(eventually(10s, [&] { return heard("detections.t.s.a") > 0; }));
  Source changed = source("a");
  changed.config.min_score = 0.95;
  worker_->add(changed);
  ASSERT_TRUE(eventually(10s, [&] {
    int before = heard("detections.t.s.a");
    std::int64_t inferred = count("a", "inferred");
    return eventually(5s, [&] { return count("a", "inferred") > inferred + 5; }) && heard("detections.t.s.a") == before;
  }));
  EXPECT_EQ(fake("a")->dials, 1);
}

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

TEST_F(WorkerTest, CameraThatNeverDelivered_IsSilentSinceItWasTakenOn_HoweverOftenItIsTried) {
  fake("a")->up = false;
  make({source("a")});
  Instant taken_on = clock_.now();
  asio::cancellation_signal stop;
  asio::co_spawn(io_, worker_->run(), asio::bind_cancellation_slot(stop.slot(), asio::detached));
  auto age = [&] {
    constexpr std::string_view kName = "last_frame_age_seconds{camera_uuid=\"a\"} ";
    std::string text = metrics_.text();
    size_t at = text.find(kName);
    return at == std::string::npos ? -1.0 : std::stod(text.substr(at + kName.size()));
  };
  auto looks = [&](const std::function<bool()>& condition) {
    return eventually(10s, [&] {
      io_.restart();
      io_.poll();
      return condition();
    });
  };
  EXPECT_TRUE(looks([&] { return fake("a")->dials >= 3; }));
  auto apart = [&] { return seconds(clock_.now() - taken_on) - age(); };
  EXPECT_TRUE(looks([&] { return std::abs(apart()) < 0.5; })) << apart();
  stop.emit(asio::cancellation_type::total);
  EXPECT_TRUE(looks([&] { return io_.stopped(); }));
}

TEST_F(WorkerTest, VersionThatTheBusRefused_StopsTheCamera_UnlessItHasAnotherByNow) {
  make({source("a")});
  ASSERT_TRUE(eventually(10s, [&] { return is("a", "STREAMING"); }));
  lease::Version before{versions_};
  grant("a");
  worker_->refused(CameraId::trusted("a"), before);
  EXPECT_EQ(worker_->readiness().cameras, 1);
  worker_->refused(CameraId::trusted("a"), {versions_});
  EXPECT_TRUE(worker_->lost_all());
}

TEST(WorkerOutage, AsLongAsTheGrace_LeavesTimeForTheAnswerToCome) {
  EXPECT_EQ(with_recovery(300s), 315s);
  EXPECT_EQ(with_recovery(10s), 10'500ms);
  EXPECT_EQ(with_recovery(3600s), 3615s);
}

TEST_F(WorkerTest, OwnerWithoutAnAnswer_StopsDecodingAfterTheGrace_AndGoesOnWhenItComes) {
  make({source("a")}, {.outage_grace = 300ms});
  ASSERT_TRUE(eventually(10s, [&] { return is("a", "STREAMING"); }));
  asio::cancellation_signal stop;
  asio::co_spawn(io_, worker_->run(), asio::bind_cancellation_slot(stop.slot(), asio::detached));
  grant("a", 200ms);
  auto looks = [&](const std::function<bool()>& condition) {
    return eventually(10s, [&] {
      io_.restart();
      io_.poll();
      return condition();
    });
  };
  EXPECT_TRUE(looks([&] { return about("a")["paused"].as_bool() && is("a", "DISCONNECTED"); }));
  grant("a", 1h);
  EXPECT_TRUE(looks([&] { return is("a", "STREAMING"); }));
  stop.emit(asio::cancellation_type::total);
  EXPECT_TRUE(looks([&] { return io_.stopped(); }));
}

TEST_F(WorkerTest, Readiness_IsAShareOfTheCameras) {
  fake("c")->up = false;
  make({source("a"), source("b"), source("c")}, {.readiness_quorum_pct = 60});
  EXPECT_TRUE(eventually(10s, [&] { return worker_->readiness().delivering == 2 && worker_->readiness().ready; }));
  fake("b")->frozen = true;
  EXPECT_TRUE(eventually(10s, [&] { return !worker_->readiness().ready; }));
}

TEST_F(WorkerTest, Health_NamesTheCameraWhoseThreadHangs_NotTheOneThatWaitsForItsNextTry) {
  fake("down")->up = false;
  make({source("a"), source("b"), source("down")}, {.patience = 500ms});
  Endpoints endpoints{.worker = *worker_, .metrics = metrics_, .token = Secret("t")};
  net::Router router;
  add_endpoints(router, endpoints);
  auto health = [&](const char* token) {
    net::Request request{.method = net::Method::get, .path = "/healthz"};
    request.headers = {{"host", "127.0.0.1"}, {"authorization", token}};
    auto found = router.find(net::Method::get, "/healthz", request);
    net::Response answer = test::run(io_, (*found->handler)(request));
    return fmt::format("{} {}", answer.status, answer.body);
  };
  ASSERT_TRUE(eventually(10s, [&] { return is("a", "STREAMING") && is("b", "STREAMING"); }));
  // A retry is due after more than the patience: that one waits, and hangs not.
  ASSERT_TRUE(eventually(10s, [&] { return fake("down")->dials >= 2; }));
  EXPECT_TRUE(health("Bearer t").starts_with("200 ")) << health("Bearer t");
  EXPECT_TRUE(health("").starts_with("401 "));
  fake("a")->stuck = true;
  EXPECT_TRUE(eventually(10s, [&] { return health("Bearer t").starts_with("503 "); }));
  EXPECT_NE(health("Bearer t").find("camera a: its thread has hung"), std::string::npos) << health("Bearer t");
  EXPECT_EQ(worker_->troubles().size(), 1u);
  fake("a")->stuck = false;
  EXPECT_TRUE(eventually(10s, [&] { return health("Bearer t").starts_with("200 "); }));
  eyes_->blocked = true;
  EXPECT_TRUE(eventually(10s, [&] { return health("Bearer t").find("the detector hangs") != std::string::npos; }));
}

TEST_F(WorkerTest, StillScene_IsDecodedByItsKeyframes_UntilSomethingMoves) {
  fake("a")->moving = 0;
  make({source("a")});
  ASSERT_TRUE(eventually(20s, [&] { return fake("a")->alone > 3; }));
  int decoded = fake("a")->decoded;
  ASSERT_TRUE(eventually(10s, [&] { return fake("a")->alone > 8; }));
  EXPECT_EQ(fake("a")->decoded, decoded);
  fake("a")->moving = 1;
  EXPECT_TRUE(eventually(10s, [&] { return fake("a")->decoded > decoded + 20; }));
  EXPECT_TRUE(eventually(10s, [&] { return heard("detections.t.s.a") > 2; }));
}

TEST_F(WorkerTest, WithoutALease_NothingIsSaid) {
  make({});
  worker_->add(source("a"));
  ASSERT_TRUE(eventually(10s, [&] { return count("a", "inferred") > 5; }));
  EXPECT_EQ(heard("detections.t.s.a"), 0);
  EXPECT_EQ(heard("stream.status.t.s.a"), 0);
  grant("a");
  EXPECT_TRUE(eventually(10s, [&] { return heard("stream.status.t.s.a", "STREAMING") == 1; }));
  EXPECT_TRUE(eventually(10s, [&] { return heard("detections.t.s.a") > 0; }));
}

}  // namespace
}  // namespace weir::worker
