// Published streams by command, against a real control plane; the test is the orchestrator.
#include "api_talk.hpp"
#include "cli_shell.hpp"

namespace weir::test {
namespace {

const std::string kKey = "S3cretC4n4ry";

class StreamCommands : public testing::Test {
 protected:
  Ran run(const std::string& command, std::vector<std::string> more = {}) {
    std::vector<std::string> words = words_of(command);
    words.insert(words.end(), more.begin(), more.end());
    Ran ran = weir(folder_, words, fmt::format("WEIR_URL={} WEIR_TOKEN={}", plane_.url(), plane_.token("admin").reveal()));
    EXPECT_FALSE(has(ran.out, kKey) || has(ran.err, kKey)) << ran.out << ran.err;
    return ran;
  }
  std::string done(const std::string& command) {
    Ran ran = run(command);
    EXPECT_EQ(ran.code, 0) << command << ": " << ran.err;
    return ran.out;
  }
  // What the orchestrator does when somebody publishes the stream.
  void hold(const std::string& id, json::object view) {
    json::object ask{{"runner_id", "orch-1"}, {"boot_id", "b"},      {"stream_id", id},
                     {"ttl_seconds", 60},     {"tenant_id", "default"}, {"site_id", "default"}};
    Reply granted = own_.post("/v1/leases/stream/acquire", ask);
    ASSERT_EQ(granted.status, 200) << granted.text;
    json::object told{{"runner_id", "orch-1"}, {"boot_id", "b"}, {"version", granted.body.at("version")},
                      {"memory", json::object()}, {"view", std::move(view)}};
    ASSERT_EQ(own_.post(fmt::format("/v1/streams/{}/told", id), told).status, 200);
  }
  json::value stored_wishes(const std::string& id) { return own_.get("/v1/streams/" + id).body.at("wishes"); }

  TempDir folder_;
  WeirProcess plane_{folder_.path(), "sqlite:" + folder_.path() + "/weir.db"};
  Talk own_{plane_, plane_.token("runner", "orch-1")};
};

TEST_F(StreamCommands, Wishes_AreSetOneByOne_AndTheKeyIsNeverPrinted) {
  EXPECT_TRUE(has(done("stream list"), "no streams yet"));
  std::ofstream(folder_.path() + "/to.url") << "rtmp://live.example/app/" << kKey << "\n";
  EXPECT_TRUE(has(done("stream set concert forward=true max_fps=4 pref.lang=es --destination-file to.url"),
                  "changed the wishes for concert; they count when it is published"));
  done("stream set concert mode=passthrough max_fps=");
  EXPECT_EQ(json::to_text(stored_wishes("concert")),
            fmt::format(R"({{"forward":true,"destination":"rtmp://live.example/app/{}","mode":"passthrough",)"
                        R"("preferences":{{"lang":"es"}}}})", kKey));
  EXPECT_TRUE(has(done("stream show concert"), "rtmp://live.example/app/***"));
  EXPECT_EQ(run("stream show concert --json").parsed().at("wishes").at("forward"), true);
  EXPECT_TRUE(has(done("stream list --json"), "***"));
  Ran shown = run("stream set concert", {"destination=rtmp://other.example/app/" + kKey});
  EXPECT_EQ(shown.code, 0);
  EXPECT_TRUE(has(shown.err, "--destination-file")) << shown.err;

  expect_complaint(run("stream set concert max_fps=9000"), 1, "max_fps must be between");
  expect_complaint(run("stream set concert forwards=true"), 2, "the nearest: forward");
  expect_complaint(run("stream set concert"), 2, "KEY=VALUE");
  expect_complaint(run("stream set a.b forward=true"), 1, "stream_id must have");
  expect_complaint(run("stream show nothing"), 1, "there is no such stream");
  EXPECT_EQ(done("stream remove concert"), "removed stream concert and its wishes\n");
  expect_complaint(run("stream remove concert"), 1, "there is no such stream");
}

TEST_F(StreamCommands, Orders_AreGivenToTheHolder_AndRefusedWhereThereIsNone) {
  done("stream set idle forward=false");
  expect_complaint(run("stream stop idle"), 1, "no orchestrator holds this stream now");
  expect_complaint(run("stream forward idle on"), 1, "put as a wish");
  EXPECT_EQ(done("stream stop --all"), "no stream is held by an orchestrator: nothing was stopped\n");
  hold("a", {{"state", "running"}, {"worker", {{"state", "running"}}}, {"forward", {{"state", "off"}}}});
  hold("b", {{"state", "starting"}, {"degraded", "The worker failed 6 times."}});
  std::string list = done("stream list");
  for (const char* part : {"STREAM", "orch-1", "running", "off", "The worker failed 6 times.", "idle"})
    EXPECT_TRUE(has(list, part)) << list;
  EXPECT_TRUE(has(done("stream stop a"), "ordered orch-1 to stop a"));
  EXPECT_EQ(done("stream restart a"), "ordered orch-1 to restart a\n");
  EXPECT_EQ(done("stream forward a off"), "ordered orch-1 not to forward a\n");
  EXPECT_EQ(done("stream forward a auto"), "ordered orch-1 to forward a as its settings say\n");
  EXPECT_TRUE(has(done("stream set a forward=true"), "orch-1 is told"));
  EXPECT_EQ(done("stream stop --all"), "ordered the stop of 2 streams\n");
  expect_complaint(run("stream remove a"), 1, "weir stream stop a");
  expect_complaint(run("stream stop"), 2, "--all");
  expect_complaint(run("stream stop a --all"), 2, "--all");
  expect_complaint(run("stream forward a perhaps"), 2, "on, off, or auto");
}

}  // namespace
}  // namespace weir::test
