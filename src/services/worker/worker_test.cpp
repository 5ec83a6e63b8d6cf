#include "worker_testing.hpp"

#include "log_lines.hpp"

#include "weir/worker/endpoints.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include <pthread.h>

namespace weir::worker {
namespace {

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
  EXPECT_EQ(about("a")["error"].at("code").as_string(), "MODEL_ERROR");
  EXPECT_FALSE(about("b").contains("error"));
}

TEST_F(WorkerTest, ModelThatFailsAgainAfterItWorked_IsReportedAgain) {
  eyes_->broken = true;
  make({source("a")}, {.inference_threads = 1});
  ASSERT_TRUE(eventually(10s, [&] { return heard("stream.error.t.s.a", "MODEL_ERROR") == 1; }));
  eyes_->broken = false;
  ASSERT_TRUE(eventually(15s, [&] { return heard("detections.t.s.a") > 2; }));
  EXPECT_FALSE(about("a").contains("error"));
  eyes_->broken = true;
  EXPECT_TRUE(eventually(2s, [&] { return heard("stream.error.t.s.a", "MODEL_ERROR") == 2; })) << "before the next try";
}

TEST_F(WorkerTest, FailuresOfOneKind_DoNotDelayTheNextTryAfterAnother) {
  using enum StreamErrorCode;
  fake("a")->refusals = {std::nullopt, rtsp_protocol, tcp_refused, rtsp_protocol};
  make({source("a")});
  ASSERT_TRUE(eventually(10s, [&] { return is("a", "STREAMING"); }));
  fake("a")->up = false;  // the first failure
  auto delay = [&](int failure, std::string_view code) {
    if (!eventually(10s, [&] { return heard("stream.error.t.s.a") >= failure; })) return -1.0;
    json::value said = payload("stream.error.t.s.a", failure - 1);
    return said.at("code").as_string() == code ? said.at("retry_in_ms").to_number<double>() / 1000 : -1.0;
  };
  double second = delay(2, "RTSP_PROTOCOL");
  EXPECT_GT(second, 0.7) << "grows from 0.5 s to 1 s";
  double refused = delay(3, "TCP_REFUSED");
  EXPECT_GT(refused, 0.7);
  EXPECT_LE(refused, 1.0) << "the first of its kind";
  EXPECT_GT(delay(4, "RTSP_PROTOCOL"), 1.5) << "the third of its kind, though another came between";
}

TEST_F(WorkerTest, ACameraThatStaysAway_IsOneFailureInTheLog_AndEveryTryOnTheBus) {
  test::LogLines log;
  make({source("a")});
  ASSERT_TRUE(eventually(10s, [&] { return is("a", "STREAMING"); }));
  fake("a")->up = false;
  ASSERT_TRUE(eventually(10s, [&] { return heard("stream.error.t.s.a", "TCP_REFUSED") == 2; }));
  EXPECT_EQ(log.count("\"event\":\"stream.error\""), 2u) << "its end, and that it refuses\n" << log.all();
  EXPECT_EQ(log.count("\"state\":\"CONNECTING\""), 1u) << log.all();
  EXPECT_EQ(log.count("\"state\":\"DISCONNECTED\""), 1u) << log.all();
  EXPECT_GE(heard("stream.status.t.s.a", "DISCONNECTED"), 3) << "after each";
}

TEST_F(WorkerTest, TimeUntilTheNextTry_IsWhatIsLeftOfIt) {
  fake("a")->refusals = {StreamErrorCode::rtsp_auth_failed};
  make({source("a")});
  auto left_ms = [&] { return about("a")["error"].at("retry_in_ms").as_int64(); };
  ASSERT_TRUE(eventually(10s, [&] { return about("a").contains("error"); }));
  std::int64_t before = left_ms();
  EXPECT_GT(before, 3000);
  EXPECT_TRUE(eventually(5s, [&] { return left_ms() < before - 200; }));
}

TEST_F(WorkerTest, PicturesThatArriveOutOfTheirOrder_AreAllLookedAt_WhereMaxFpsAllowsThem) {
  fake("a")->reordered = true;
  Source wanted = source("a");
  wanted.config.motion_gating.enabled = false;
  make({wanted});
  json::object found;
  ASSERT_TRUE(eventually(10s, [&] { return (found = about("a"))["decoded"].as_int64() > 60; }));
  std::int64_t offered = found["inferred"].as_int64() + found["dropped"].as_int64();
  EXPECT_GE(offered, found["decoded"].as_int64() - 4) << "but for those on their way";
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

TEST_F(WorkerTest, PauseThatIsOverBeforeItIsNoticed_IsNoErrorOfTheCamera_AndItGoesOn) {
  make({source("a")});
  ASSERT_TRUE(eventually(10s, [&] { return heard("stream.status.t.s.a", "STREAMING") == 1; }));
  fake("a")->stuck = true;
  ASSERT_TRUE(eventually(10s, [&] { return fake("a")->hangs.load(); }));
  grant("a", -10min);
  EXPECT_TRUE(about("a")["paused"].as_bool());
  grant("a");
  fake("a")->stuck = false;
  EXPECT_TRUE(eventually(10s, [&] { return heard("stream.status.t.s.a", "STREAMING") == 2; }));
  EXPECT_EQ(fake("a")->dials, 2);
  EXPECT_EQ(heard("stream.error.t.s.a"), 0);
}

TEST_F(WorkerTest, PauseThatIsOverBeforeTheDialNoticedIt_IsNoErrorOfTheCamera_AndItGoesOn) {
  fake("a")->looked_up = false;
  make({source("a")});
  ASSERT_TRUE(eventually(10s, [&] { return fake("a")->hangs.load(); }));
  grant("a", -10min);
  grant("a");
  fake("a")->looked_up = true;
  EXPECT_TRUE(eventually(10s, [&] { return heard("stream.status.t.s.a", "STREAMING") == 1; }));
  EXPECT_EQ(fake("a")->dials, 2);
  EXPECT_EQ(heard("stream.error.t.s.a"), 0);
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
  auto health = [&](const char* token, const char* path = "/healthz") {
    net::Request request{.method = net::Method::get, .path = path};
    request.headers = {{"host", "127.0.0.1"}, {"authorization", token}};
    auto found = router.find(net::Method::get, path, request);
    net::Response answer = test::run(io_, (*found->handler)(request));
    return fmt::format("{} {}", answer.status, answer.body);
  };
  ASSERT_TRUE(eventually(10s, [&] { return is("a", "STREAMING") && is("b", "STREAMING"); }));
  // A retry is due after more than the patience: a thread that waits for it does not hang.
  ASSERT_TRUE(eventually(10s, [&] { return fake("down")->dials >= 2; }));
  EXPECT_TRUE(eventually(10s, [&] { return health("Bearer t").starts_with("200 "); })) << health("Bearer t");
  EXPECT_TRUE(health("").starts_with("401 "));
  fake("a")->stuck = true;
  EXPECT_TRUE(eventually(10s, [&] { return health("Bearer t").starts_with("503 "); }));
  EXPECT_NE(health("Bearer t").find("camera a: its thread has hung"), std::string::npos) << health("Bearer t");
  EXPECT_TRUE(eventually(10s, [&] { return worker_->troubles().size() == 1; }));
  std::string state = health("Bearer t", "/state");  // what its manager looks at
  EXPECT_NE(state.find(R"("stuck":[{"camera_uuid":"a","what":"its thread has hung)"), std::string::npos) << state;
  fake("a")->stuck = false;
  EXPECT_TRUE(eventually(10s, [&] { return health("Bearer t").starts_with("200 "); }));
  eyes_->blocked = true;
  EXPECT_TRUE(eventually(10s, [&] { return health("Bearer t").find("the detector hangs") != std::string::npos; }));
}

TEST_F(WorkerTest, Health_OfAWorkerThatIsMute_IsNone_SoThatItsManagerReplacesIt) {
  make({source("a")});
  bool mute = false;
  Endpoints endpoints{.worker = *worker_, .metrics = metrics_, .token = Secret("t"), .mute = [&] { return mute; }};
  net::Router router;
  add_endpoints(router, endpoints);
  auto status = [&](const char* path) {
    net::Request request{.method = net::Method::get, .path = path};
    request.headers = {{"host", "127.0.0.1"}, {"authorization", "Bearer t"}};
    return test::run(io_, (*router.find(net::Method::get, path, request)->handler)(request)).status;
  };
  for (const char* path : {"/healthz", "/state"}) EXPECT_EQ(status(path), 200);
  mute = true;
  for (const char* path : {"/healthz", "/state"}) EXPECT_EQ(status(path), 503);
}

// A nameserver that does not answer takes longer than any patience with a library, and takes no camera with it.
TEST_F(WorkerTest, Health_ALookupThatLasts_IsNoHang) {
  fake("a")->looked_up = false;
  make({source("a"), source("b")}, {.patience = 200ms});
  ASSERT_TRUE(eventually(10s, [&] { return is("b", "STREAMING") && fake("a")->hangs.load(); }));
  Instant since = boot_now();
  ASSERT_TRUE(eventually(10s, [&] { return boot_now() > since + 1s; }));
  EXPECT_TRUE(worker_->troubles().empty()) << worker_->troubles().front().what;
  fake("a")->looked_up = true;
  EXPECT_TRUE(eventually(10s, [&] { return is("a", "STREAMING"); }));
  fake("a")->stuck = true;
  EXPECT_TRUE(eventually(10s, [&] { return worker_->troubles().size() == 1; })) << "afterwards it is one again";
  fake("a")->stuck = false;
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

// A stack that fits into no memory: what a limit on processes does, for everybody, root or not.
void refuse_threads() {
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, size_t{1} << 60);
  ::pthread_setattr_default_np(&attributes);
}

TEST_F(WorkerTest, WithoutAThreadForItsCamera_EndsAsOneWhoMayDoBetterLater_AndSaysWhatToDo) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer allows no thread after a fork, not even one that fails";
#endif
  auto begin = [&] {
    log::configure({.level = log::Level::error});
    refuse_threads();
    make({source("a")}, {.inference_threads = 0});
  };
  EXPECT_EXIT(begin(), testing::ExitedWithCode(kExitNoThreads), "0 of 1 cameras.*TasksMax");
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
