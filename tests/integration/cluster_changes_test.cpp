// Random changes of everything that says what a detector cluster shall do, while its workers and its master are killed: at
// the end the workers run exactly what the rows ask for, none ran anything for long that another one ran, and nothing is
// heard of a worker about what it had lost. WEIR_CHANGES_S says for how long; for more than a minute, workers and masters
// are frozen too.
#include "scripted_house.hpp"

#include <cstdio>
#include <cstdlib>
#include <random>
#include <set>

namespace weir::test {
namespace {

using net::Method;
constexpr int kWorkers = 3;

class ClusterChanges : public ScriptedHouse {
 protected:
  void SetUp() override {
    if (std::string why = start_redis(); !why.empty()) GTEST_SKIP() << why;
    ScriptedHouse::SetUp();
  }
  void furnish_more() {
    reserve(kWorkers);
    for (int n = 0; n < kWorkers; ++n) work(n, fmt::format("w{}", n), {"--linger", "1"});
    for (int n = 0; n < 6; ++n) add_camera(n);
    for (int n = 1; n <= 3; ++n) add_model(n);
    for (int n = 0; n < 4; ++n) add_playlist(n);
    for (int n = 0; n < 12; ++n) put_display(n);
    for (const char* id : {"one", "two", "three"}) start(id);
  }

  int draw(int below) { return std::uniform_int_distribution<int>(0, below - 1)(random_); }
  bool once_in(int many) { return draw(many) == 0; }
  Reply say(Method method, const std::string& target, const json::value& body = nullptr) {
    Reply reply = plane_->call(method, target, body, plane_->token("admin"));
    EXPECT_GT(reply.status, 0) << target << reply.text;
    EXPECT_LT(reply.status, 500) << target << reply.text;
    EXPECT_NE(reply.status, 400) << target << reply.text;
    changes_ += reply.status < 300 ? 1 : 0;
    return reply;
  }
  static std::string camera(int n) { return fmt::format("c{}", n); }
  std::string url() { return fmt::format("rtsp://u:p@camera-{}.example/stream", draw(1000)); }
  void add_camera(int n) {
    say(Method::post, "/v1/cameras", {{"camera_uuid", camera(n)}, {"tenant_id", "t1"}, {"site_id", "s1"}, {"rtsp_url", url()},
                                      {"processing", "cluster"}});
  }
  // A model without a file cannot be given to anybody, so it has one at once.
  void add_model(int n) {
    if (say(Method::post, "/v1/models", {{"model_id", n}, {"tenant_id", "t1"}, {"name", fmt::format("m{}", draw(1000))}})
            .status == 201)
      upload_model(n, fmt::format("file {}", draw(1000)));
  }
  void add_playlist(int n) {
    say(Method::post, "/v1/playlists", {{"playlist_id", fmt::format("l{}", n)}, {"tenant_id", "t1"}, {"model_id", 1 + draw(3)}});
  }
  void put_display(int n) {
    json::object body{{"tenant_id", "t1"}, {"name", fmt::format("display {}", draw(1000))}};
    if (!once_in(8)) body["camera_uuid"] = camera(draw(6));
    if (!once_in(8)) body["playlist_id"] = fmt::format("l{}", draw(4));
    std::string id = fmt::format("x{}", n);
    if (say(Method::put, "/v1/displays/" + id, body).status != 404) return;
    body["display_id"] = id;
    say(Method::post, "/v1/displays", body);
  }
  void change_camera(int n) {
    std::string target = "/v1/cameras/" + camera(n);
    int what = draw(8), status = 0;
    if (what < 3) status = say(Method::patch, target, {{"enabled", !once_in(5)}}).status;
    else if (what < 6) status = say(Method::patch, target, {{"processing", once_in(5) ? "lease" : "cluster"}}).status;
    else if (what < 7) status = say(Method::patch, target, {{"rtsp_url", url()}}).status;
    else status = say(Method::del, target).status;
    if (status == 404) add_camera(n);
  }
  void change_model(int n) {
    std::string target = fmt::format("/v1/models/{}", n);
    int what = draw(6);
    if (what < 3) say(Method::put, target, {{"tenant_id", "t1"}, {"name", fmt::format("m{}", draw(1000))}});
    else if (what < 5) upload_model_again(n);
    else if (say(Method::del, target).status == 200) add_model(n);
  }
  void upload_model_again(int n) {
    if (say(Method::get, fmt::format("/v1/models/{}", n)).status == 200) upload_model(n, fmt::format("file {}", draw(1000)));
  }
  void change_playlist(int n) {
    std::string target = fmt::format("/v1/playlists/l{}", n);
    if (!once_in(4)) say(Method::put, target, {{"tenant_id", "t1"}, {"model_id", 1 + draw(3)}});
    else if (say(Method::del, target).status == 200 || once_in(2)) add_playlist(n);
  }
  // Some stand in the place of a display's own subscription.
  void change_ad_hoc() {
    std::string display = once_in(2) ? fmt::format("x{}", draw(12)) : fmt::format("kiosk-{}", draw(4));
    std::string there = camera(draw(6));
    if (once_in(2)) {
      say(Method::del, "/v1/subscriptions/" + display + "%3B" + there);
      return;
    }
    json::object body{{"subscription_identifier", display + ";" + there}, {"model_id", 1 + draw(3)}};
    if (once_in(2))
      for (const char* name : {"crop_x1", "crop_y1", "crop_x2", "crop_y2"}) body[name] = (name[6] - '0') * 100 + draw(50);
    say(Method::post, "/v1/subscriptions", body);
  }
  void change_something() {
    int what = draw(10);
    if (what < 4) put_display(draw(12));
    else if (what < 5) say(Method::del, fmt::format("/v1/displays/x{}", draw(12)));
    else if (what < 7) change_camera(draw(6));
    else if (what < 8) change_playlist(draw(4));
    else if (what < 9) change_model(1 + draw(3));
    else change_ad_hoc();
  }
  void change_for(Duration length) {
    Instant until = boot_now() + length;
    while (boot_now() < until && !HasFailure()) {
      change_something();
      between_looks();
    }
  }
  // So that there is something to do at the end.
  void leave_something() {
    for (int n = 0; n < 4; ++n) add_playlist(n);
    add_camera(0);
    say(Method::patch, "/v1/cameras/c0", {{"enabled", true}, {"processing", "cluster"}});
    for (int n = 0; n < 12; ++n) put_display(n);
    say(Method::post, "/v1/subscriptions", {{"subscription_identifier", "kiosk;c0"}, {"model_id", 1}});
  }

  void kill_worker() {
    ScriptedWorker& victim = worker(draw(kWorkers));
    victim.kill();
    change_for(3s);
    victim.start();
  }
  void kill_master() {
    std::string was = master();
    if (was.empty()) return;
    processes_[was]->signal(SIGKILL);
    processes_[was]->wait();
    change_for(2s);
    start(was);
  }
  // Long enough that its subscriptions go elsewhere.
  void freeze_worker() {
    ScriptedWorker& victim = worker(draw(kWorkers));
    victim.freeze();
    change_for(14s);
    victim.thaw();
    change_for(10s);
  }
  void freeze_master() {
    std::string was = master();
    if (was.empty()) return;
    processes_[was]->signal(SIGSTOP);
    change_for(10s);
    processes_[was]->signal(SIGCONT);
  }

  // What is desired, in the words in which workers are told.
  std::map<std::string, json::object> desired() {
    std::map<std::string, json::object> all;
    Reply reply = say(Method::get, "/v1/clusters/default/desired?limit=1000");
    constexpr std::pair<const char*, const char*> kNames[] = {
        {"rtsp_url", "rtspUrl"}, {"model_id", "modelId"}, {"model_name", "modelName"}, {"crop_x1", "cropX1"},
        {"crop_y1", "cropY1"}, {"crop_x2", "cropX2"}, {"crop_y2", "cropY2"}};
    for (const json::value& each : reply.body.at("items").as_array()) {
      json::object& one = all[std::string(each.at("subscription_identifier").as_string())];
      for (const auto& [row, told] : kNames)
        if (const auto* value = each.as_object().if_contains(row); value != nullptr && !value->is_null()) one[told] = *value;
    }
    return all;
  }
  // How what the workers run differs from what is desired; "" where it does not.
  std::string difference() {
    std::map<std::string, json::object> wanted = desired();
    for (const ScriptedWorker* each : everybody())
      for (auto& [subscription, told] : each->runs()) {
        auto found = wanted.find(subscription);
        if (found == wanted.end()) return fmt::format("{} runs at {}, and is not desired or runs elsewhere too", subscription, each->name());
        for (const char* own : {"modelUrl", "subscriptionIdentifier"}) told.erase(own);
        if (told != found->second)
          return fmt::format("{} runs at {} as {}, but {} is desired", subscription, each->name(), json::to_text(told),
                             json::to_text(found->second));
        wanted.erase(found);
      }
    return wanted.empty() ? "" : fmt::format("{} runs nowhere", wanted.begin()->first);
  }
  int noted(const std::string& what) const {
    std::ptrdiff_t found = 0;
    for (const ScriptedWorker* each : everybody())
      found += std::ranges::count_if(each->diary(), [&](const auto& entry) { return entry.what == what; });
    return static_cast<int>(found);
  }
  // Commands of a master that had been replaced: over a connection that was not the worker's newest for a while.
  std::vector<std::string> late_commands() const {
    std::vector<std::string> found;
    for (const ScriptedWorker* each : everybody()) {
      std::int64_t newest = 0, since = 0;
      for (const DiaryEntry& entry : each->diary()) {
        if (entry.what == "started") newest = 0;
        if (entry.what == "connected") newest = entry.connection, since = entry.at;
        bool command = entry.what == "subscribe" || entry.what == "unsubscribe";
        if (command && entry.connection < newest && entry.at > since + 1000)
          found.push_back(fmt::format("{} {} at {}", entry.what, entry.subscription, each->name()));
      }
    }
    return found;
  }

  std::mt19937 random_;
  int changes_ = 0;
};

TEST_F(ClusterChanges, WhateverHappens_TheWorkersComeToRunWhatIsDesired) {
  const char* given = std::getenv("WEIR_CHANGES_S");
  Duration length = std::chrono::seconds(given != nullptr ? std::atoi(given) : long_run() ? 600 : 60);
  bool freezes = length > 60s;  // which take a while
  unsigned seed = freezes ? std::random_device()() : 1;
  random_.seed(seed);
  std::printf("NOTE: the detector cluster's random changes have the seed %u\n", seed);
  furnish_more();
  Instant until = boot_now() + length;
  change_for(length / 2);
  for (int fault = 0; boot_now() < until && !HasFailure(); ++fault) {
    if (int kind = fault % (freezes ? 4 : 2); kind == 0) kill_worker();
    else if (kind == 1) kill_master();
    else if (kind == 2) freeze_worker();
    else freeze_master();
    change_for(1s);
  }
  leave_something();
  std::string differs;
  EXPECT_TRUE(eventually(60s, [&] { return (differs = difference()).empty(); })) << differs << everything();
  std::set<std::string> at_the_end;
  for (const auto& [subscription, wanted] : desired()) at_the_end.insert(subscription);
  // What the master says of it is the same.
  EXPECT_TRUE(eventually(20s, [&] {
    std::string who = master();
    json::object said = who.empty() ? json::object() : state(who);
    if (said.empty() || said.at("subscriptions").as_object().size() != at_the_end.size()) return false;
    return std::ranges::all_of(at_the_end, [&](const std::string& each) {
      std::string at = runs_at(who, each);
      return std::ranges::any_of(everybody(), [&](const auto* worker) {
        return worker->address() == at && worker->runs().contains(each);
      });
    });
  })) << everything();
  EXPECT_FALSE(at_the_end.empty());
  auto [both_ms, which] = longest_overlap(diaries());
  std::printf("NOTE: %d changes, %d commands to workers, %zu subscriptions at the end; one ran on two workers for %.2f s at "
              "most; workers spoke %d times of what they had lost\n", changes_, noted("subscribe") + noted("unsubscribe"),
              at_the_end.size(), static_cast<double>(both_ms) / 1000, noted("said"));
  EXPECT_GT(noted("said"), 0);
  EXPECT_LE(both_ms, 5000) << which << everything();
  auto delivered = detections();
  EXPECT_FALSE(delivered.empty());
  EXPECT_EQ(foreign_results(delivered, diaries()), std::vector<std::string>()) << everything();
  EXPECT_EQ(late_commands(), std::vector<std::string>()) << everything();
}

}  // namespace
}  // namespace weir::test
