// Every way in which a camera can misbehave: the right code, the others untouched, and back by itself when it is over.
#include "shard.hpp"
#include "stall.hpp"

#include "weir/base/clock.hpp"
#include "weir/base/json.hpp"

#include <gtest/gtest.h>

namespace weir::test {
namespace {

// Small and short: what is tested is the connection, not the picture.
const std::string kProfile = "width=320,height=240,fps=10,keyframe_s=1,seconds=10";
const boost::json::object kBlind{{"model", {{"detector", "none"}}}};

struct Broken {
  std::string name;
  boost::json::object fault;
  std::string code;          // that must be reported; "" where the stream must survive
};

const std::vector<Broken>& broken_cameras() {
  static const std::vector<Broken> all = {
      {"unauthorized", {{"kind", "unauthorized"}}, "RTSP_AUTH_FAILED"},
      {"notfound", {{"kind", "not_found"}}, "RTSP_NOT_FOUND"},
      {"refuse", {{"kind", "refuse"}}, "RTSP_PROTOCOL"},
      {"stall", {{"kind", "stall"}}, "STALLED"},
      {"drop", {{"kind", "drop"}, {"hold", true}}, "RTSP_PROTOCOL"},
      {"blackhole", {{"kind", "black_hole"}}, "STALLED"},
      {"garbage", {{"kind", "garbage"}}, "DECODE_ERROR"},
      {"sessions", {{"kind", "max_sessions"}, {"sessions", 0}, {"policy", "kick_old"}}, "RTSP_PROTOCOL"},
      {"codec", {{"kind", "codec"}, {"codec", "h265"}}, ""},
      {"resolution", {{"kind", "resolution"}, {"width", 448}, {"height", 336}}, ""},
      {"slow", {{"kind", "slow"}, {"rate", 0.5}}, ""},
  };
  return all;
}

class WorkerFaults : public ::testing::Test {
 protected:
  void SetUp() override {
    if (part("footage/vtest.avi").empty()) GTEST_SKIP() << "the footage could not be fetched";
    boost::json::array cameras{{{"name", "well"}, {"profile", kProfile}}};
    for (const Broken& each : broken_cameras()) cameras.push_back({{"name", each.name}, {"profile", kProfile}});
    boost::json::array recorders{{{"name", "main"}, {"cameras", cameras}},
                                 {{"name", "gone"}, {"cameras", {{{"name", "refused"}, {"profile", kProfile}}}}},
                                 {{"name", "deaf"}, {"cameras", {{{"name", "deaf"}, {"profile", kProfile}}}}}};
    camsim_ = std::make_unique<Camsim>(folder_, recorders);
    plane_ = std::make_unique<WeirProcess>(folder_.path(), "sqlite:" + folder_.path() + "/weir.db");
    ASSERT_EQ(plane_->post("/v1/tenants", {{"tenant_id", "t1"}}).status, 201);
    ASSERT_EQ(plane_->post("/v1/sites", {{"site_id", "s1"}, {"tenant_id", "t1"}}).status, 201);
    manager_ = std::make_unique<Manager>(*plane_, "runner-1");
  }
  // Known to the control plane, held by the manager, ready to be given to a worker.
  void add(const std::string& name, const std::string& url, boost::json::object more = kBlind) {
    boost::json::object camera{{"camera_uuid", name}, {"tenant_id", "t1"}, {"site_id", "s1"},
                               {"rtsp_url", "rtsp://camera.example/" + name}};
    ASSERT_EQ(plane_->post("/v1/cameras", camera).status, 201);
    ASSERT_TRUE(manager_->acquire(name));
    sources_.push_back(manager_->source(name, url, std::move(more)));
  }
  void start() { worker_ = std::make_unique<WorkerProcess>(folder_, "worker", manager_->config(sources_)); }
  bool said(const std::string& camera, const std::string& code) {
    for (const auto& event : events_of(*plane_, "stream.error.t1.s1." + camera))
      if (event.at("payload").at("code").as_string() == code) return true;
    return false;
  }
  bool streams(const std::string& camera) { return worker_->state_of(camera) == "STREAMING"; }
  // Renews for as long as a test takes.
  bool soon(Duration limit, const std::function<bool()>& condition) {
    return eventually(limit, [&] {
      if (boot_now() > renew_at_) {
        renew_at_ = boot_now() + 15s;
        boost::json::array leases;
        for (const auto& source : sources_) {
          std::string camera(source.at("camera_uuid").as_string());
          if (manager_->renew(camera)) leases.push_back(manager_->lease(camera));
        }
        EXPECT_EQ(worker_->post("/leases", {{"items", leases}}).status, 200);
      }
      return condition();
    });
  }

  TempDir folder_;
  std::unique_ptr<Camsim> camsim_;
  std::unique_ptr<WeirProcess> plane_;
  std::unique_ptr<Manager> manager_;
  std::unique_ptr<WorkerProcess> worker_;
  boost::json::array sources_;
  Instant renew_at_{};
};

TEST_F(WorkerFaults, EveryFault_HasItsCode_LeavesTheOthersAlone_AndIsOvercomeWhenItEnds) {
  add("well", camsim_->url("well"));
  for (const Broken& each : broken_cameras()) add(each.name, camsim_->url(each.name));
  add("refused", camsim_->url("refused"));
  start();
  ASSERT_TRUE(soon(15s, [&] { return worker_->get("/ready").status == 200; })) << worker_->child().log();
  for (const Broken& each : broken_cameras())
    ASSERT_TRUE(soon(20s, [&] { return streams(each.name); })) << each.name;

  for (const Broken& each : broken_cameras()) camsim_->fault(each.name, each.fault);
  camsim_->recorder_fault("gone", {{"kind", "refuse"}});
  for (const Broken& each : broken_cameras()) {
    if (each.code.empty()) continue;
    EXPECT_TRUE(soon(30s, [&] { return said(each.name, each.code); }))
        << each.name << ": " << boost::json::serialize(worker_->camera(each.name));
  }
  EXPECT_TRUE(soon(30s, [&] { return said("refused", "TCP_REFUSED"); }));
  EXPECT_TRUE(soon(20s, [&] { return worker_->number("resolution", "width") == 448; }));
  EXPECT_EQ(worker_->number("resolution", "dials"), 1) << "a new size needs no new connection";
  EXPECT_TRUE(soon(20s, [&] { return streams("codec") && worker_->camera("codec").at("codec").as_string() == "hevc"; }));
  EXPECT_TRUE(streams("slow"));
  EXPECT_EQ(worker_->number("slow", "dials"), 1);

  // A wrong password is not tried again quickly: the camera might lock the account.
  for (const auto& event : events_of(*plane_, "stream.error.t1.s1.unauthorized")) {
    if (event.at("payload").at("code").as_string() != "RTSP_AUTH_FAILED") continue;
    EXPECT_GE(event.at("payload").at("retry_in_ms").as_int64(), 4000);
  }

  for (const Broken& each : broken_cameras()) camsim_->fault(each.name, {{"kind", "none"}});
  camsim_->recorder_fault("gone", {{"kind", "none"}});
  for (const Broken& each : broken_cameras())
    EXPECT_TRUE(soon(60s, [&] { return streams(each.name); }))
        << each.name << ": " << boost::json::serialize(worker_->camera(each.name));
  EXPECT_TRUE(soon(60s, [&] { return streams("refused"); }));

  EXPECT_TRUE(streams("well"));
  EXPECT_EQ(worker_->number("well", "dials"), 1) << "the camera that was well was not touched";
  EXPECT_EQ(worker_->number("well", "errors"), 0);
  EXPECT_GT(worker_->metric("stream_errors_total{camera_uuid=\"stall\",code=\"STALLED\"}"), 0);
}

TEST_F(WorkerFaults, WhatNeverConnects_HasItsCodeToo) {
  camsim_->recorder_fault("deaf", {{"kind", "black_hole"}});
  std::string plain = camsim_->url("well");
  add("deaf", camsim_->url("deaf"));
  add("nohost", "rtsp://no-such-host.invalid/1");
  add("linklocal", "rtsp://169.254.10.20/1");
  add("nottls", "rtsps" + plain.substr(4));
  add("nomodel", plain, {{"model", {{"detector", "tflite"}, {"name", "no-such-model"}}}, {"motion_gating", {{"enabled", false}}}});
  start();
  EXPECT_TRUE(soon(30s, [&] { return said("deaf", "TCP_TIMEOUT"); }));
  EXPECT_TRUE(soon(30s, [&] { return said("nohost", "DNS_FAILED"); }));
  EXPECT_TRUE(soon(30s, [&] { return said("linklocal", "URL_REFUSED"); }));
  EXPECT_TRUE(soon(30s, [&] { return said("nottls", "TLS_FAILED"); }));
  EXPECT_TRUE(soon(30s, [&] { return said("nomodel", "MODEL_ERROR"); }));
  EXPECT_TRUE(streams("nomodel")) << "a camera without its model still delivers";
  EXPECT_TRUE(soon(15s, [&] {
    return std::ranges::any_of(events_of(*plane_, "stream.status.t1.s1.nomodel"), [](const auto& event) {
      const auto& status = event.at("payload").as_object();
      return status.contains("code") && status.at("code") == "MODEL_ERROR" && status.at("state") == "STREAMING";
    });
  })) << "its summaries say that nobody looks at it";
  EXPECT_EQ(worker_->get("/ready").status, 503);
}

}  // namespace
}  // namespace weir::test
