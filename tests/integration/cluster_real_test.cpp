// A detector cluster with nothing made up: three processes that share a Redis, Weir's own worker with a real model, a
// worker in Python, and footage of people. And what none of them may ever tell: a camera's password, Redis's, and the
// links by which workers fetch models.
#include "cluster_house.hpp"
#include "part.hpp"

#include <filesystem>
#include <regex>

namespace weir::test {
namespace {

class ClusterReal : public ClusterHouse {
 protected:
  void SetUp() override {
    std::string why = MediaMtx::missing();
    if (why.empty()) why = no_websockets();
    for (const char* needed : {"footage/vtest.avi", "models/efficientdet-lite0.tflite", "lib/libtensorflowlite_c.so"})
      if (why.empty() && part(needed).empty()) why = std::string(needed) + " could not be fetched";
    if (why.empty()) why = start_redis();
    if (!why.empty()) GTEST_SKIP() << why;
    listener_ = std::make_unique<Program>(
        folder_.path() + "/monitor", std::vector<std::string>{"redis-cli", "-p", std::to_string(redis_->port()), "-a",
                                                              "canary-password", "--no-auth-warning", "monitor"});
    ASSERT_TRUE(eventually(10s, [&] { return listener_->log().find("OK") != std::string::npos; }));
    hub_ = std::make_unique<MediaMtx>(folder_);
    publisher_ = hub_->publish("people", {.clip = "people"});
    ASSERT_TRUE(hub_->ready("people"));
    std::string address = hub_->base().substr(std::string("rtsp://").size());
    furnish("rtsp://viewer:canary-camera@" + address + "/people", text_in_file(part("models/efficientdet-lite0.tflite")),
            {"--log-level", "debug"});
    for (int i = 0; i < 2; ++i) ports_.push_back(free_port());
    std::string library = std::filesystem::path(part("lib/libtensorflowlite_c.so")).parent_path();
    detector_ = std::make_unique<Program>(
        folder_.path() + "/detector.log",
        std::vector<std::string>{WEIR_WORKER, "detector", "--listen", fmt::format("127.0.0.1:{}", ports_[0]), "--state-dir",
                                 folder_.path() + "/detector", "--library-dir", library, "--log-level", "debug"});
    ASSERT_TRUE(eventually(20s, [&] { return accepts(ports_[0]); })) << detector_->log();
    workers_.push_back(std::make_unique<PythonWorker>(folder_, "python", ports_[1]));
  }
  // Everything that stands in Redis, as text.
  std::string dump() const {
    std::string all;
    std::istringstream keys(ask_redis("--raw keys '*'"));
    for (std::string key; std::getline(keys, key);) {
      std::string type = ask_redis("--raw type " + key);
      std::string words = type == "hash" ? "hgetall " : type == "stream" ? "xrange " : "get ";
      all += key + "\n" + ask_redis("--raw " + words + key + (type == "stream" ? " - +" : "")) + "\n";
    }
    return all;
  }
  static void expect_discreet(const std::string& text, const std::string& what) {
    static const std::regex link("signature=[0-9A-Za-z_-]{8}|signature%3[Dd][0-9A-Za-z_-]{8}");
    for (const char* canary : {"canary-camera", "canary-password"}) {
      size_t at = text.find(canary);
      EXPECT_EQ(at, std::string::npos) << what << ": " << text.substr(at > 300 ? at - 300 : 0, 600);
    }
    std::smatch found;
    EXPECT_FALSE(std::regex_search(text, found, link)) << what << ": " << found.prefix().str().substr(0, 2000) << found.str();
  }
  bool heard_from(int worker, const std::string& text) const {
    return std::ranges::any_of(detections(), [&](const json::object& each) {
      return each.at("worker") == json::value(address(worker)) && json::to_text(each).find(text) != std::string::npos;
    });
  }

  std::unique_ptr<Program> listener_, detector_;
};

TEST_F(ClusterReal, PeopleAreSeenByARealModel_AndNobodyTellsASecret) {
  display("d1", "cam-a");
  display("d2", "cam-b");
  for (const char* id : {"one", "two", "three"}) start(id, {"--detector-capacity", "1"});
  EXPECT_TRUE(eventually(60s, [&] { return heard_from(0, R"("class":"person")"); })) << report() << detector_->log();
  EXPECT_TRUE(eventually(30s, [&] { return heard_from(1, R"("class":"motion")"); })) << report();
  EXPECT_TRUE(eventually(20s, [&] {
    return !master().empty() && all_active(master(), {"d1;cam-a", "d2;cam-b"}) &&
           ask_redis("hlen worker:actual_subscriptions") == "2" && ask_redis("xlen worker:detections") != "0";
  })) << report();
  ASSERT_FALSE(std::filesystem::is_empty(folder_.path() + "/python-models")) << "nobody was given a link";

  std::string stored = dump();
  for (const char* key : {"worker:connections", "worker:assignments", "worker:desired_subscriptions", "worker:detections",
                          "worker:actual_subscriptions", "master-election:slaves", "master-election:epoch"})
    EXPECT_NE(stored.find(key), std::string::npos) << key;
  EXPECT_NE(stored.find("rtsp://"), std::string::npos);
  expect_discreet(stored, "Redis");
  EXPECT_NE(listener_->log().find("worker:slave:"), std::string::npos);
  expect_discreet(listener_->log(), "what Redis was told");
  expect_discreet(plane_->log(), "the control plane's log");
  expect_discreet(detector_->log(), "the detection worker's log");
  expect_discreet(workers_[0]->program().log(), "the log of the worker in Python");
  EXPECT_NE(processes_[master()]->log().find("\"detector.command\""), std::string::npos) << "it does not log at debug";
  for (const auto& [id, process] : processes_) expect_discreet(process->log(), id + "'s log");
}

}  // namespace
}  // namespace weir::test
