// The examples of programs that take leases themselves, at a real control plane over either store.
#include "api_store.hpp"
#include "api_talk.hpp"
#include "program.hpp"
#include "stall.hpp"
#include "where.hpp"

#include <csignal>
#include <set>
#include <sstream>

namespace weir::test {
namespace {

// One of them, while it runs.
class Example {
 public:
  Example(const std::string& folder, const std::string& script, const std::string& secret,
          const std::vector<std::string>& words)
      : program_(folder + "/" + words.back() + ".log", all_words(script, secret, words)) {}

  // What it says it did, in order; only that of one kind where one is given.
  std::vector<json::object> did(std::string_view what) const {
    std::vector<json::object> out;
    std::istringstream lines(program_.log());
    for (std::string line; std::getline(lines, line);)
      if (auto said = json::parse_text(line); said && said->is_object() && said->at("did").as_string() == what)
        out.push_back(said->get_object());
    return out;
  }
  std::set<std::string> cameras(std::string_view what) const {
    std::set<std::string> out;
    for (const json::object& each : did(what)) out.emplace(each.at("camera").as_string());
    return out;
  }
  // Asks it to stop, as Ctrl-C does; its exit code.
  int stop() {
    program_.signal(SIGINT);
    return program_.wait();
  }
  std::string log() const { return program_.log(); }

 private:
  static std::vector<std::string> all_words(const std::string& script, const std::string& secret,
                                            const std::vector<std::string>& words) {
    std::vector<std::string> out{"/usr/bin/env", secret, "/usr/bin/python3", WEIR_SOURCE_DIR "/examples/" + script};
    out.insert(out.end(), words.begin(), words.end());
    return out;
  }
  Program program_;
};

class Examples : public OverBothStores {
 protected:
  std::unique_ptr<Example> manager(const std::string& runner) {
    std::string token = "WEIR_TOKEN=" + process().token("runner", runner).reveal();
    return std::make_unique<Example>(folder().path(), "camera_manager.py", token,
                                     std::vector<std::string>{"--url", process().url(), "--runner", runner});
  }
  Reply lease(const std::string& camera) { return process().get("/v1/leases/camera/" + camera); }
};
INSTANTIATE_OVER_BOTH_STORES(Examples);

const std::set<std::string> kBoth = {"cam-1", "cam-2"};

TEST_P(Examples, CameraManager_ThatNeverRegistered_HoldsItsCamerasUntilItStops) {
  START_OR_SKIP();
  process().furnish(2);
  auto first = manager("example-1");
  ASSERT_TRUE(eventually(20s, [&] { return first->cameras("acquired") == kBoth; })) << first->log() << process().log();
  EXPECT_TRUE(eventually(20s, [&] { return first->cameras("renewed") == kBoth && !first->did("told").empty(); }))
      << first->log();
  Reply runner = process().get("/v1/runners/example-1");
  EXPECT_EQ(runner.field("status"), "active") << runner.text;
  EXPECT_EQ(runner.field("capacity_streams"), "40") << "what a runner has that says nothing";
  EXPECT_TRUE(eventually(20s, [&] { return lease("cam-1").field("status") == "active"; })) << lease("cam-1").text;
  EXPECT_EQ(lease("cam-1").field("shard_id"), "shard-0");
  EXPECT_EQ(lease("cam-1").body.at("stream").at("state").as_string(), "STREAMING");
  for (const json::object& told : first->did("told")) EXPECT_EQ(told.at("status"), json::value(202));

  auto second = manager("example-2");
  EXPECT_TRUE(eventually(20s, [&] { return second->cameras("held") == kBoth; })) << second->log();
  EXPECT_TRUE(second->cameras("acquired").empty());
  EXPECT_EQ(first->stop(), 0) << first->log();
  EXPECT_EQ(first->cameras("released"), kBoth);
  EXPECT_TRUE(first->cameras("lost").empty());
  EXPECT_TRUE(eventually(20s, [&] { return second->cameras("acquired") == kBoth; })) << second->log();
  EXPECT_EQ(second->stop(), 0) << second->log();
  EXPECT_EQ(lease("cam-1").field("status"), "released");
}

TEST_P(Examples, LeaseClient_AddsACamera_HoldsItById_AndLeavesNothingBehind) {
  START_OR_SKIP();
  Reply key = process().post("/v1/api-keys", {{"role", "admin"}, {"sub", "example"}});
  ASSERT_EQ(key.status, 201) << key.text;
  Example client(folder().path(), "lease_client.py", "API_KEY=" + key.field("api_key"),
                 {"--url", process().url(), "--ttl", "6", "--add", "cam-001", "--runner", "example-3"});
  auto holds = [&] {
    auto said = client.did("holds");
    return said.empty() ? json::value(nullptr) : said.back().at("leases");
  };
  const json::value working = {{"cam-001", "active", {{"frames", 120}, {"fps", 5.9}}}};
  ASSERT_TRUE(eventually(20s, [&] { return holds() == working; })) << client.log() << process().log();
  ASSERT_EQ(client.did("acquired").size(), 1u);
  EXPECT_EQ(client.did("acquired")[0].at("shard").as_string(), "shard-1");
  EXPECT_EQ(client.did("acquired")[0].at("status").as_string(), "active");
  EXPECT_EQ(client.did("added")[0].at("zones"), json::value(2));
  EXPECT_EQ(client.did("registered")[0].at("runner").as_string(), "example-3");
  EXPECT_TRUE(eventually(20s, [&] { return client.did("renewed").size() >= 2; })) << client.log();
  EXPECT_EQ(client.did("renewed")[1].at("lease"), client.did("acquired")[0].at("lease")) << "one tenure";
  for (const json::object& beat : client.did("beat")) EXPECT_EQ(beat.at("status"), json::value(200));
  EXPECT_EQ(process().get("/v1/tenants/tenant-1").status, 200);
  Reply runner = process().get("/v1/runners/example-3");
  EXPECT_EQ(runner.body.at("metrics"), (json::value{{"gpu_pct", 12.5}})) << runner.text;
  EXPECT_EQ(runner.field("streams_owned"), "1");

  EXPECT_EQ(client.stop(), 0) << client.log();
  EXPECT_TRUE(client.cameras("lost").empty()) << client.log();
  EXPECT_EQ(client.did("ended")[0].at("status"), json::value(200)) << client.log();
  EXPECT_EQ(lease("cam-001").field("status"), "released");
  EXPECT_EQ(process().get("/v1/runners/example-3").status, 404);
}

}  // namespace
}  // namespace weir::test
