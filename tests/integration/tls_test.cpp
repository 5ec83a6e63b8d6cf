// The control plane over TLS, asked by every program of Weir's that asks one, and by somebody else's.
#include "cli_shell.hpp"
#include "cluster_house.hpp"
#include "fleet.hpp"
#include "papers.hpp"
#include "stream_house.hpp"

namespace weir::test {
namespace {

using Words = std::vector<std::string>;

// What Python's own library prints when it does this with the control plane, as strictly as it can.
std::string python(const TempDir& folder, const WeirProcess& plane, const std::string& what) {
  std::string script = folder.path() + "/client.py", out = folder.path() + "/client.out";
  write_text(script,
             "import json, socket, ssl, sys, urllib.request\n"
             "url, ca, token = sys.argv[1:]\n"
             "context = ssl.create_default_context(cafile=ca)\n"
             "context.verify_flags |= ssl.VERIFY_X509_STRICT\n"
             "def ask(path, body=None):\n"
             "    request = urllib.request.Request(url + path, body, {'Authorization': 'Bearer ' + token,\n"
             "                                                       'Content-Type': 'application/json'})\n"
             "    return urllib.request.urlopen(request, context=context, timeout=10)\n"
             "def serial():\n"
             "    port = int(url.rsplit(':', 1)[1])\n"
             "    with socket.create_connection(('127.0.0.1', port), 10) as plain:\n"
             "        with context.wrap_socket(plain, server_hostname='127.0.0.1') as sealed:\n"
             "            return sealed.getpeercert()['serialNumber']\n" +
                 what + "\n");
  std::string command = fmt::format("/usr/bin/python3 {} {} {} {} >{} 2>&1", script, plane.url(), plane.ca_file(),
                                    plane.token("admin").reveal(), out);
  [[maybe_unused]] int ended = std::system(command.c_str());
  std::string said = text_in_file(out);
  while (said.ends_with('\n')) said.pop_back();
  return said;
}

class PlaneOverTls : public ::testing::Test {
 protected:
  void start_plane() {
    plane_ = std::make_unique<WeirProcess>(folder_.path(), "sqlite:" + folder_.path() + "/weir.db", papers_.of_plane());
  }
  // As a person's command, who has the address and a token in the environment.
  Ran weir_over(const std::string& url, const Words& words, bool trusts = true) {
    std::string environment = fmt::format("WEIR_URL={} WEIR_TOKEN={}", url, plane_->token("admin").reveal());
    if (trusts) environment += " CONTROL_PLANE_CA_FILE=" + papers_.ca();
    return weir(folder_, words, environment);
  }
  std::string shown() { return python(folder_, *plane_, "print(serial())"); }

  TempDir folder_;
  Papers papers_;
  std::unique_ptr<WeirProcess> plane_;
};

TEST_F(PlaneOverTls, EveryCommand_AsksIt_AndSaysWhatIsWrongWhereItCannot) {
  start_plane();
  EXPECT_TRUE(has(plane_->log(), "answering HTTP over TLS")) << plane_->log();
  std::string model = folder_.path() + "/model", back = folder_.path() + "/back";
  write_text(model, std::string(3'000'000, 'm'));
  for (const char* command :
       {"tenant add t-01", "site add site-A --tenant t-01", "site budget site-A",
        "camera add --tenant t-01 --site site-A --id cam-1 rtsp://10.0.0.7/stream1", "camera list", "camera show cam-1",
        "camera export", "zone list cam-1", "node list", "lease list", "status", "events", "stream list",
        "model add motion --tenant t-01 --id 7", "model list", "display list", "playlist list", "subscription list",
        "key add --role runner --sub edge-1", "key list"}) {
    Ran ran = weir_over(plane_->url(), words_of(command));
    EXPECT_EQ(ran.code, 0) << command << ": " << ran.err;
  }
  for (const Words& words : {Words{"model", "upload", "7", model}, Words{"model", "download", "7", back}}) {
    Ran ran = weir_over(plane_->url(), words);
    EXPECT_EQ(ran.code, 0) << words[1] << ": " << ran.err;
  }
  EXPECT_EQ(text_in_file(back), text_in_file(model));
  Reply link = plane_->post("/v1/models/7/file-url", boost::json::object());
  EXPECT_TRUE(link.field("url").starts_with(plane_->url() + "/")) << link.text;

  std::string port = plane_->url().substr(plane_->url().rfind(':'));
  expect_complaint(weir_over(plane_->url(), {"camera", "list"}, false), 1, "control_plane_ca_file");
  expect_complaint(weir_over("https://localhost" + port, {"camera", "list"}), 1, "not for localhost");
  expect_complaint(weir_over("http://127.0.0.1" + port, {"camera", "list"}), 1, "https://");
}

TEST_F(PlaneOverTls, PythonsOwnLibrary_AsksIt_AndFollowsItsEvents) {
  start_plane();
  EXPECT_EQ(python(folder_, *plane_,
                   "with ask('/v1/tenants', b'{\"tenant_id\": \"t-01\"}') as answer: print(answer.status)\n"
                   "with ask('/v1/tenants') as answer: print(json.load(answer)['items'][0]['tenant_id'])\n"
                   "with ask('/v1/sites', b'{\"tenant_id\": \"t-01\", \"site_id\": \"s-01\"}') as answer: pass\n"
                   "camera = b'{\"camera_uuid\": \"c-01\", \"tenant_id\": \"t-01\", \"site_id\": \"s-01\", "
                   "\"rtsp_url\": \"rtsp://10.0.0.7/1\"}'\n"
                   "with ask('/v1/cameras', camera) as answer: pass\n"
                   "with ask('/v1/events?after=0&pattern=camera.%23') as stream:\n"
                   "    print(next(line for line in stream if line.startswith(b'data:') and b'c-01' in line) != b'')"),
            "201\nt-01\nTrue");
}

TEST_F(PlaneOverTls, ACertificateThatIsExchanged_IsShown_AndOneThatDoesNotFitIsNot) {
  start_plane();
  std::string first = shown();
  ASSERT_FALSE(first.empty());
  papers_.write_foreign_key();
  ::kill(plane_->pid(), SIGHUP);
  auto refusals = [&] {
    std::string log = plane_->log();
    int count = 0;
    for (size_t at = 0; (at = log.find("tls.certificate_refused", at)) != std::string::npos; ++at) ++count;
    return count;
  };
  EXPECT_TRUE(eventually(10s, [&] { return refusals() == 1; })) << plane_->log();
  EXPECT_TRUE(has(plane_->log(), "does not belong to the first certificate")) << plane_->log();
  EXPECT_EQ(shown(), first);

  // Nobody tells it of these: it looks every ten seconds, and had no more to say meanwhile.
  std::int64_t ends = papers_.renew(7200);
  EXPECT_TRUE(eventually(20s, [&] { return shown() != first; })) << plane_->log();
  EXPECT_EQ(refusals(), 1) << plane_->log();
  std::string metrics = plane_->get("/metrics").text;
  size_t at = metrics.find("\nweir_tls_certificate_ends_timestamp_seconds ");
  ASSERT_NE(at, std::string::npos) << metrics;
  EXPECT_EQ(std::stod(metrics.substr(metrics.find(' ', at))), static_cast<double>(ends));

  std::string second = shown();
  std::filesystem::remove(papers_.file("server.pem"));
  ::kill(plane_->pid(), SIGHUP);
  EXPECT_TRUE(eventually(10s, [&] { return refusals() == 2; })) << plane_->log();
  EXPECT_EQ(shown(), second);
  EXPECT_EQ(plane_->terminate(), 0) << plane_->log();
}

TEST_F(PlaneOverTls, SettingsThatDoNotFit_AreRefusedAtTheStart) {
  Words words{"control-plane", "--state-dir", folder_.path() + "/state", "--listen", "127.0.0.1:0"};
  auto with = [&](Words more) {
    more.insert(more.begin(), words.begin(), words.end());
    return weir(folder_, more);
  };
  Words whole = papers_.of_plane();
  expect_complaint(with({whole[0], whole[1]}), 2, "tls_certificate_file must be given together with tls_key_file");
  expect_complaint(with({whole[2], whole[3]}), 2, "tls_key_file must be given together with tls_certificate_file");
  expect_complaint(with({whole[0], "absent.pem", whole[2], whole[3]}), 1, "absent.pem cannot be read");
  papers_.write_foreign_key();
  expect_complaint(with(whole), 1, "does not belong to the first certificate");
}

TEST_F(PlaneOverTls, ARunnerWithItsWorker_Publishes_OverAnExchangeOfTheCertificate_AndLeavesAWill) {
  if (!fleet_needs().empty()) GTEST_SKIP() << fleet_needs();
  FleetOptions options;
  options.plane_flags = papers_.of_plane();
  for (const std::string& flag : papers_.of_clients()) options.runner_flags.push_back(flag);
  RunnerFleet fleet(std::move(options));
  fleet.add("r1");
  ASSERT_TRUE(fleet.all_stream(60s)) << fleet.report();
  auto seen = [&] {
    Reply feed = fleet.plane().get("/v1/events?follow=false&limit=1000&after=0&pattern=stream.status.%23");
    return feed.status == 200 && has(feed.text, "STREAMING");
  };
  EXPECT_TRUE(eventually(20s, seen)) << fleet.report();

  auto versions = fleet.versions();
  std::string first = python(folder_, fleet.plane(), "print(serial())");
  papers_.renew();
  ::kill(fleet.plane().pid(), SIGHUP);
  EXPECT_TRUE(eventually(10s, [&] { return python(folder_, fleet.plane(), "print(serial())") != first; }));
  // A second runner makes its connections under the new certificate; it takes over by the will, before the TTL is over.
  fleet.add("r2");
  EXPECT_TRUE(eventually(20s, [&] { return fleet.runner("r2").has_worker_up(); })) << fleet.report();
  EXPECT_EQ(fleet.versions(), versions) << "nothing changed hands" << fleet.report();
  signal_all({fleet.runner("r1").manager()}, SIGKILL);
  EXPECT_TRUE(eventually(20s, [&] {
    Reply feed = fleet.plane().get("/v1/events?follow=false&limit=1000&after=0&pattern=lease.released.%23");
    return has(feed.text, "cam-1") && has(feed.text, "cam-2");
  })) << fleet.report();
  EXPECT_TRUE(fleet.all_stream(60s, {"r1", "r2"})) << fleet.report();
}

// The link by which the worker fetches the model leads to the control plane, too.
class ClusterOverTls : public ClusterHouse {
 protected:
  void SetUp() override {
    std::string why = MediaMtx::missing();
    for (const char* needed : {"footage/vtest.avi", "models/efficientdet-lite0.tflite", "lib/libtensorflowlite_c.so"})
      if (why.empty() && part(needed).empty()) why = std::string(needed) + " could not be fetched";
    if (!why.empty()) GTEST_SKIP() << why;
    hub_ = std::make_unique<MediaMtx>(folder_);
    publisher_ = hub_->publish("people", {.clip = "people"});
    ASSERT_TRUE(hub_->ready("people"));
    furnish(hub_->base() + "/people", text_in_file(part("models/efficientdet-lite0.tflite")), papers_.of_plane());
    ports_.push_back(free_port());
    Words words{WEIR_WORKER, "detector", "--listen", fmt::format("127.0.0.1:{}", ports_[0]), "--state-dir",
                folder_.path() + "/detector", "--library-dir",
                std::filesystem::path(part("lib/libtensorflowlite_c.so")).parent_path(), "--control-plane-ca-file",
                papers_.ca()};
    detector_ = std::make_unique<Program>(folder_.path() + "/detector.log", words);
    ASSERT_TRUE(eventually(20s, [&] { return accepts(ports_[0]); })) << detector_->log();
  }
  // The command that reads the feed finds the authority in the environment; those that are tested have it by a flag.
  std::vector<std::string> heard_over_tls(const std::string& camera) {
    ::setenv("CONTROL_PLANE_CA_FILE", papers_.ca().c_str(), 1);
    auto by = heard(camera);
    ::unsetenv("CONTROL_PLANE_CA_FILE");
    return by;
  }
  Papers papers_;
  std::unique_ptr<Program> detector_;
};

TEST_F(ClusterOverTls, AProcessOfACluster_AndWeirsOwnWorker_DetectForADisplay) {
  display("d1", "cam-a");
  start("one", papers_.of_clients());
  EXPECT_TRUE(eventually(60s, [&] { return !heard_over_tls("cam-a").empty(); })) << report() << detector_->log();
  EXPECT_TRUE(is_master("one"));
}

TEST_F(PlaneOverTls, AnOrchestratorWithItsStreamWorker_PublishesWhatItSees) {
  if (std::string why = stream_house_needs(); !why.empty()) GTEST_SKIP() << why;
  std::filesystem::path model = part("models/efficientdet-lite0.tflite"), library = part("lib/libtensorflowlite_c.so");
  if (part("footage/vtest.avi").empty() || model.empty() || library.empty())
    GTEST_SKIP() << "the footage, the model or its library could not be fetched";
  ::setenv("MODELS_DIR", model.parent_path().c_str(), 1);  // the worker inherits it from the orchestrator
  ::setenv("LIBRARY_DIR", library.parent_path().c_str(), 1);
  start_plane();
  std::string secret = folder_.path() + "/auth.secret";
  Words flags{"--control-plane-url", plane_->url(), "--auth-secret-file", secret, "--orchestrator-id", "o1",
              "--orchestrator-tenant", "t1", "--orchestrator-site", "s1"};
  for (const std::string& flag : papers_.of_clients()) flags.push_back(flag);
  StreamHouse house({.streams = "demo: {max_fps: 5}\n", .flags = std::move(flags), .secret = secret});
  ::unsetenv("MODELS_DIR");
  ::unsetenv("LIBRARY_DIR");
  auto publisher = house.hub().publish("live/demo/in", {.clip = "people"});
  EXPECT_TRUE(eventually(60s, [&] {
    Reply feed = plane_->get("/v1/events?follow=false&limit=50&after=0&pattern=detections.t1.s1.demo");
    return feed.status == 200 && has(feed.text, "\"person\"");
  })) << house.log() << house.child_logs() << plane_->log();
  Ran listed = weir_over(plane_->url(), {"stream", "list", "--json"});
  EXPECT_TRUE(has(listed.out, "\"demo\"")) << listed.err << listed.out;
}

}  // namespace
}  // namespace weir::test
