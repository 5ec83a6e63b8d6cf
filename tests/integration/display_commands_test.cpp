// What detector clusters shall look at, by command, against a real control plane; and what a cluster then reads.
#include "api_talk.hpp"
#include "cli_shell.hpp"

namespace weir::test {
namespace {

class DisplayCommands : public testing::Test {
 protected:
  DisplayCommands() { plane_.furnish(2); }
  Ran run(const std::string& command, std::vector<std::string> more = {}) {
    std::vector<std::string> words = words_of(command);
    words.insert(words.end(), more.begin(), more.end());
    return weir(folder_, words, fmt::format("WEIR_URL={} WEIR_TOKEN={}", plane_.url(), plane_.token("admin").reveal()));
  }
  std::string done(const std::string& command, std::vector<std::string> more = {}) {
    Ran ran = run(command, std::move(more));
    EXPECT_EQ(ran.code, 0) << command << ": " << ran.err;
    return ran.out;
  }
  json::array items(const std::string& command) { return run(command + " --json").parsed().at("items").as_array(); }

  TempDir folder_;
  WeirProcess plane_{folder_.path(), "sqlite:" + folder_.path() + "/weir.db"};
};

TEST_F(DisplayCommands, AModelAPlaylistAndADisplay_AreASubscriptionOfTheCamerasCluster) {
  EXPECT_TRUE(has(done("display list"), "no displays yet"));
  EXPECT_TRUE(has(done("playlist list"), "no playlists yet"));
  EXPECT_TRUE(has(done("model list"), "no models"));
  EXPECT_EQ(done("model add yolo --tenant t1", {"--metadata", R"({"labels":["car"]})"}),
            "added model yolo under the number 1\n");
  EXPECT_EQ(done("model add other --tenant t1 --id 7"), "added model other under the number 7\n");
  EXPECT_EQ(done("playlist add lunch --tenant t1 --model 1"), "added playlist lunch\n");
  EXPECT_TRUE(has(done("display add hall --tenant t1"), "until it has a camera and a playlist"));
  EXPECT_EQ(done("display add entrance --tenant t1 --camera cam-1 --playlist lunch"), "added display entrance\n");
  done("camera set cam-1 processing=cluster");
  done("camera set cam-2 processing=cluster cluster=second");
  EXPECT_EQ(done("subscription add kiosk;cam-1 --model 7 --crop 1,2,30,40 --snapshot-interval-ms 500"),
            "added subscription kiosk;cam-1\n");

  std::string models = done("model list"), displays = done("display list"), subscriptions = done("subscription list");
  EXPECT_TRUE(has(models, "cluster") && has(models, "yolo")) << models;
  EXPECT_TRUE(has(displays, "entrance") && has(displays, "lunch")) << displays;
  EXPECT_TRUE(has(subscriptions, "kiosk;cam-1")) << subscriptions;
  EXPECT_EQ(items("model list")[0].at("metadata").at("labels").at(0).as_string(), "car");
  EXPECT_EQ(items("display list --tenant t1").size(), 2u);
  EXPECT_EQ(items("playlist list")[0].at("model_id"), 1);

  Talk cluster(plane_, plane_.token("runner", "backend-1"));
  Reply desired = cluster.get("/v1/clusters/default/desired");
  ASSERT_EQ(desired.status, 200) << desired.text;
  ASSERT_EQ(count_of(desired), 2u) << desired.text;
  EXPECT_EQ(items_of(desired)[0].at("subscription_identifier").as_string(), "entrance;cam-1");
  EXPECT_EQ(items_of(desired)[0].at("model_name").as_string(), "yolo");
  EXPECT_EQ(items_of(desired)[1].at("crop_y2"), 40);

  EXPECT_TRUE(has(done("model labels --local --models-dir /nowhere --json"), "items"));
  expect_complaint(run("model remove 1"), 1, "playlist lunch");
  expect_complaint(run("playlist remove lunch"), 1, "display entrance");
  EXPECT_EQ(done("subscription remove kiosk;cam-1"), "removed subscription kiosk;cam-1\n");
  EXPECT_EQ(done("display remove entrance"), "removed display entrance\n");
  EXPECT_EQ(done("playlist remove lunch"), "removed playlist lunch\n");
  EXPECT_EQ(done("model remove 1"), "removed model 1\n");
  EXPECT_EQ(count_of(cluster.get("/v1/clusters/default/desired")), 0u);
}

TEST_F(DisplayCommands, WrongUse_IsOneSentence) {
  expect_complaint(run("display add a;b --tenant t1"), 1, "semicolon");
  expect_complaint(run("display add d"), 1, "tenant_id is required");
  expect_complaint(run("display add d --tenant t1 --camera none"), 1, "there is no such camera");
  expect_complaint(run("playlist add p --tenant t1"), 2, "--model");
  expect_complaint(run("playlist add p --tenant t1 --model x"), 2, "must be a number");
  expect_complaint(run("playlist add p --tenant t1 --model 1.5"), 2, "must be a whole number");
  expect_complaint(run("subscription add cam-1 --model 1"), 1, "semicolon");
  expect_complaint(run("subscription add a;cam-1 --model 1 --crop 1,2"), 2, "X1,Y1,X2,Y2");
  expect_complaint(run("model add m --tenant t1 --metadata 7"), 2, "JSON object");
  expect_complaint(run("model remove nothing"), 1, "whole number");
  expect_complaint(run("display remove nothing"), 1, "there is no such display");
}

}  // namespace
}  // namespace weir::test
