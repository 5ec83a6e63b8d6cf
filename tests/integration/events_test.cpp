// The embedded bus as publishers and subscribers use it, over both stores.
#include "api_store.hpp"
#include "api_talk.hpp"

#include "stall.hpp"
#include "where.hpp"
#include "weir/base/clock.hpp"
#include "weir/base/random.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <random>
#include <set>

namespace weir::test {
namespace {

using net::Method;

class EventsApi : public OverBothStores {
 protected:
  void furnish(int cameras) {
    process().furnish(cameras);
    runner_ = std::make_unique<Talk>(process(), process().token("runner", "r1"));
    admin_ = std::make_unique<Talk>(process(), process().token("admin"));
    json::array items;
    for (int n = 1; n <= cameras; ++n) items.push_back({{"camera_uuid", fmt::format("cam-{}", n)}, {"key", "k"}});
    Reply granted = runner_->post("/v1/leases/camera/acquire-batch",
                                  {{"runner_id", "r1"}, {"boot_id", "b1"}, {"ttl_seconds", 60}, {"items", items}});
    ASSERT_EQ(granted.status, 200) << granted.text;
    for (const auto& item : items_of(granted)) versions_.push_back(item.at("version").as_int64());
  }
  json::object item(int camera, const std::string& id, std::string family = "detections") {
    std::string name = fmt::format("cam-{}", camera);
    std::int64_t version = versions_[static_cast<size_t>(camera - 1)];
    return {{"topic", family == "detections" ? "detections.topic" : "status.topic"},
            {"routing_key", fmt::format("{}.t1.s1.{}", family, name)},
            {"event_id", id},
            {"camera_uuid", name},
            {"lease_version", version},
            {"payload", {{"event_id", id}, {"camera_uuid", name}, {"lease_version", version}, {"runner_id", "r1"}}}};
  }
  static json::value batch(json::array items) { return {{"items", std::move(items)}}; }
  static std::vector<std::string> results(const Reply& reply) {
    std::vector<std::string> out;
    for (const auto& each : items_of(reply)) out.emplace_back(each.at("result").as_string());
    return out;
  }
  Reply publish(json::array items) { return runner_->post("/v1/events/batch", batch(std::move(items))); }
  // The ids of a page of what is kept, without what the control plane itself told.
  std::vector<std::string> kept(const std::string& query, Talk* who = nullptr) {
    Reply page = (who == nullptr ? *admin_ : *who).get("/v1/events?follow=false" + query);
    EXPECT_EQ(page.status, 200) << page.text;
    std::vector<std::string> out;
    for (const auto& each : items_of(page))
      if (!each.at("payload").as_object().contains("type"))
        out.emplace_back(each.at("payload").at("event_id").as_string());
    return out;
  }
  using Texts = std::vector<std::string>;

  std::unique_ptr<Talk> runner_, admin_;
  std::vector<std::int64_t> versions_;
};
INSTANTIATE_OVER_BOTH_STORES(EventsApi);

TEST_P(EventsApi, ABatch_IsAnsweredPerEvent_AndFenced) {
  START_OR_SKIP();
  furnish(2);
  Reply first = publish({item(1, "a"), item(2, "b", "stream.status"), item(1, "a")});
  ASSERT_EQ(first.status, 200) << first.text;
  EXPECT_EQ(results(first), (Texts{"accepted", "accepted", "duplicate"}));
  ASSERT_EQ(admin_->post("/v1/leases/camera/cam-1/revoke").status, 200);
  EXPECT_EQ(results(publish({item(1, "c"), item(2, "d"), item(1, "a")})), (Texts{"stale", "accepted", "duplicate"}));
  // Another runner's token, with the right version.
  Talk other(process(), process().token("runner", "r2"));
  json::object stolen = item(2, "e");
  stolen["payload"].as_object().erase("runner_id");
  EXPECT_EQ(results(other.post("/v1/events/batch", batch({stolen}))), Texts{"stale"});
  EXPECT_EQ(kept(""), (Texts{"a", "b", "d"}));
  EXPECT_EQ(kept("&pattern=stream.%23"), Texts{"b"});
  EXPECT_EQ(kept("&pattern=detections.*.*.cam-2"), Texts{"d"});
  std::string metrics = admin_->get("/metrics").text;
  for (std::string_view line : {"weir_events_accepted_total 3", "weir_events_duplicate_total 2", "weir_events_stale_total 2"})
    EXPECT_NE(metrics.find(line), std::string::npos) << line;
}

TEST_P(EventsApi, WhatDoesNotAgree_IsRefusedWithItsField) {
  START_OR_SKIP();
  furnish(2);
  auto refused = [&](std::string_view field, const std::function<void(json::object&)>& spoil) {
    json::object bad = item(2, "bad");
    spoil(bad);
    Reply reply = publish({item(1, "good"), bad});
    EXPECT_EQ(reply.status, 400) << field << " " << reply.text;
    EXPECT_EQ(wrong_field(reply), fmt::format("items[1].{}", field)) << reply.text;
  };
  refused("topic", [](json::object& o) { o.erase("topic"); });
  refused("routing_key", [](json::object& o) { o["topic"] = "elsewhere"; });
  refused("routing_key", [](json::object& o) { o["routing_key"] = "stream.status.t1.s1.cam-2"; });
  refused("routing_key", [](json::object& o) { o["routing_key"] = "detections.t1.s1.cam-1"; });
  refused("routing_key", [](json::object& o) { o["routing_key"] = "detections.t2.s1.cam-2"; });
  refused("routing_key", [](json::object& o) { o["routing_key"] = "detections.t1.s1.x.cam-2"; });
  refused("routing_key", [](json::object& o) { o["routing_key"] = std::string(256, 'a'); });
  refused("event_id", [](json::object& o) { o["event_id"] = ""; });
  refused("camera_uuid", [](json::object& o) { o.erase("camera_uuid"); });
  refused("lease_version", [](json::object& o) { o.erase("lease_version"); });
  refused("lease_version", [](json::object& o) { o["lease_version"] = "7"; });
  refused("payload", [](json::object& o) { o["payload"] = "text"; });
  refused("payload.event_id", [](json::object& o) { o["payload"].as_object()["event_id"] = "other"; });
  refused("payload.lease_version", [](json::object& o) { o["payload"].as_object()["lease_version"] = 1; });
  refused("payload.camera_uuid", [](json::object& o) { o["payload"].as_object()["camera_uuid"] = "cam-1"; });
  refused("payload.runner_id", [](json::object& o) { o["payload"].as_object()["runner_id"] = "r2"; });
  refused("payload.tenant_id", [](json::object& o) { o["payload"].as_object()["tenant_id"] = "t2"; });
  EXPECT_EQ(kept(""), Texts()) << "a batch is refused whole";
  EXPECT_EQ(publish({}).status, 400);
  json::object large = item(1, "large");
  large["payload"].as_object()["fill"] = std::string(300'000, 'x');
  Reply too_large = publish({large});
  EXPECT_EQ(too_large.status, 413);
  EXPECT_EQ(too_large.code(), "payload_too_large");
}

// A runner that lost its camera can no longer publish its status ("Who speaks before and after" in
// docs/lease-protocol.md).
TEST_P(EventsApi, TheStatusAfterALoss_ComesFromTheControlPlane) {
  START_OR_SKIP();
  furnish(5);
  auto lease = [&](const std::string& what, int camera, json::object more) {
    more["camera_uuid"] = fmt::format("cam-{}", camera);
    Reply reply = runner_->post(
        fmt::format("/v1/leases/camera/{}-batch", what),
        {{"runner_id", "r1"}, {"boot_id", "b1"}, {"ttl_seconds", 3}, {"items", json::array{std::move(more)}}});
    EXPECT_EQ(reply.status, 200) << reply.text;
    versions_[static_cast<size_t>(camera - 1)] = items_of(reply).at(0).at("version").as_int64();
  };
  lease("renew", 4, {{"version", versions_[3]}});  // for three seconds, and never again
  for (int n = 1; n <= 5; ++n) {
    json::object streams = item(n, fmt::format("s{}", n), "stream.status");
    streams["payload"].as_object()["state"] = "STREAMING";
    ASSERT_EQ(results(publish({streams})), Texts{"accepted"});
  }
  ASSERT_EQ(admin_->patch("/v1/cameras/cam-1", {{"enabled", false}}).status, 200);
  ASSERT_EQ(admin_->del("/v1/cameras/cam-2").status, 200);
  ASSERT_EQ(admin_->post("/v1/leases/camera/cam-3/revoke").status, 200);
  lease("release", 5, {{"version", versions_[4]}});
  // "STREAMING r1", "DISCONNECTED r1 operator": all that was said about a camera's stream.
  auto words = [&](int camera) {
    Texts out;
    std::int64_t newest = 0;
    Reply page = admin_->get(fmt::format("/v1/events?follow=false&pattern=stream.%23.cam-{}", camera));
    for (const auto& each : items_of(page)) {
      const json::object& said = each.at("payload").as_object();
      EXPECT_EQ(each.at("topic").as_string(), "status.topic");
      EXPECT_GE(said.at("lease_version").as_int64(), newest);
      newest = said.at("lease_version").as_int64();
      std::string word(said.at("state").as_string());
      for (const char* field : {"runner_id", "reason"})
        if (said.contains(field)) word += " " + std::string(said.at(field).as_string());
      out.push_back(word);
    }
    return out;
  };
  auto ends = [&](int camera, const std::string& reason) {
    Texts wanted{"STREAMING r1", "DISCONNECTED r1 " + reason};
    return eventually(10s, [&] { return words(camera) == wanted; });
  };
  EXPECT_TRUE(ends(1, "camera_disabled")) << fmt::format("{}", fmt::join(words(1), ", "));
  EXPECT_TRUE(ends(2, "camera_deleted")) << fmt::format("{}", fmt::join(words(2), ", "));
  EXPECT_TRUE(ends(3, "operator")) << fmt::format("{}", fmt::join(words(3), ", "));
  EXPECT_TRUE(ends(4, "lease_expired")) << fmt::format("{}", fmt::join(words(4), ", "));
  // A takeover adds no further status, and an owner that releases its camera publishes the last status itself.
  Talk second(process(), process().token("runner", "r2"));
  Reply taken = second.post("/v1/leases/camera/acquire",
                            {{"runner_id", "r2"}, {"camera_uuid", "cam-4"}, {"ttl_seconds", 60}});
  ASSERT_EQ(taken.status, 200) << taken.text;
  EXPECT_TRUE(eventually(10s, [&] {
    return !items_of(admin_->get("/v1/events?follow=false&pattern=lease.stolen.%23.cam-4")).empty();
  }));
  EXPECT_EQ(words(4).size(), 2u) << fmt::format("{}", fmt::join(words(4), ", "));
  EXPECT_EQ(words(5), Texts{"STREAMING r1"});
}

TEST_P(EventsApi, EachRole_PublishesAndReadsOnlyItsOwn) {
  START_OR_SKIP();
  furnish(1);
  json::object beat{{"topic", "status.topic"}, {"routing_key", "runner.heartbeat.r1"}, {"event_id", "h"},
                    {"payload", {{"event_id", "h"}, {"runner_id", "r1"}}}};
  json::object control{{"topic", "control.topic"}, {"routing_key", "camera.created.t1.s1.cam-1"}, {"event_id", "c"},
                       {"payload", {{"event_id", "c"}}}};
  EXPECT_EQ(results(publish({beat})), Texts{"accepted"});
  EXPECT_EQ(publish({control}).code(), "not_yours");
  EXPECT_EQ(results(admin_->post("/v1/events/batch", batch({control}))), Texts{"accepted"});
  EXPECT_EQ(admin_->post("/v1/events/batch", batch({item(1, "x")})).code(), "not_yours");
  Talk other(process(), process().token("runner", "r2")), worker(process(), process().token("worker", "r1"));
  EXPECT_EQ(other.post("/v1/events/batch", batch({beat})).code(), "not_yours");
  EXPECT_EQ(worker.post("/v1/events/batch", batch({beat})).code(), "not_yours");
  EXPECT_EQ(results(worker.post("/v1/events/batch", batch({item(1, "w")}))), Texts{"accepted"});
  EXPECT_EQ(worker.get("/v1/events?follow=false").status, 403);
  Talk viewer(process(), process().token("viewer", "v")), mine(process(), process().token("viewer", "v", "t1")),
      foreign(process(), process().token("viewer", "v", "t2")), foreign_runner(process(), process().token("runner", "r1", "t2"));
  EXPECT_EQ(viewer.post("/v1/events/batch", batch({control})).status, 403);
  EXPECT_EQ(kept("", &viewer), (Texts{"h", "c", "w"}));
  EXPECT_EQ(kept("", &mine), Texts{"w"});
  EXPECT_EQ(kept("", &foreign), Texts());
  EXPECT_EQ(results(foreign_runner.post("/v1/events/batch", batch({item(1, "f")}))), Texts{"stale"});
}

TEST_P(EventsApi, Cursors_AreCheckedAndContinue) {
  START_OR_SKIP();
  furnish(1);
  for (int i = 0; i < 5; ++i) publish({item(1, fmt::format("e{}", i))});
  const std::string ours = "/v1/events?pattern=detections.%23&follow=false";
  Reply page = admin_->get(ours + "&limit=2");
  EXPECT_EQ(items_of(page).size(), 2u);
  EXPECT_EQ(page.field("at_end"), "false");
  Reply rest = admin_->get(ours + "&after=" + page.field("next_cursor"));
  EXPECT_EQ(items_of(rest).size(), 3u);
  EXPECT_EQ(rest.field("at_end"), "true");
  EXPECT_EQ(rest.field("gap"), "false");
  for (std::string bad : {"x", "1", "1-", "-5", "1-x", "1-2-3"})
    EXPECT_EQ(wrong_field(admin_->get("/v1/events?follow=false&after=" + bad)), "after") << bad;
  EXPECT_EQ(admin_->get("/v1/events?pattern=" + std::string(256, 'a')).status, 400);
  Reply beyond = admin_->get(ours + "&after=1-99999999999999999");
  Reply now = admin_->get(ours + "&after=now");
  EXPECT_EQ(count_of(now), 0u);
  publish({item(1, "e5")});
  EXPECT_EQ(items_of(admin_->get(ours + "&after=" + now.field("next_cursor"))).size(), 1u);
  EXPECT_EQ(beyond.field("gap"), "true") << "a cursor that this store never gave";
  EXPECT_EQ(items_of(beyond).size(), 5u);
  EXPECT_EQ(admin_->get("/v1/events?follow=false&after=7-1").field("gap"), "true") << "of another epoch";
}

// Publishers on several connections; a subscriber that dies at random points, and resumes; a control plane that is
// killed and started again in between. Every accepted event arrives, and only those.
TEST_P(EventsApi, AResumedSubscriber_HasEveryEvent) {
  START_OR_SKIP();
  furnish(4);
  boost::asio::io_context io;
  std::set<std::string> accepted, seen;
  bool done = false;
  int publishing = 3, resumed = 0;
  auto publisher = [&](int who) -> boost::asio::awaitable<void> {
    auto client = net::HttpClient::create(io, process().url());
    for (int i = 0; i < 150; ++i) {
      json::array items;
      for (int k = 0; k < 4; ++k) items.push_back(item(k + 1, fmt::format("p{}-{}-{}", who, i, k)));
      for (;;) {  // an error says nothing about the batch: again, with the same ids
        net::ClientRequest request = request_for(Method::post, "/v1/events/batch", batch(items), process().token("runner", "r1"));
        request.timeout = 2s;
        auto answer = co_await client->send(std::move(request));
        if (!answer || answer->status != 200) continue;
        auto parsed = json::parse_text(answer->body);
        for (const auto& each : parsed->at("items").as_array())
          if (each.at("result") != "stale") accepted.emplace(each.at("event_id").as_string());
        break;
      }
    }
    if (--publishing == 0) done = true;
  };
  auto subscriber = [&]() -> boost::asio::awaitable<void> {
    std::mt19937 draw(3);
    std::string cursor = "0";
    while (!done || seen.size() < accepted.size()) {
      auto client = net::HttpClient::create(io, process().url());
      net::ClientRequest request = request_for(Method::get, "/v1/events?pattern=detections.%23", nullptr, process().token("admin"));
      request.headers.emplace_back("Last-Event-ID", cursor);
      request.timeout = 2s;
      size_t left = draw() % 200;
      Status ended = co_await client->follow(std::move(request), 2s, [&](const net::StreamedEvent& event) {
        EXPECT_NE(event.event, "gap");
        if (event.event == "error" || event.event == "gap") return false;
        auto data = json::parse_text(event.data);
        seen.emplace(data->at("payload").at("event_id").as_string());
        cursor = event.id;
        return left-- > 0 && !(done && seen.size() >= accepted.size());
      });
      ++resumed;
    }
  };
  auto ended = [](std::exception_ptr failed) { EXPECT_FALSE(failed); };
  for (int who = 0; who < 3; ++who) boost::asio::co_spawn(io, publisher(who), ended);
  boost::asio::co_spawn(io, subscriber(), ended);
  bool killed = false;
  auto limit = std::chrono::steady_clock::now() + 60s;
  while (!io.stopped() && std::chrono::steady_clock::now() < limit) {
    io.run_one_for(50ms);
    if (!killed && accepted.size() > 600) {
      killed = true;
      process().kill_hard();
      process().start();
    }
  }
  ASSERT_TRUE(io.stopped()) << "accepted " << accepted.size() << ", seen " << seen.size();
  EXPECT_TRUE(killed);
  EXPECT_GT(resumed, 5);
  EXPECT_EQ(accepted.size(), 3u * 150 * 4);
  EXPECT_EQ(seen, accepted);
}

// ---- the command ----

class Spawned {
 public:
  Spawned(std::vector<std::string> words, const std::string& out_path) {
    words.insert(words.begin(), WEIR_BINARY);
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ != 0) return;
    int out = ::open(out_path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    ::dup2(out, 1);
    ::dup2(out, 2);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  ~Spawned() {
    if (pid_ > 0) ::kill(pid_, SIGKILL), ::waitpid(pid_, nullptr, 0);
  }
  int interrupt() {
    ::kill(pid_, SIGINT);
    return wait();
  }
  int wait() {
    int status = 0;
    EXPECT_TRUE(eventually(10s, [&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; }));
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  int pid_ = -1;
};

TEST_P(EventsApi, TheCommand_ShowsFollowsReconnectsAndEndsCleanly) {
  START_OR_SKIP();
  furnish(1);
  json::object seen = item(1, "e1");
  seen["payload"].as_object()["ts"] = "2026-01-31T09:05:07.123Z";
  seen["payload"].as_object()["detections"] = {{{"class", "person"}, {"conf", 0.89}, {"bbox_xyxy", {1, 2, 3, 4}}}};
  ASSERT_EQ(results(publish({seen})), Texts{"accepted"});
  std::vector<std::string> where = {"--url", process().url(), "--auth-secret-file", folder().path() + "/auth.secret"};
  auto words = [&](std::vector<std::string> more) {
    more.insert(more.end(), where.begin(), where.end());
    return more;
  };
  std::string once = folder().path() + "/once", followed = folder().path() + "/followed";
  EXPECT_EQ(Spawned(words({"events", "detections.#"}), once).wait(), 0);
  EXPECT_EQ(text_in_file(once), "2026-01-31T09:05:07.123Z  detections.t1.s1.cam-1  person 0.89\n");

  Spawned follower(words({"events", "--follow", "--json", "--after", "0", "detections.#"}), followed);
  auto shows = [&](std::string_view id) {
    std::string part = fmt::format("\"event_id\":\"{}\"", id);
    return eventually(10s, [&] { return text_in_file(followed).find(part) != std::string::npos; });
  };
  EXPECT_TRUE(shows("e1"));
  publish({item(1, "e2")});
  EXPECT_TRUE(shows("e2"));
  process().kill_hard();
  process().start();
  publish({item(1, "e3")});
  EXPECT_TRUE(shows("e3")) << text_in_file(followed);
  EXPECT_EQ(follower.interrupt(), 0);
}

// A follower that has seen nothing yet knows nevertheless from where it follows.
TEST_P(EventsApi, TheCommand_WaitsForAControlPlaneThatIsAway_AndMissesNothing) {
  START_OR_SKIP();
  furnish(1);
  publish({item(1, "before")});
  std::string followed = folder().path() + "/followed";
  Spawned follower({"events", "--follow", "detections.#", "--json", "--url", process().url(), "--auth-secret-file",
                    folder().path() + "/auth.secret"},
                   followed);
  auto says = [&](std::string_view part) {
    return eventually(20s, [&] { return text_in_file(followed).find(part) != std::string::npos; });
  };
  ASSERT_TRUE(eventually(10s, [&] {
    return admin_->get("/metrics").text.find("weir_event_subscribers 1") != std::string::npos;
  })) << admin_->get("/metrics").text;
  process().kill_hard();
  EXPECT_TRUE(says("waiting for the control plane, nothing will be missed. Ctrl-C ends this"))
      << text_in_file(followed);
  process().start();
  publish({item(1, "after-the-first")});
  EXPECT_TRUE(says("\"after-the-first\"")) << text_in_file(followed);
  std::string all = text_in_file(followed);
  EXPECT_EQ(all.find("\"before\""), std::string::npos) << all;
  EXPECT_EQ(all.find("waiting for"), all.rfind("waiting for")) << "it is said once: " << all;
  EXPECT_EQ(follower.interrupt(), 0);
}

}  // namespace
}  // namespace weir::test
