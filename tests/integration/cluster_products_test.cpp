// Products of a detector cluster, in Python and JavaScript, at three processes `weir cluster` that share a real Redis.
#include "cluster_house.hpp"
#include "redis_server.hpp"

#include <set>

namespace weir::test {
namespace {

// One of the examples, while it runs.
class Product {
 public:
  Product(const TempDir& folder, const std::string& script, const Secret& token, std::vector<std::string> more)
      : program_(folder.path() + "/" + script + ".log", words(script, token, std::move(more))) {}
  // The detections that it has printed, in order.
  std::vector<json::value> heard() const {
    std::vector<json::value> out;
    std::istringstream lines(program_.log());
    for (std::string line; std::getline(lines, line);)
      if (auto message = json::parse_text(line); message && message->is_object()) out.push_back(*std::move(message));
    return out;
  }
  std::set<std::string> ids() const { return all("streamId"); }
  std::set<std::string> subscriptions() const { return all("subscriptionIdentifier"); }
  std::string log() const { return program_.log(); }

 private:
  static std::vector<std::string> words(const std::string& script, const Secret& token, std::vector<std::string> more) {
    std::vector<std::string> out{"/usr/bin/env", "WEIR_TOKEN=" + token.reveal(),
                                 script.ends_with(".py") ? "/usr/bin/python3" : "node",
                                 WEIR_SOURCE_DIR "/examples/" + script};
    out.insert(out.end(), more.begin(), more.end());
    return out;
  }
  std::set<std::string> all(const char* field) const {
    std::set<std::string> out;
    for (const json::value& each : heard()) out.emplace(each.at(field).as_string());
    return out;
  }
  Program program_;
};

class ClusterProducts : public ClusterHouse {
 protected:
  void SetUp() override {
    if (std::system("node --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "there is no node";
    auto started = RedisServer::start(Secret("canary-password"));
    if (!started) GTEST_SKIP() << started.error().message;
    redis_ = *std::move(started);
    ClusterHouse::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    for (const char* id : {"one", "two", "three"})
      start(id, {"--redis-host", "127.0.0.1", "--redis-port", std::to_string(redis_->port()), "--redis-password",
                 "canary-password"});
    ASSERT_TRUE(eventually(25s, [&] { return !master().empty(); })) << report();
  }
  std::string master() const {
    for (const auto& [id, process] : processes_)
      if (is_master(id)) return id;
    return "";
  }
  // The processes that are not the master.
  std::vector<std::string> slaves() const {
    std::vector<std::string> out;
    std::string first = master();
    for (const auto& [id, process] : processes_)
      if (id != first) out.push_back(id);
    return out;
  }
  std::unique_ptr<Product> product(const std::string& script, const std::vector<std::string>& at,
                                   std::vector<std::string> more = {}) {
    for (const std::string& id : at) more.insert(more.end(), {"--url", urls_.at(id)});
    return std::make_unique<Product>(folder_, script, plane_->token("runner"), std::move(more));
  }
  Reply ask(const std::string& id, net::Method method, const std::string& target, const std::string& body = {},
            const std::string& role = "runner") const {
    boost::asio::io_context io;
    auto client = net::HttpClient::create(io, urls_.at(id));
    net::ClientRequest request{.method = method, .target = "/v1/cluster" + target, .body = body, .timeout = 10s};
    if (!role.empty()) request.bearer = plane_->token(role);
    auto answer = test::run(io, client->send(std::move(request)));
    if (!answer) return {.text = answer.error().message};
    auto parsed = json::parse_text(answer->body);
    return {answer->status, parsed ? *parsed : json::value(nullptr), answer->body, answer->headers};
  }
  static std::string wanted(const std::string& subscription, int model) {
    return json::to_text(json::object{{"subscription_identifier", subscription}, {"model_id", model}});
  }
  // The ids of the detections that Redis keeps, in order.
  std::vector<std::string> kept() const {
    std::string said = folder_.path() + "/kept";
    std::string command = fmt::format(
        "redis-cli -p {} -a canary-password --no-auth-warning xrange worker:detections - + >{}", redis_->port(), said);
    EXPECT_EQ(std::system(command.c_str()), 0);
    std::vector<std::string> out;
    std::istringstream lines(text_in_file(said));
    for (std::string line; std::getline(lines, line);)
      if (line.find_first_not_of("0123456789-") == std::string::npos && line.find('-') != std::string::npos)
        out.push_back(line);
    return out;
  }

  std::unique_ptr<RedisServer> redis_;
};

using net::Method;

TEST_F(ClusterProducts, AtAnyProcess_HearDetections_AnswerSessions_AndChangeWhatIsSubscribed) {
  display("d1", "cam-a");
  auto others = slaves();
  ASSERT_EQ(others.size(), 2u);
  auto python = product("cluster_listener.py", {others[0], others[1]});
  auto script = product("cluster_listener.mjs", {others[1]},
                        {"--subscribe", "kiosk;cam-b", "--model", "7", "--only", "kiosk;cam-b"});
  EXPECT_TRUE(eventually(30s, [&] { return !script->heard().empty(); })) << script->log() << report();
  EXPECT_TRUE(eventually(20s, [&] {
    return python->subscriptions() == std::set<std::string>{"d1;cam-a", "kiosk;cam-b"};
  })) << python->log() << report();
  EXPECT_EQ(script->subscriptions(), std::set<std::string>{"kiosk;cam-b"});
  EXPECT_EQ(script->heard()[0].at("type"), "detection");
  EXPECT_EQ(script->heard()[0].at("data").at("boxes").at(0).at("label"), "motion");

  // What a worker wants written into a session is answered by a product at another process than the master.
  EXPECT_EQ(ask(others[0], Method::put, "/displays/d1/session", R"({"session_id":42})").status, 200);
  EXPECT_TRUE(eventually(15s, [&] {
    return std::ranges::any_of(workers_, [](const auto& each) {
      return each->program().log().find("session 42 changed: True, agreed by ") != std::string::npos;
    });
  })) << report();

  Reply image = ask(others[1], Method::get, "/cameras/cam-a/image", "", "viewer");
  EXPECT_EQ(image.status, 200) << image.text;
  EXPECT_TRUE(image.text.starts_with("\xFF\xD8")) << "a JPEG";
  EXPECT_EQ(image.headers["content-type"], "image/jpeg");
  EXPECT_EQ(ask(others[1], Method::get, "/cameras/nowhere/image").code(), "camera_not_found");
  EXPECT_EQ(ask(others[0], Method::post, "/cameras/cam-a/resubscribe").status, 200);
  EXPECT_EQ(ask(others[0], Method::post, "/rebalance").body.at("rebalanced"), true);

  // A process that stops sends its listeners elsewhere; none of its detections is lost to them.
  processes_[others[0]]->signal(SIGTERM);
  EXPECT_EQ(processes_[others[0]]->wait(20s), 0) << processes_[others[0]]->log();
  processes_.erase(others[0]);
  std::string last = kept().back();
  EXPECT_TRUE(eventually(20s, [&] { return python->ids().contains(last); })) << python->log();

  // What was subscribed ad hoc ends at the worker, too.
  EXPECT_TRUE(eventually(10s, [&] { return !runs_at(others[1], "kiosk;cam-b").empty(); })) << report();
  EXPECT_EQ(ask(others[1], Method::post, "/subscriptions", wanted("x;cam-b", 7)).status, 201);
  Reply gone = ask(others[1], Method::del, "/subscriptions/x%3Bcam-b");
  EXPECT_EQ(gone.body.at("deleted"), true) << gone.text;
  EXPECT_EQ(ask(others[1], Method::del, "/subscriptions/x%3Bcam-b").body.at("deleted"), false);
  EXPECT_EQ(json::to_text(ask(others[1], Method::del, "/cameras/cam-b/subscriptions").body.at("deleted")),
            R"(["kiosk;cam-b"])");
  EXPECT_TRUE(eventually(15s, [&] {
    json::object said = state(others[1]);
    return !said.empty() && said.at("subscriptions").as_object().size() == 1;
  })) << report();
}

TEST_F(ClusterProducts, WhatTheyAskWrongly_IsAnsweredWithASentence_AtEveryProcess) {
  struct Bad {
    Method method;
    const char* target;
    std::string body;
    const char* role;
    int status;
    const char* code;
  };
  const std::string good = wanted("k;cam-a", 7);
  const std::string bad_crop = R"({"subscription_identifier":"k;cam-a","model_id":7,"crop_x1":9,"crop_y1":9,)"
                               R"("crop_x2":5,"crop_y2":20})";
  ASSERT_EQ(plane_->post("/v1/models", {{"model_id", 8}, {"tenant_id", "t1"}, {"name", "empty"}}).status, 201);
  const Bad all[] = {
      {Method::post, "/subscriptions", good, "", 401, "token_missing"},
      {Method::post, "/subscriptions", good, "viewer", 403, "role_forbidden"},
      {Method::post, "/subscriptions", good, "worker", 403, "role_forbidden"},
      {Method::post, "/subscriptions", "not JSON", "runner", 400, ""},
      {Method::post, "/subscriptions", wanted("kcam-a", 7), "runner", 400, "bad_subscription_identifier"},
      {Method::post, "/subscriptions", wanted("k;nowhere", 7), "runner", 404, "camera_not_found"},
      {Method::post, "/subscriptions", wanted("k;cam-a", 9), "runner", 404, "model_not_found"},
      {Method::post, "/subscriptions", wanted("k;cam-a", 8), "runner", 409, "no_file"},
      {Method::post, "/subscriptions", bad_crop, "runner", 400, ""},
      {Method::del, "/subscriptions/k", "", "runner", 400, "bad_subscription_identifier"},
      {Method::post, "/cameras/nowhere/resubscribe", "", "runner", 404, "no_subscription"},
      {Method::put, "/displays/d1/session", "{}", "runner", 400, ""},
      {Method::get, "/listen?events=perhaps", "", "viewer", 400, "bad_request"},
      {Method::get, "/listen?subscription=x", "", "viewer", 400, "bad_subscription_identifier"},
      {Method::get, "/listen", "", "viewer", 426, ""},
      {Method::get, "/listen", "", "", 401, "token_missing"},
  };
  for (const auto& [id, process] : processes_)
    for (const Bad& each : all) {
      Reply reply = ask(id, each.method, each.target, each.body, each.role);
      EXPECT_EQ(reply.status, each.status) << id << " " << each.target << " " << each.body << " " << reply.text;
      EXPECT_TRUE(*each.code == 0 || reply.code() == each.code) << reply.text;
    }
  EXPECT_TRUE(ask("one", Method::get, "/state").body.at("subscriptions").as_object().empty());
}

TEST_F(ClusterProducts, AfterTheMasterWasKilled_HaveEveryDetectionThatRedisKept) {
  display("d1", "cam-a");
  display("d2", "cam-b");
  std::string first = master();
  auto others = slaves();
  std::vector<std::unique_ptr<Product>> products;
  products.push_back(product("cluster_listener.py", {first, others[0]}));
  products.push_back(product("cluster_listener.mjs", {first, others[1]}));
  for (const auto& each : products)
    ASSERT_TRUE(eventually(30s, [&] { return each->ids().size() >= 3; })) << each->log() << report();
  processes_[first]->signal(SIGKILL);
  processes_[first]->wait();
  processes_.erase(first);
  size_t before = kept().size();
  ASSERT_TRUE(eventually(30s, [&] { return kept().size() >= before + 3; })) << report();
  std::vector<std::string> all = kept();
  for (const auto& each : products) {
    std::string earliest(each->heard().front().at("streamId").as_string());
    auto from = std::ranges::find(all, earliest);
    ASSERT_NE(from, all.end()) << earliest;
    EXPECT_TRUE(eventually(20s, [&] {
      auto ids = each->ids();
      return std::all_of(from, all.end(), [&](const std::string& id) { return ids.contains(id); });
    })) << each->log() << report();
  }
}

}  // namespace
}  // namespace weir::test
