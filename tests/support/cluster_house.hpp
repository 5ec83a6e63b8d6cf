// ClusterHouse: a real control plane, a camera, two detection workers written in Python with another WebSocket library, and
// as many processes `weir cluster` as a test starts. They share a real Redis where the test has begun one before. Main
// thread only.
#pragma once

#include "fleet.hpp"
#include "mediamtx.hpp"
#include "redis_server.hpp"
#include "run.hpp"
#include "stall.hpp"
#include "where.hpp"

#include "weir/base/json.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>

namespace weir::test {

namespace json = weir::json;

class PythonWorker {
 public:
  PythonWorker(const TempDir& folder, const std::string& name, int port)
      : port_(port),
        program_(folder.path() + "/" + name + ".log",
                 {"/usr/bin/python3", WEIR_SOURCE_DIR "/examples/detector_worker.py", "--port", std::to_string(port), "--models",
                  folder.path() + "/" + name + "-models"}) {
    EXPECT_TRUE(eventually(20s, [&] { return accepts(port_); })) << program_.log();
  }
  Program& program() { return program_; }

 private:
  const int port_;
  Program program_;
};

class ClusterHouse : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::string why = MediaMtx::missing(); !why.empty()) GTEST_SKIP() << why;
    if (std::string why = no_websockets(); !why.empty()) GTEST_SKIP() << why;
    hub_ = std::make_unique<MediaMtx>(folder_);
    publisher_ = hub_->publish("cam");
    ASSERT_TRUE(hub_->ready("cam"));
    furnish(hub_->base() + "/cam");
    for (int i = 0; i < 2; ++i) ports_.push_back(free_port());
    for (int i = 0; i < 2; ++i) workers_.push_back(std::make_unique<PythonWorker>(folder_, fmt::format("w{}", i), ports_[i]));
  }
  static std::string no_websockets() {
    bool there = std::system("/usr/bin/python3 -c 'import websockets' 2>/dev/null") == 0;
    return there ? "" : "python3-websockets is not installed";
  }
  // A control plane with cameras cam-a and cam-b, which send the same, and playlist p1 with model 7.
  void furnish(const std::string& rtsp_url, const std::string& model_file = "no model at all",
               const std::vector<std::string>& flags = {}) {
    plane_ = std::make_unique<WeirProcess>(folder_.path(), "sqlite:" + folder_.path() + "/weir.db", flags);
    plane_->furnish(0);
    for (const char* camera : {"cam-a", "cam-b"})
      ASSERT_EQ(plane_->post("/v1/cameras", {{"camera_uuid", camera}, {"tenant_id", "t1"}, {"site_id", "s1"},
                                             {"rtsp_url", rtsp_url}, {"processing", "cluster"}}).status, 201);
    ASSERT_EQ(plane_->post("/v1/models", {{"model_id", 7}, {"tenant_id", "t1"}, {"name", "motion"}}).status, 201);
    upload_model(7, model_file);
    ASSERT_EQ(plane_->post("/v1/playlists", {{"playlist_id", "p1"}, {"tenant_id", "t1"}, {"model_id", 7}}).status, 201);
  }
  // The reason to skip, or "".
  std::string start_redis() {
    auto started = RedisServer::start(Secret("canary-password"));
    if (!started) return started.error().message;
    redis_ = *std::move(started);
    return "";
  }
  void upload_model(int model, const std::string& content) {
    net::ClientRequest request{.method = net::Method::put, .target = fmt::format("/v1/models/{}/file", model),
                               .body = content, .bearer = plane_->token("admin"),
                               .content_type = "application/octet-stream"};
    Reply reply = plane_->raw(std::move(request));
    ASSERT_LT(reply.status, 300) << reply.text;
  }
  void display(const std::string& id, const std::string& camera) {
    Reply made = plane_->post("/v1/displays", {{"display_id", id}, {"tenant_id", "t1"}, {"camera_uuid", camera},
                                               {"playlist_id", "p1"}});
    EXPECT_EQ(made.status, 201) << made.text;
  }
  std::string address(int worker) const { return fmt::format("ws://127.0.0.1:{}", ports_[worker]); }
  // Of all workers, those that are not there yet too.
  std::string addresses() const {
    std::string all = address(0);
    for (int worker = 1; worker < static_cast<int>(ports_.size()); ++worker) all += "," + address(worker);
    return all;
  }
  void start(const std::string& id, const std::vector<std::string>& more = {}) {
    int port = free_port();
    std::vector<std::string> words{WEIR_BINARY, "cluster", "--control-plane-url", plane_->url(), "--auth-secret-file",
                                   folder_.path() + "/auth.secret", "--cluster-process-id", id, "--listen",
                                   fmt::format("127.0.0.1:{}", port), "--detector-workers", addresses(), "--log-level", "debug"};
    if (redis_)
      words.insert(words.end(), {"--redis-host", "127.0.0.1", "--redis-port", std::to_string(redis_->port()),
                                 "--redis-password", "canary-password"});
    words.insert(words.end(), more.begin(), more.end());
    processes_[id] = std::make_unique<Program>(folder_.path() + "/" + id + ".log", words);
    urls_[id] = fmt::format("http://127.0.0.1:{}", port);
    ASSERT_TRUE(eventually(20s, [&] { return accepts(port); })) << processes_[id]->log();
  }
  json::object state(const std::string& id) const {
    boost::asio::io_context io;
    auto client = net::HttpClient::create(io, urls_.at(id));
    net::ClientRequest request{.target = "/v1/cluster/state", .bearer = plane_->token("viewer"), .timeout = 2s};
    auto answer = test::run(io, client->send(std::move(request)));
    if (!answer || answer->status != 200) return {};
    return json::parse_text(answer->body)->as_object();
  }
  bool is_master(const std::string& id) const {
    json::object said = state(id);
    return !said.empty() && said.at("isMaster").as_bool();
  }
  std::string master() const {
    for (const auto& [id, process] : processes_)
      if (is_master(id)) return id;
    return "";
  }
  // The worker that runs the subscription, as this process says; "" where none does.
  std::string runs_at(const std::string& id, const std::string& subscription) const {
    json::object said = state(id);
    if (said.empty()) return "";
    const json::object& all = said.at("subscriptions").as_object();
    const json::value* one = all.if_contains(subscription);
    if (one == nullptr || one->at("status") != "active") return "";
    return std::string(one->at("worker").as_string());
  }
  // Each of these subscriptions is active, as this process says.
  bool all_active(const std::string& id, const std::vector<std::string>& subscriptions) const {
    return std::ranges::all_of(subscriptions, [&](const auto& each) { return !runs_at(id, each).empty(); });
  }
  // What `redis-cli` answers to these words.
  std::string ask_redis(const std::string& words) const {
    std::string path = folder_.path() + "/redis-said";
    std::string command = fmt::format("redis-cli -p {} -a canary-password --no-auth-warning {} >{} 2>&1", redis_->port(), words, path);
    if (std::system(command.c_str()) != 0) return "";
    std::string said = text_in_file(path);
    while (said.ends_with('\n')) said.pop_back();
    return said;
  }
  // The payloads of all detections that the control plane's feed has.
  std::vector<json::object> detections() const {
    std::vector<json::object> found;
    std::string said = folder_.path() + "/said";
    std::string command = fmt::format("timeout 10 '{}' events 'detections.#' --after 0 --json --url {} --auth-secret-file {}/auth.secret >{} 2>/dev/null",
                                      WEIR_BINARY, plane_->url(), folder_.path(), said);
    EXPECT_EQ(std::system(command.c_str()), 0);
    std::istringstream lines(text_in_file(said));
    for (std::string line; std::getline(lines, line);) {
      auto event = json::parse_text(line);
      if (event) found.push_back(event->at("payload").as_object());
    }
    return found;
  }
  // Who said so, of the detections of this camera that the feed has.
  std::vector<std::string> heard(const std::string& camera) const {
    std::vector<std::string> by;
    for (const json::object& each : detections())
      if (each.at("camera_uuid") == json::value(camera)) by.emplace_back(each.at("runner_id").as_string());
    return by;
  }
  std::string report() const {
    std::string all = plane_->log();
    for (const auto& [id, process] : processes_)
      if (process) all += process->log();
    for (const auto& worker : workers_) all += worker->program().log();
    return all;
  }

  TempDir folder_;
  std::unique_ptr<WeirProcess> plane_;
  std::unique_ptr<MediaMtx> hub_;
  std::unique_ptr<Program> publisher_;
  std::unique_ptr<RedisServer> redis_;
  std::vector<int> ports_;
  std::vector<std::unique_ptr<PythonWorker>> workers_;
  std::map<std::string, std::unique_ptr<Program>> processes_;
  std::map<std::string, std::string> urls_;
};

}  // namespace weir::test
