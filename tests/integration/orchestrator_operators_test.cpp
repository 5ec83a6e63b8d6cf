// Published streams as operators meet them: commands and wishes with a control plane and without one, a worker of their
// own, a token for hooks, and Ctrl-C.
#include "cli_shell.hpp"
#include "forward.hpp"
#include "stream_rig.hpp"

#include <csignal>

namespace weir::test {
namespace {

class OrchestratorOperators : public StreamRig {
 protected:
  // A command against whoever serves the streams.
  Ran command(const std::string& url, const std::string& secret, const std::string& words) {
    std::vector<std::string> all{"stream"};
    std::istringstream text(words);
    for (std::string word; text >> word;) all.push_back(word);
    for (const char* more : {"--url", url.c_str(), "--auth-secret-file", secret.c_str()}) all.emplace_back(more);
    Ran ran = weir(house_->folder(), all);
    EXPECT_EQ(ran.code, 0) << words << ": " << ran.err;
    for (const std::string& said : {ran.out, ran.err}) EXPECT_EQ(said.find("canarykey"), std::string::npos) << said;
    return ran;
  }
  // Puts the destination's URL into a file, as a person does who shows the key to nobody.
  std::string destination_file() const {
    write_text(house_->folder().path() + "/to.url", house_->hub().rtmp_base() + "/dest/canarykey\n");
    return house_->folder().path() + "/to.url";
  }
  static bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }
};

TEST_F(OrchestratorOperators, WithoutAControlPlane_TheCommandsTalkToTheOrchestrator_AndCtrlCEndsEverything) {
  open({.flags = {"--disconnect-grace-s", "1"}});
  auto stream = [&](const std::string& words) {
    return command(house_->url(), house_->state_dir() + "/auth.secret", words);
  };
  EXPECT_TRUE(has(stream("list").out, "no streams yet"));
  stream("set demo mode=passthrough forward=true --destination-file " + destination_file());
  EXPECT_TRUE(has(stream("list").out, "idle"));
  auto publisher = house_->hub().publish(in("demo"));
  ASSERT_TRUE(runs("demo")) << report();
  ASSERT_TRUE(house_->hub().ready("dest/canarykey")) << report();
  EXPECT_TRUE(has(stream("list").out, "running"));
  auto shown = stream("show demo --json").parsed();
  EXPECT_EQ(shown.at("worker").at("mode"), "passthrough");
  EXPECT_TRUE(shown.at("wishes").at("destination").as_string().ends_with("/dest/***")) << shown;
  stream("set demo forward=false");
  EXPECT_TRUE(house_->hub().gone("dest/canarykey")) << report();
  stream("forward demo on");
  EXPECT_TRUE(house_->hub().ready("dest/canarykey")) << report();
  EXPECT_EQ(stream("stop --all").out, "ordered the stop of 1 stream\n");
  EXPECT_TRUE(eventually(20s, [&] { return house_->children().empty(); })) << report();
  EXPECT_TRUE(eventually(5s, [&] { return has(stream("list").out, "stopped"); })) << stream("list").out;
  stream("restart demo");
  ASSERT_TRUE(runs("demo")) << report();

  EXPECT_EQ(house_->stop_orchestrator(SIGTERM), 0);
  std::string line = "exec";
  for (const std::string& word : house_->orchestrator_words()) line += " " + shell_word(word);
  Program terminal(house_->folder().path() + "/terminal.log", {"script", "-qec", line, "/dev/null"});
  ASSERT_TRUE(eventually(20s, [&] { return house_->state("demo") == "running"; })) << terminal.log();
  std::vector<int> orchestrators = processes_with(house_->state_dir());
  ASSERT_EQ(orchestrators.size(), 1u);
  ::kill(orchestrators[0], SIGINT);
  EXPECT_EQ(terminal.wait(30s), 0) << terminal.log();
  EXPECT_TRUE(eventually(10s, [&] { return house_->children().empty(); })) << report();
  EXPECT_TRUE(house_->hub().gone(out("demo")));
  house_->start();
  publisher.reset();
  ASSERT_TRUE(eventually(20s, [&] { return house_->state("demo") == "idle"; })) << report();
  EXPECT_EQ(stream("remove demo").out, "removed stream demo and its wishes\n");
}

TEST_F(OrchestratorOperators, WithAControlPlane_ItAnswersAndOrdersAsTheOrchestratorDoes_AndTellsOfEachState) {
  TempDir plane_folder;
  WeirProcess plane(plane_folder.path(), "sqlite:" + plane_folder.path() + "/weir.db");
  std::string secret = plane_folder.path() + "/auth.secret";
  open({.flags = {"--control-plane-url", plane.url(), "--auth-secret-file", secret, "--orchestrator-id", "o1",
                  "--disconnect-grace-s", "1"},
        .secret = secret});
  auto stream = [&](const std::string& words) { return command(plane.url(), secret, words); };
  stream("set demo mode=passthrough forward=false --destination-file " + destination_file());
  auto publisher = house_->hub().publish(in("demo"));
  ASSERT_TRUE(runs("demo")) << report();
  auto field = [&](const std::string& which) { return plane.get("/v1/streams/demo").field(which); };
  EXPECT_TRUE(eventually(10s, [&] { return field("state") == "running"; })) << plane.log();
  auto alike = [&] {
    boost::json::object here = house_->stream("demo");
    Reply there = plane.get("/v1/streams/demo");
    for (const char* name : {"stream_id", "tenant_id", "site_id", "state", "run_id", "source", "holder", "lease", "degraded",
                             "stopped_by_operator", "settings_problem", "last_error"})
      if (here.at(name) != there.body.at(name)) return false;
    for (const char* name : {"state", "instance_id", "mode", "restarts"})
      if (here.at("worker").at(name) != there.body.at("worker").at(name)) return false;
    return here.at("forward").at("destination") == there.body.at("forward").at("destination");
  };
  EXPECT_TRUE(eventually(10s, alike)) << plane.get("/v1/streams/demo").text << house_->get("/v1/streams/demo").text;
  stream("set demo forward=true");
  ASSERT_TRUE(house_->hub().ready("dest/canarykey")) << report();
  stream("stop demo");
  EXPECT_TRUE(eventually(20s, [&] { return house_->children().empty(); })) << report();
  EXPECT_TRUE(eventually(10s, [&] { return field("state") == "stopped"; })) << plane.log();
  EXPECT_EQ(field("holder"), "null") << "its lease is released";
  stream("restart demo");
  ASSERT_TRUE(runs("demo")) << report();
  publisher.reset();
  EXPECT_TRUE(eventually(20s, [&] { return field("state") == "idle"; })) << plane.get("/v1/streams/demo").text;
  std::string states;
  Reply feed = plane.get("/v1/events?follow=false&limit=200&pattern=publication.%23");
  for (const auto& item : feed.body.at("items").as_array()) {
    std::string key(item.at("routing_key").as_string());
    if (!key.starts_with("publication.ordered.")) states += key.substr(12, key.find('.', 12) - 11);
  }
  EXPECT_EQ(states, "starting.running.stopping.stopped.starting.running.stopping.stopped.");
  EXPECT_EQ(house_->post("/v1/streams/demo/stop", nullptr).status, 200) << "orders are taken here, too";
}

TEST_F(OrchestratorOperators, ATokenThatWeirHookCannotSend_IsRefusedAtTheStart) {
  TempDir folder;
  for (const char* wrong : {"a token with spaces in it", "short"}) {
    write_text(folder.path() + "/hook.token", wrong);
    Ran ran = weir(folder, {"orchestrator", "--listen", "127.0.0.1:0", "--hook-token-file", "hook.token"});
    EXPECT_EQ(ran.code, 2) << ran.err;
    EXPECT_TRUE(has(ran.err, "hook.token: a hook token is one line")) << ran.err;
    EXPECT_FALSE(has(ran.err, wrong)) << ran.err;
  }
}

// One program serves two streams: of one it makes the output, in the other it always fails.
constexpr const char* kOwnWorker = R"sh(#!/bin/sh
[ "$1" = bad ] && exit 7
[ "$WEIR_PREF_lang" = es ] || exit 8
exec ffmpeg -nostdin -loglevel error -rtsp_transport tcp -i "$2" -c copy -f rtsp -rtsp_transport tcp "$3"
)sh";

TEST_F(OrchestratorOperators, AWorkerOfTheirOwn_IsKept_AndOneThatAlwaysFails_DegradesItsStream_UnderTheHooksToken) {
  TempDir programs;
  std::string script = programs.path() + "/own-worker", token = programs.path() + "/hook.token";
  write_text(script, kOwnWorker);
  write_text(token, "a-token-of-hooks-in-this-test\n");
  std::string command = fmt::format(R"(["/bin/sh","{}","{{stream_id}}","{{input_url}}","{{output_url}}"])", script);
  open({.flags = {"--restart-max-per-10-min", "2", "--disconnect-grace-s", "1", "--hook-token-file", token,
                  "--worker-command", command},
        .hook_token_file = token});
  auto good = house_->hub().publish(in("good"), {.query = "lang=es"});
  auto bad = house_->hub().publish(in("bad"));
  ASSERT_TRUE(runs("good")) << report();
  EXPECT_EQ(house_->log().find("\"missed\":true"), std::string::npos) << "the hooks carried the token" << report();
  EXPECT_EQ(house_->post("/v1/mediamtx/events/not-ready", {{"path", "live/good/in"}}).status, 401);
  EXPECT_GE(frames_at(house_->hub().base() + "/" + out("good"), 2)["h264"], 25) << report();

  auto degraded = [&] {
    boost::json::object view = house_->stream("bad");
    return view.empty() || !view.at("degraded").is_string() ? "" : std::string(view.at("degraded").as_string());
  };
  ASSERT_TRUE(eventually(40s, [&] { return !degraded().empty(); })) << report();
  EXPECT_TRUE(has(degraded(), "7")) << degraded();
  EXPECT_EQ(house_->stream("bad").at("holder"), house_->stream("good").at("holder")) << "it keeps its lease";
  EXPECT_EQ(child("bad", "worker", "restarts"), "2");
  EXPECT_TRUE(has(house_->get("/metrics").text, "weir_orchestrator_stream_degraded{stream_id=\"bad\"} 1"));
  std::string run = house_->run("bad");
  bad.reset();
  ASSERT_TRUE(eventually(20s, [&] { return house_->state("bad") == "idle"; })) << report();
  bad = house_->hub().publish(in("bad"));
  EXPECT_TRUE(eventually(20s, [&] { return house_->run("bad") != run && !house_->run("bad").empty(); })) << report();
  EXPECT_EQ(house_->state("good"), "running");
  EXPECT_EQ(child("good", "worker", "restarts"), "0");
}

}  // namespace
}  // namespace weir::test
