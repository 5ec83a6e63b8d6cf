// `weir` as a person at a shell meets it: exit codes, help, tables, JSON, and sentences where something is wrong.
#include "api_talk.hpp"
#include "cli_shell.hpp"
#include "shard.hpp"
#include "stall.hpp"

#include "weir/base/clock.hpp"
#include "weir/net/server.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <sys/wait.h>
#include <csignal>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

namespace weir::test {
namespace {

const std::vector<std::string> kCommands = {
    "up",          "control-plane", "runner",        "events",         "token",         "tenant add",     "tenant list",   "tenant remove",
    "site add",    "site list",     "site show",     "site budget",    "site remove",   "camera add",
    "camera list", "camera show",   "camera enable", "camera disable", "camera remove", "camera import", "camera test",
    "camera set",  "camera export", "camera snapshot", "zone add",     "zone list",     "zone show",      "zone remove",
    "node list",   "node show",     "node cordon",   "node uncordon",  "node drain",    "node capacity",  "node remove",
    "lease list",
    "lease show",  "lease revoke", "lease events",  "model labels", "model add", "model list", "model remove",
    "model upload", "model download",
    "display add", "display list",  "display remove", "playlist add",  "playlist list", "playlist remove",
    "subscription add", "subscription list", "subscription remove",    "key add",       "key list",       "key revoke",
    "status",      "size",          "store backup",  "store restore",  "store move",    "store migrate", "settings",      "version"};

TEST(Cli, EveryCommand_HasHelpWithAnExample) {
  TempDir folder;
  for (const std::string& command : kCommands) {
    std::vector<std::string> words = words_of(command);
    words.push_back("--help");
    Ran ran = weir(folder, words);
    EXPECT_EQ(ran.code, 0) << command;
    EXPECT_EQ(ran.err, "") << command;
    size_t example = ran.out.find("Example:\n");
    ASSERT_NE(example, std::string::npos) << command;
    EXPECT_TRUE(has(ran.out.substr(example), "  weir " + command)) << command << ran.out.substr(example);
  }
  // No command is missing above: the overview names the groups, and each group its commands.
  std::string overview = weir(folder, {"--help"}).out;
  size_t listed = 0;
  for (std::string group : {"tenant", "site", "camera", "zone", "model", "display", "playlist", "subscription", "node",
                            "lease", "key", "store"}) {
    std::istringstream lines(weir(folder, {group, "--help"}).out);
    bool commands = false;
    for (std::string line; std::getline(lines, line);) {
      if (line.empty()) commands = false;
      if (commands) {
        ++listed;
        EXPECT_EQ(std::ranges::count(kCommands, group + " " + words_of(line).at(0)), 1) << line;
      }
      if (line == "Subcommands:") commands = true;
    }
    EXPECT_TRUE(has(overview, "  " + group + " ")) << group;
  }
  EXPECT_EQ(listed, 56u);
}

TEST(Cli, WrongUsage_IsExit2_WithOneSentence) {
  TempDir folder;
  expect_complaint(weir(folder, {}), 2, "see weir --help");
  expect_complaint(weir(folder, {"nonsense"}), 2, "there is no command");
  expect_complaint(weir(folder, {"camera", "nonsense"}), 2, "see weir camera --help");
  expect_complaint(weir(folder, {"camera", "update", "--help"}), 2, "the nearest: weir camera set");
  expect_complaint(weir(folder, {"camera", "set", "cam-1", "max_fsp=4"}), 2, "the nearest: max_fps");
  expect_complaint(weir(folder, {"camera", "set", "cam-1"}), 2, "KEY=VALUE");
  expect_complaint(weir(folder, {"zone", "add", "cam-1", "--polygon", "1,2 3"}), 2, "\"3\" is not a corner");
  expect_complaint(weir(folder, {"node", "capacity", "r", "many"}), 2, "or auto");
  expect_complaint(weir(folder, {"camera", "show"}), 2, "camera show --help");
  expect_complaint(weir(folder, {"camera", "list", "--colour"}), 2, "--colour");
  expect_complaint(weir(folder, {"camera", "add", "--tenant", "t", "--site", "s", "rtsp://c.example/1"}), 2, "--id");
  expect_complaint(weir(folder, {"token", "--role", "king", "--sub", "me"}), 2, "admin, runner, worker, viewer");
  expect_complaint(weir(folder, {"key", "add", "--role", "king", "--sub", "me"}), 2, "admin, runner, worker, viewer");
  expect_complaint(weir(folder, {"token", "--sub", "me"}), 2, "--role");
  expect_complaint(weir(folder, {"node", "drain", "r", "--mode", "gently"}), 2, "soft, hard, none");
  expect_complaint(weir(folder, {"up", "--for", "soon"}), 2, "--for");
  expect_complaint(weir(folder, {"up", "--lease-ttl-s", "many"}), 2, "lease");
  expect_complaint(weir(folder, {"control-plane", "--http-connections-max", "0"}), 2, "http");
  expect_complaint(weir(folder, {"control-plane", "--db", "mysql://x"}), 2, "must be sqlite:PATH or postgres://");
}

TEST(Cli, Failure_IsExit1_WithOneSentence) {
  TempDir folder;
  expect_complaint(weir(folder, {"status"}), 1, "no control plane is running in .weir");
  expect_complaint(weir(folder, {"camera", "list", "--state-dir", "nowhere"}), 1, "start it with `weir up`");
  expect_complaint(weir(folder, {"token", "--role", "admin", "--sub", "me"}), 1, "there is no secret");
  expect_complaint(weir(folder, {"control-plane", "--config", "none.yaml"}), 1, "none.yaml");
  std::ofstream(folder.path() + "/token") << "x\n";
  std::string url = fmt::format("http://127.0.0.1:{}", free_port());
  expect_complaint(weir(folder, {"status", "--url", url, "--token-file", "token"}), 1,
                   "cannot reach the control plane at " + url);
  expect_complaint(weir(folder, {"tenant", "list", "--url", url}), 1, "no token for");
  expect_complaint(weir(folder, {"tenant", "list"}, "WEIR_TOKEN=x WEIR_URL=" + url), 1, "cannot reach");
  std::ofstream(folder.path() + "/three.csv") << "camera_uuid,tenant_id,site_id,rtsp_url\n"
                                                 "a,t,s,rtsp://c.example/1\nb,t,s,rtsp://c.example/2\n"
                                                 "c,t,s,rtsp://c.example/3\n";
  auto import = [&](const char* how) {
    return weir(folder, {"camera", "import", "three.csv", how, "--url", url, "--token-file", "token"});
  };
  EXPECT_EQ(import("--create").out, "0 added, 0 updated, 1 failed, 2 not tried\n");
  EXPECT_FALSE(has(import("--create").err, "weir up")) << "it is somewhere else";
  EXPECT_EQ(import("--json").parsed().at("not_tried"), json::value(2));
}

TEST(Cli, StatusOfSomethingElse_SaysWhatAnswered) {
  TempDir folder;
  boost::asio::io_context io;
  RealClock clock;
  net::Router nothing;
  net::HttpServer other(io, clock, nothing, net::ServerLimits{});
  ASSERT_TRUE(other.listen("127.0.0.1:0"));
  std::thread serving([&] { io.run_for(20s); });
  std::ofstream(folder.path() + "/token") << "x\n";
  std::string url = "http://" + other.address();
  expect_complaint(weir(folder, {"status", "--url", url, "--token-file", "token"}), 1,
                   url + " answered 404: is this a Weir control plane?");
  io.stop();
  serving.join();
}

TEST(Cli, OutputThatIsNotTaken_IsAFailure) {
  TempDir folder;
  std::string err = folder.path() + "/err";
  for (std::string command : {"version", "--help"}) {
    int status = std::system(fmt::format("'{}' {} >/dev/full 2>{}", WEIR_BINARY, command, err).c_str());
    EXPECT_EQ(WEXITSTATUS(status), 1) << command;
    EXPECT_EQ(file_text(err), "weir: cannot write to standard output: No space left on device\n");
  }
}

TEST(Cli, EventsInterruptedWhileNobodyAnswers_EndAtOnce) {
  using boost::asio::ip::tcp;
  TempDir folder;
  boost::asio::io_context io;
  tcp::acceptor silent(io, {boost::asio::ip::address_v4::loopback(), 0});
  silent.non_blocking(true);
  std::string url = fmt::format("http://127.0.0.1:{}", silent.local_endpoint().port());
  std::string token = folder.path() + "/token";
  std::ofstream(token) << "x\n";
  int events = ::fork();
  if (events == 0) {
    ::execl(WEIR_BINARY, WEIR_BINARY, "events", "--url", url.c_str(), "--token-file", token.c_str(), nullptr);
    ::_exit(127);
  }
  tcp::socket asked(io);
  EXPECT_TRUE(eventually(10s, [&] {
    boost::system::error_code nobody;
    if (!asked.is_open()) silent.accept(asked, nobody);
    return !nobody && asked.available() > 0;
  }));
  ::kill(events, SIGINT);
  int status = -1;
  EXPECT_TRUE(eventually(5s, [&] { return ::waitpid(events, &status, WNOHANG) == events; }));
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(Cli, Up_ForASecond_EndsWithExit0) {
  TempDir folder;
  Ran ran = weir(folder, {"up", "--state-dir", "state", "--listen", "127.0.0.1:0", "--for", "1"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(ran.out.starts_with("listening on http://127.0.0.1:")) << ran.out;
  EXPECT_TRUE(has(ran.out, "token --role admin"));
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/state/endpoint"));
  EXPECT_TRUE(std::filesystem::exists(folder.path() + "/state/weir.db"));
}

TEST(Cli, DemoWithoutFootage_SaysWhatIsMissing_AndWhatToDo) {
  TempDir folder;
  Ran ran = weir(folder, {"up", "--state-dir", "state", "--listen", "127.0.0.1:0", "--for", "1", "--demo", "1",
                          "--footage", "/nowhere/a.avi"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(has(ran.out, "no simulated cameras: there is no video at /nowhere/a.avi; name one with --footage FILE"))
      << ran.out;
}

TEST(Cli, DemoCameras_AreAnnouncedLikeAnyOther) {
  std::string footage = part("footage/vtest.avi");
  if (footage.empty()) GTEST_SKIP() << "footage could not be fetched";
  TempDir folder;
  Up up(folder, {"--demo", "1", "--footage", footage});
  auto events = [&] { return weir(folder, {"events", "camera.#", "--state-dir", up.state()}).out; };
  EXPECT_TRUE(eventually(120s, [&] { return has(events(), "camera.created.demo.demo.demo-1"); })) << events();
  EXPECT_EQ(up.interrupt(), 0);
}

TEST(Cli, Helpers_PointToTheirOwnHelp) {
  TempDir folder;
  Ran ran = weir(folder, {"worker"});
  EXPECT_TRUE(has(ran.err, "`weir worker` needs one of: shard, probe, labels, measure, stream, detector; see weir worker --help")) << ran.err;
}

// ---- with a running control plane ----

TEST_F(CliUp, EmptyStates_SayWhatToDoNext) {
  EXPECT_TRUE(has(done("tenant list"), "no tenants yet; add one with: weir tenant add"));
  EXPECT_TRUE(has(done("site list"), "no sites yet"));
  EXPECT_TRUE(has(done("camera list"), "no cameras yet"));
  EXPECT_TRUE(eventually(10s, [&] { return has(done("node list"), "local"); })) << "the runner of `weir up` itself";
  EXPECT_TRUE(has(done("lease list"), "no lease is held"));
  for (std::string list : {"tenant list", "site list", "camera list", "lease list"})
    EXPECT_EQ(as_json(list), (json::value{{"items", json::array{}}})) << list;
  std::string status = done("status");
  EXPECT_TRUE(status.starts_with("nothing to do: no camera is enabled\n")) << status;
  EXPECT_TRUE(has(status, "store          reachable")) << status;
  EXPECT_TRUE(has(status, "cameras        0 enabled of 0")) << status;
  EXPECT_EQ(as_json("status").at("store").as_string(), "reachable");
  EXPECT_TRUE(weir(folder, {"version"}).out.starts_with("weir "));
  for (std::string list : {"events nothing.#", "lease events"}) {
    Ran ran = run(list);
    EXPECT_EQ(ran.out, "");
    EXPECT_TRUE(has(ran.err, "no event that is kept matches")) << ran.err;
    EXPECT_EQ(run(list, {"--json"}).err, "");
  }
}

TEST_F(CliUp, PlacesAndCameras_AreManaged) {
  EXPECT_EQ(done("tenant add t-01", {"--name", "First tenant"}), "added tenant t-01\n");
  expect_complaint(run("tenant add t-01"), 1, "taken");
  EXPECT_TRUE(has(done("tenant list"), "First tenant"));
  expect_complaint(run("site add site-A --tenant nobody"), 1, "there is no tenant nobody: add it with: weir tenant add nobody");
  EXPECT_EQ(done("site add site-A --tenant t-01 --capacity 4 --refill-rate 30"), "added site site-A\n");
  EXPECT_TRUE(has(done("site show site-A"), "t-01"));
  EXPECT_EQ(as_json("site budget site-A").at("capacity").to_number<int>(), 4);
  EXPECT_EQ(done("site budget site-A --capacity 8").empty(), false);
  EXPECT_EQ(as_json("site budget site-A").at("refill_rate").to_number<int>(), 30);

  std::ofstream(folder.path() + "/cam-1.url") << "rtsp://user:S3cretC4n4ry@camera.example/1\n";
  EXPECT_EQ(done("camera add --tenant t-01 --site site-A --id cam-1 --url-file cam-1.url"), "added camera cam-1\n");
  Ran in_arguments = run("camera add --tenant t-01 --site site-A --id cam/2 rtsp://u:S3cretC4n4ry@camera.example/2");
  EXPECT_EQ(in_arguments.code, 0);
  EXPECT_TRUE(has(in_arguments.err, "--url-file keeps a password private")) << in_arguments.err;
  for (std::string look : {"camera list", "camera show cam-1", "camera list --json", "camera show cam/2 --json"}) {
    std::string shown = done(look);
    EXPECT_TRUE(has(shown, "***@camera.example")) << shown;
    EXPECT_FALSE(has(shown, "S3cretC4n4ry")) << shown;
  }
  expect_complaint(run("camera add --tenant t-01 --site site-A --id c rtsp://h:x/"), 1, "rtsp_url");
  EXPECT_TRUE(has(done("camera list --tenant nope"), "no camera matches; all there are: weir camera list"));
  EXPECT_TRUE(has(done("site list --tenant nope"), "no site of tenant nope"));
  EXPECT_EQ(done("camera disable cam-1"), "disabled camera cam-1\n");
  EXPECT_EQ(as_json("camera list --enabled").at("items").as_array().size(), 1u);
  EXPECT_EQ(as_json("camera show cam-1").at("enabled"), json::value(false));
  EXPECT_EQ(done("camera enable cam-1"), "enabled camera cam-1\n");
  expect_complaint(run("camera show cam-9"), 1, "camera");
  expect_complaint(run("site remove site-A"), 1, "");

  std::ofstream(folder.path() + "/more.csv") << "camera_uuid,tenant_id,site_id,rtsp_url,name\n"
                                                "cam-3,t-02,site-B,rtsp://camera.example/3,Gate\n"
                                                "cam-4,t-02,site-B,ftp://camera.example/4,Bad\n";
  Ran import = run("camera import more.csv --create");
  EXPECT_EQ(import.code, 1);
  EXPECT_TRUE(has(import.out, "1 added, 0 updated, 1 failed")) << import.out;
  EXPECT_TRUE(has(import.err, "more.csv:3")) << import.err;
  // An update changes the fields that the file names; others that were set since stay.
  done("camera disable cam-3");
  std::ofstream(folder.path() + "/more.csv") << "camera_uuid,tenant_id,site_id,rtsp_url\n"
                                                "cam-3,t-02,site-B,rtsp://camera.example/3b\n";
  EXPECT_TRUE(has(done("camera import more.csv --update"), "0 added, 1 updated, 0 failed\n"));
  EXPECT_EQ(as_json("camera show cam-3").at("rtsp_url").as_string(), "rtsp://camera.example/3b");
  EXPECT_EQ(as_json("camera show cam-3").at("name").as_string(), "Gate");
  EXPECT_EQ(as_json("camera show cam-3").at("enabled"), json::value(false));

  for (std::string camera : {"cam-1", "cam/2", "cam-3"}) EXPECT_EQ(run("camera remove", {camera}).code, 0) << camera;
  EXPECT_EQ(done("site remove site-A"), "removed site site-A\n");
  EXPECT_EQ(done("tenant remove t-01"), "removed tenant t-01\n");
  EXPECT_EQ(as_json("tenant list").at("items").as_array().size(), 1u);
}

TEST_F(CliUp, NodesAndLeases_AreSeenAndSteered) {
  // The runner of `weir up` would take the camera first.
  ASSERT_TRUE(eventually(10s, [&] { return run("node cordon local").code == 0; }));
  done("tenant add t-01");
  done("site add site-A --tenant t-01");
  done("camera add --tenant t-01 --site site-A --id cam-1 rtsp://camera.example/1");
  // A runner, with a token as a person would make it.
  std::string token = done("token --role runner --sub runner-1");
  ASSERT_TRUE(token.ends_with("\n"));
  token.pop_back();
  EXPECT_EQ(std::count(token.begin(), token.end(), '.'), 2) << token;
  boost::asio::io_context io;
  auto client = net::HttpClient::create(io, up.welcome().substr(13, up.welcome().find('\n') - 13));
  ASSERT_TRUE(client) << up.welcome();
  auto as_runner = [&](const std::string& target, const json::object& body) {
    return reply_of(test::run(io, client->send(request_for(net::Method::post, target, body, Secret(token))))).status;
  };
  ASSERT_EQ(as_runner("/v1/runners/register", {{"runner_id", "runner-1"}, {"host", "host-7"}, {"capacity", 5}}), 200);
  ASSERT_EQ(as_runner("/v1/leases/camera/acquire",
                      {{"runner_id", "runner-1"}, {"camera_uuid", "cam-1"}, {"ttl_seconds", 60}}),
            200);
  EXPECT_EQ(as_runner("/v1/tenants", {{"tenant_id", "x"}}), 403);

  EXPECT_TRUE(has(done("node list"), "host-7"));
  EXPECT_EQ(as_json("node show runner-1").at("leases_held").to_number<int>(), 1);
  EXPECT_EQ(done("node cordon runner-1"), "runner-1 takes no new cameras\n");
  EXPECT_EQ(as_json("node show runner-1").at("cordoned"), json::value(true));
  EXPECT_EQ(done("node uncordon runner-1"), "runner-1 takes new cameras again\n");
  Ran drained = run("node drain runner-1");
  EXPECT_EQ(drained.out, "runner-1 hands its cameras over, batch by batch; what is left: weir lease list --runner "
                         "runner-1\n");
  EXPECT_EQ(drained.err, "weir: the others have room for 0 of its 1 camera\n") << "local is cordoned";
  EXPECT_EQ(done("node uncordon runner-1"), "runner-1 still drains (soft) and takes no new cameras; end that with: "
                                            "weir node drain runner-1 --mode none\n");
  for (std::string mode : {"hard", "soft", "none"}) {
    done("node drain runner-1 --mode " + mode);
    EXPECT_EQ(as_json("node show runner-1").at("drain_mode").as_string(), mode);
  }
  expect_complaint(run("node cordon nobody"), 1, "runner");
  EXPECT_EQ(done("node capacity runner-1 3"),
            "runner-1 takes up to 3 cameras, whatever it says of itself; end that with: weir node capacity runner-1 auto\n");
  EXPECT_TRUE(has(done("node list"), "3 pinned"));
  EXPECT_EQ(as_json("node show runner-1").at("capacity_pinned"), json::value(true));
  EXPECT_EQ(done("node capacity runner-1 auto"), "runner-1 takes as many cameras as it says of itself: 5\n");
  EXPECT_EQ(as_json("node show runner-1").at("capacity_pinned"), json::value(false));
  expect_complaint(run("node remove runner-1"), 1, "runner-1 still has 1 camera: move them first with: weir node drain runner-1");

  EXPECT_TRUE(has(done("lease list"), "runner-1"));
  EXPECT_EQ(done("lease list --runner nobody"), "this runner holds no lease\n");
  EXPECT_EQ(as_json("lease list").at("items").as_array().size(), 1u);
  EXPECT_EQ(as_json("lease show cam-1").at("status").as_string(), "pending");
  std::string status = done("status");
  EXPECT_TRUE(has(status, "leases         1 held")) << status;
  EXPECT_TRUE(status.starts_with("1 of 1 camera does not stream: its runner has not said anything about it yet\n"))
      << status;
  auto says = [&](const std::string& id, const std::string& kind, json::object payload) {
    std::int64_t version = as_json("lease show cam-1").at("version").as_int64();
    payload["event_id"] = id;
    payload["camera_uuid"] = "cam-1";
    payload["lease_version"] = version;
    json::object item{{"topic", "status.topic"}, {"routing_key", kind + ".t-01.site-A.cam-1"}, {"event_id", id},
                      {"camera_uuid", "cam-1"}, {"lease_version", version}, {"payload", payload}};
    ASSERT_EQ(as_runner("/v1/events/batch", {{"items", json::array{item}}}), 200);
  };
  auto verdict_becomes = [&](std::string_view begin) {
    return eventually(10s, [&] { return (status = done("status")).starts_with(begin); });
  };
  says("e-1", "stream.error", {{"code", "TCP_REFUSED"}, {"detail", "nobody listens there"}});
  EXPECT_TRUE(verdict_becomes("1 of 1 camera does not stream: TCP_REFUSED\n")) << status;
  EXPECT_TRUE(has(status, "cam-1          runner-1  TCP_REFUSED: nobody listens there")) << status;
  says("e-2", "stream.status", {{"state", "STREAMING"}, {"fps", 5}});
  EXPECT_TRUE(verdict_becomes("the one enabled camera streams; 1 camera has just begun, and how often it is looked at is "
                              "known in a few seconds\n")) << status;
  says("e-3", "stream.status", {{"state", "STREAMING"}, {"fps", 5}, {"looked_fps", 5}, {"wanted_fps", 5}});
  EXPECT_TRUE(verdict_becomes("everything is all right: the one enabled camera streams\n")) << status;
  EXPECT_EQ(as_json("status").at("cameras_streaming").to_number<int>(), 1);

  done("node cordon runner-1");
  EXPECT_EQ(done("lease revoke cam-1"), "revoked the lease of cam-1\n");
  EXPECT_TRUE(has(done("lease show cam-1"), "revoked"));
  EXPECT_EQ(done("lease revoke cam-1"), "nobody holds cam-1: there was nothing to revoke\n");
  EXPECT_TRUE(verdict_becomes("1 of 1 camera does not stream: every live runner drains or is cordoned\n")) << status;
  json::value seen = as_json("status");
  EXPECT_EQ(seen.at("leases_held").to_number<int>(), 0);
  EXPECT_EQ(seen.at("cameras_pending").to_number<int>(), 1);
  EXPECT_EQ(seen.at("not_streaming").at(0).at("camera_uuid").as_string(), "cam-1");
  Ran removed = run("node remove runner-1");
  EXPECT_EQ(removed.out, "removed node runner-1\n") << removed.err;
  expect_complaint(run("node show runner-1"), 1, "runner");
  expect_complaint(run("camera snapshot cam-1 now.jpg"), 1, "no runner holds camera cam-1 now");
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/now.jpg"));
}

TEST(Cli, Follower_OutlivesARestartOfUp) {
  TempDir folder;
  std::string state = folder.path() + "/state", out = folder.path() + "/followed";
  auto up = std::make_unique<Up>(folder);
  int follower = ::fork();
  if (follower == 0) {
    (void)!::freopen(out.c_str(), "w", stdout);
    ::dup2(1, 2);
    ::execl(WEIR_BINARY, WEIR_BINARY, "events", "--follow", "camera.#", "--state-dir", state.c_str(), nullptr);
    ::_exit(127);
  }
  auto add = [&](const std::string& tenant) {
    EXPECT_EQ(weir(folder, {"tenant", "add", tenant, "--state-dir", state}).code, 0);
    EXPECT_EQ(weir(folder, {"site", "add", tenant, "--tenant", tenant, "--state-dir", state}).code, 0);
    Ran added = weir(folder, {"camera", "add", "--tenant", tenant, "--site", tenant, "--id", "cam-" + tenant,
                              "rtsp://camera.example/1", "--state-dir", state});
    EXPECT_EQ(added.code, 0) << added.err;
  };
  auto says = [&](const std::string& part) { return eventually(10s, [&] { return has(file_text(out), part); }); };
  // The command follows the events once it shows a new one.
  int tries = 0;
  EXPECT_TRUE(eventually(20s, [&] {
    add(fmt::format("t{}", ++tries));
    return has(file_text(out), "camera.created");
  })) << file_text(out);
  EXPECT_EQ(up->interrupt(), 0);
  EXPECT_TRUE(says("waiting for the control plane")) << file_text(out);
  up.reset();
  up = std::make_unique<Up>(folder);  // at another address
  add("again");
  EXPECT_TRUE(says("camera.created.again.again.cam-again")) << file_text(out);
  ::kill(follower, SIGINT);
  int status = -1;
  EXPECT_TRUE(eventually(10s, [&] { return ::waitpid(follower, &status, WNOHANG) == follower; }));
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(Cli, InTheFolderWhereUpWasStarted_ItIsFound_WithoutAFlagOrAVariable) {
  TempDir folder;
  Up up(folder, {}, false);
  std::string out = folder.path() + "/followed";
  int follower = ::fork();
  if (follower == 0) {
    (void)!::freopen(out.c_str(), "w", stdout);
    ::dup2(1, 2);
    enter(folder);
    ::execl(WEIR_BINARY, WEIR_BINARY, "events", "--follow", "camera.#", nullptr);
    ::_exit(127);
  }
  auto done = [&](const std::string& command) {
    Ran ran = weir(folder, words_of(command));
    EXPECT_EQ(ran.code, 0) << command << ": " << ran.err;
    return ran.out;
  };
  done("tenant add t1");
  done("site add s1 --tenant t1");
  int cameras = 0;
  EXPECT_TRUE(eventually(20s, [&] {
    done(fmt::format("camera add --tenant t1 --site s1 --id cam-{} rtsp://camera.example/1", ++cameras));
    return HasFailure() || has(file_text(out), "camera.created.t1.s1.cam-");
  })) << file_text(out);
  EXPECT_TRUE(has(done("camera list"), "cam-1"));
  EXPECT_NE(done("lease list"), "");
  EXPECT_TRUE(eventually(10s, [&] { return HasFailure() || has(done("node list"), "local"); }));
  EXPECT_TRUE(has(done("status"), fmt::format("cameras        {0} enabled of {0}", cameras)));
  ::kill(follower, SIGINT);
  int status = -1;
  EXPECT_TRUE(eventually(10s, [&] { return ::waitpid(follower, &status, WNOHANG) == follower; }));
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << file_text(out);
}

TEST_F(CliUp, EventsForAReaderWhoHasSeenEnough_End) {
  done("tenant add t-01");
  done("site add site-A --tenant t-01");
  done("camera add --tenant t-01 --site site-A --id cam-1 rtsp://camera.example/1");
  for (std::string follow : {"", "--follow"}) {
    std::string events = fmt::format("timeout 10 '{}' events camera.# {} --after 0 --state-dir {}", WEIR_BINARY, follow,
                                     up.state());
    std::string command = fmt::format("{{ {}; echo $? >{}/code; }} | head -1 >{}/read", events, folder.path(),
                                      folder.path());
    EXPECT_EQ(std::system(command.c_str()), 0);
    EXPECT_TRUE(has(file_text(folder.path() + "/read"), "camera.created"));
    EXPECT_EQ(file_text(folder.path() + "/code"), "0\n") << follow;
  }
}

TEST_F(CliUp, OfSeveralAddresses_TheOneThatAnswersIsAsked) {
  std::string url = up.welcome().substr(13, up.welcome().find('\n') - 13);
  for (std::string urls : {"http://127.0.0.1:1," + url, url + ",http://127.0.0.1:1"}) {
    auto ask = [&](std::vector<std::string> words) {
      words.insert(words.end(), {"--url", urls, "--auth-secret-file", up.state() + "/auth.secret"});
      return weir(folder, words);
    };
    EXPECT_EQ(ask({"tenant", "add", "t-01"}).err, "");
    EXPECT_TRUE(has(ask({"tenant", "list"}).out, "t-01"));
    EXPECT_EQ(ask({"tenant", "remove", "t-01"}).out, "removed tenant t-01\n");
  }
}

TEST_F(CliUp, Token_IsJsonWhereAsked) {
  json::value token = as_json("token --role viewer --sub me --tenant t-01 --ttl 90s");
  EXPECT_EQ(token.at("role").as_string(), "viewer");
  EXPECT_EQ(token.at("sub").as_string(), "me");
  EXPECT_EQ(token.at("tenant_id").as_string(), "t-01");
  EXPECT_EQ(std::ranges::count(token.at("token").as_string(), '.'), 2);
  EXPECT_TRUE(from_iso(token.at("expires_at").as_string()));
}

TEST_F(CliUp, StateFolderIsPrivate_OneUpAtATime_AndInterruptEndsIt) {
  struct stat about {};
  ASSERT_EQ(::stat(up.state().c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0700u);
  // The runner's folder comes a little after the welcome.
  ASSERT_TRUE(eventually(20s, [&] { return std::filesystem::is_directory(up.state() + "/runner"); }));
  for (const auto& entry : std::filesystem::directory_iterator(up.state())) {
    if (::stat(entry.path().c_str(), &about) != 0) continue;  // renamed since
    EXPECT_EQ(about.st_mode & 0777, S_ISDIR(about.st_mode) ? 0700u : 0600u) << entry.path();
  }
  expect_complaint(run("up --listen 127.0.0.1:0 --for 1"), 1, "already running in");
  EXPECT_EQ(run("settings", {"--json"}).parsed().at("items").is_array(), true);
  EXPECT_EQ(up.interrupt(), 0);
  EXPECT_TRUE(has(file_text(folder.path() + "/up.out"), "\nstopping: cameras are let go; Ctrl-C again ends at once\n"));
  expect_complaint(run("status"), 1, "no control plane is running");
}

}  // namespace
}  // namespace weir::test
