// A camera's picture on request: from a real worker, through its runner, to a client of any control plane.
#include "fleet.hpp"
#include "stall.hpp"
#include "where.hpp"

#include "weir/base/clock.hpp"
#include "weir/net/token.hpp"

#include <fstream>

namespace weir::test {
namespace {

class Snapshot : public FleetTest {
 protected:
  void SetUp() override {
    FleetTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    FleetOptions options{.cameras = 2, .camera = {{"max_fps", 2}}};
    options.database = "sqlite:" + folder_.path() + "/weir.db";
    if (postgres()) {
      auto server = PostgresServer::shared();
      SKIP_WITHOUT_POSTGRES(server);
      options.database = *(*server)->new_database();
    }
    database_ = options.database;
    fleet_ = std::make_unique<RunnerFleet>(options);
    fleet_->add("r1");
    ASSERT_TRUE(fleet_->all_stream(30s)) << fleet_->report();
  }
  static std::string target(const std::string& camera) { return "/v1/cameras/" + camera + "/snapshot.jpg"; }
  Reply ask(const WeirProcess& plane, const std::string& camera, const std::string& role = "viewer",
            const std::string& tenant = "") {
    return plane.call(net::Method::get, target(camera), nullptr, plane.token(role, "me", tenant));
  }
  void expect_picture(const Reply& reply, const char* whose) {
    ASSERT_EQ(reply.status, 200) << whose << ": " << reply.text << fleet_->report();
    EXPECT_TRUE(reply.text.starts_with("\xFF\xD8\xFF"));
    EXPECT_GT(reply.text.size(), 1000u);
    EXPECT_EQ(reply.headers.at("content-type"), "image/jpeg");
    auto taken = from_iso(reply.headers.at("x-captured-at"));
    ASSERT_TRUE(taken);
    EXPECT_LT(std::chrono::abs(wall_now() - *taken), 30s);
  }
  TempDir folder_;
  std::string database_;
};

TEST_P(Snapshot, LatestFrame_ComesFromWhoHoldsTheCamera_ThroughEveryControlPlane) {
  // A stream's first packet comes before its first picture.
  for (const char* camera : {"cam-1", "cam-2"})
    ASSERT_TRUE(eventually(10s, [&] { return ask(fleet_->plane(), camera).status == 200; })) << fleet_->report();
  expect_picture(ask(fleet_->plane(), "cam-1"), "the first");
  expect_picture(ask(fleet_->plane(), "cam-2", "admin", "t1"), "an administrator's");
  EXPECT_EQ(ask(fleet_->plane(), "cam-1", "viewer", "t2").status, 404);
  EXPECT_EQ(ask(fleet_->plane(), "cam-1", "worker").status, 403);
  EXPECT_EQ(ask(fleet_->plane(), "nowhere").code(), "camera_not_found");
  if (postgres()) {
    WeirProcess other(fleet_->folder().path(), database_);  // the runner does not know this one
    expect_picture(ask(other, "cam-1"), "another control plane's");
  }

  // A request for a picture changes no camera: the runner does not list the cameras again.
  auto lists = [&] {
    std::string page = get_from(fleet_->plane().url(), "/metrics").text, all;
    size_t at = page.find("weir_http_requests_total{method=\"GET\",route=\"/v1/cameras\",status=\"200\"} ");
    return at == std::string::npos ? 0 : std::atoi(page.c_str() + page.find(' ', at));
  };
  int before = lists();
  EXPECT_GT(before, 0);
  for (int i = 0; i < 6; ++i) expect_picture(ask(fleet_->plane(), i % 2 == 0 ? "cam-1" : "cam-2"), "one of many");
  EXPECT_LT(lists() - before, 6);
}

TEST_P(Snapshot, WhoHasNoPicture_SaysSo) {
  WeirProcess& plane = fleet_->plane();
  Secret runner = plane.token("runner", "r1"), stranger = plane.token("runner", "r2");
  json::object body{{"runner_id", "r2"}, {"request_id", "q"}, {"jpeg", net::base64url("\xFF\xD8\xFFx")}};
  auto put = [&](const json::object& what, const Secret& as) {
    return plane.call(net::Method::put, "/v1/cameras/cam-1/snapshot", what, as);
  };
  EXPECT_EQ(put(body, runner).code(), "not_yours");
  EXPECT_EQ(put(body, stranger).code(), "not_holder");
  body["runner_id"] = "r1";
  EXPECT_EQ(put(body, runner).status, 200);
  body["jpeg"] = "nothing of the kind";
  EXPECT_EQ(put(body, runner).status, 400);

  // Held, and never seen: its address leads nowhere.
  json::object unseen{{"camera_uuid", "cam-9"}, {"tenant_id", "t1"}, {"site_id", "s1"},
                      {"rtsp_url", fmt::format("rtsp://127.0.0.1:{}/x", free_port())}};
  ASSERT_EQ(plane.post("/v1/cameras", unseen).status, 201);
  ASSERT_TRUE(eventually(20s, [&] { return ask(plane, "cam-9").code() == "no_picture"; })) << ask(plane, "cam-9").text;
  EXPECT_NE(ask(plane, "cam-9").text.find("runner r1 holds camera cam-9 and has no picture of it yet"), std::string::npos);

  ASSERT_EQ(plane.call(net::Method::patch, "/v1/cameras/cam-2", {{"enabled", false}}, plane.token("admin")).status, 200);
  Reply disabled = ask(plane, "cam-2");
  EXPECT_EQ(disabled.status, 409);
  EXPECT_EQ(disabled.code(), "camera_disabled");

  // A runner that stands still: an answer within 5 s, and renewals of others go on meanwhile.
  auto frozen = fleet_->runner("r1").processes();
  signal_all(frozen, SIGSTOP);
  Instant began = boot_now();
  Reply late = ask(plane, "cam-1");
  signal_all(frozen, SIGCONT);
  EXPECT_EQ(late.status, 503) << late.text;
  EXPECT_EQ(late.code(), "snapshot_timeout") << late.text;
  EXPECT_LT(boot_now() - began, 8s);
}

TEST_P(Snapshot, Command_WritesAFile) {
  std::string file = fleet_->folder().path() + "/now.jpg";
  std::string command = fmt::format("'{}' camera snapshot cam-1 '{}' --url {} --auth-secret-file '{}/auth.secret' >'{}.out'",
                                    WEIR_BINARY, file, fleet_->plane().url(), fleet_->folder().path(), file);
  // Right after the camera has begun to stream, its runner may have no picture yet, and the command says so.
  ASSERT_TRUE(eventually(20s, [&] { return std::system(command.c_str()) == 0; }));
  std::string jpeg(3, ' ');
  std::ifstream(file).read(jpeg.data(), 3);
  EXPECT_EQ(jpeg, "\xFF\xD8\xFF");
  std::string said;
  std::getline(std::ifstream(file + ".out"), said);
  EXPECT_NE(said.find("camera cam-1 at 20"), std::string::npos) << said;
}

INSTANTIATE_TEST_SUITE_P(Stores, Snapshot, ::testing::Values("Sqlite", "Postgres"), store_name);

}  // namespace
}  // namespace weir::test
