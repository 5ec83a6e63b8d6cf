#include "shard.hpp"

#include "stall.hpp"
#include "where.hpp"

#include "weir/base/clock.hpp"
#include "weir/base/json.hpp"
#include "weir/base/random.hpp"
#include "weir/lease/holder.hpp"
#include "weir/net/token.hpp"

#include <gtest/gtest.h>


namespace weir::test {

namespace {

// Encoded loops are the same in every test: kept between them, because encoding takes seconds.
std::string loop_cache() { return std::string(WEIR_SOURCE_DIR) + "/build/camsim"; }

boost::json::object camsim_config(boost::json::array recorders) {
  return {{"footage", part("footage/vtest.avi")}, {"cache", loop_cache()}, {"recorders", std::move(recorders)}};
}

boost::json::array one_recorder(const std::vector<std::string>& profiles) {
  boost::json::array cameras;
  for (size_t i = 0; i < profiles.size(); ++i)
    cameras.push_back({{"name", fmt::format("cam-{}", i + 1)}, {"profile", profiles[i]}});
  return {{{"name", "recorder-1"}, {"cameras", std::move(cameras)}}};
}

std::vector<std::string> worker_words(const TempDir& folder, const std::string& name,
                                      const std::vector<std::string>& more) {
  std::vector<std::string> words{WEIR_WORKER,     "shard",          "--config",      "/dev/fd/3",
                                 "--lifeline-fd", "0",              "--state-dir",   folder.path() + "/" + name,
                                 "--models-dir",  part("models"),   "--library-dir", part("lib"),
                                 "--log-level",   "debug",          "--prom-worker-port", "0"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

boost::json::object with_token(boost::json::object config, const Secret& token) {
  config["control_token"] = token.reveal();
  return config;
}

}  // namespace

// ---- cameras ----

Camsim::Camsim(const TempDir& folder, boost::json::array recorders)
    : child_(folder.path() + "/camsim.log", {WEIR_CAMSIM, "--config", "/dev/fd/3", "--exit-with-stdin"},
             camsim_config(std::move(recorders))) {}

Camsim::Camsim(const TempDir& folder, const std::vector<std::string>& profiles)
    : Camsim(folder, one_recorder(profiles)) {}

boost::json::object Camsim::about(const std::string& camera) const {
  Reply reply = child_.get("/v1/cameras");
  const boost::json::value& list = reply.body.is_object() ? reply.body.at("cameras") : reply.body;
  if (list.is_array())
    for (const auto& each : list.get_array())
      if (each.at("name").as_string() == camera) return each.get_object();
  ADD_FAILURE() << "no camera " << camera << " in " << reply.text;
  return {};
}

std::string Camsim::url(const std::string& camera) const { return std::string(about(camera).at("url").as_string()); }

void Camsim::fault(const std::string& camera, boost::json::object fault) const {
  Reply reply = child_.post("/v1/cameras/" + camera + "/fault", fault);
  ASSERT_EQ(reply.status, 200) << reply.text;
}

void Camsim::recorder_fault(const std::string& recorder, boost::json::object fault) const {
  Reply reply = child_.post("/v1/recorders/" + recorder + "/fault", fault);
  ASSERT_EQ(reply.status, 200) << reply.text;
}

// ---- worker ----

WorkerProcess::WorkerProcess(const TempDir& folder, const std::string& name, boost::json::object config,
                             std::vector<std::string> more)
    : token_(random_hex(16)),
      child_(folder.path() + "/" + name + ".log", worker_words(folder, name, more),
             with_token(std::move(config), token_)) {}

boost::json::object WorkerProcess::state() const {
  Reply reply = get("/state");
  return reply.body.is_object() ? reply.body.get_object() : boost::json::object{};
}

boost::json::object WorkerProcess::camera(const std::string& id) const {
  boost::json::object all = state();
  if (all.contains("cameras"))
    for (const auto& each : all["cameras"].as_array())
      if (each.at("camera_uuid").as_string() == id) return each.get_object();
  return {};
}

std::string WorkerProcess::state_of(const std::string& id) const {
  boost::json::object found = camera(id);
  return found.empty() ? "" : std::string(found["state"].as_string());
}

double WorkerProcess::number(const std::string& id, std::string_view field) const {
  boost::json::object found = camera(id);
  const boost::json::value* value = found.if_contains(field);
  return value != nullptr && value->is_number() ? value->to_number<double>() : -1;
}

double WorkerProcess::metric(const std::string& sample) const {
  std::string text = "\n" + metrics();
  size_t at = text.find("\n" + sample + " ");
  return at == std::string::npos ? -1 : std::strtod(text.c_str() + at + sample.size() + 2, nullptr);
}

// ---- manager ----

Manager::Manager(WeirProcess& plane, std::string runner)
    : plane_(plane), runner_(std::move(runner)), boot_(random_hex(8)) {
  Reply registered =
      plane_.post("/v1/runners/register", {{"runner_id", runner_}, {"boot_id", boot_}, {"capacity", 100}});
  EXPECT_LT(registered.status, 300) << registered.text;
}

bool Manager::ask(const std::string& what, boost::json::object item, const std::string& camera, double ttl_s) {
  item["camera_uuid"] = camera;
  Instant asked = boot_now();
  Reply reply = plane_.call(net::Method::post, "/v1/leases/camera/" + what,
                            {{"runner_id", runner_}, {"boot_id", boot_}, {"ttl_seconds", ttl_s},
                             {"items", boost::json::array{item}}},
                            plane_.token("runner", runner_));
  EXPECT_EQ(reply.status, 200) << reply.text;
  if (reply.status != 200) return false;
  const auto& answer = reply.body.at("items").at(0).as_object();
  std::string_view result(answer.at("result").as_string());
  if (result != "granted" && result != "renewed" && result != "rotated") return false;
  Held& held = held_[camera];
  held.version = answer.at("version").as_int64();
  if (const auto* grant = answer.if_contains("grant_version")) held.grant = grant->as_int64();
  if (result == "granted") {
    held.grant = held.version;
    held.previous = answer.contains("previous") ? answer.at("previous") : boost::json::value(nullptr);
  }
  Duration ttl = from_seconds(ttl_s);
  held.valid_until = asked + ttl - lease::safety_margin(ttl);
  return true;
}

bool Manager::acquire(const std::string& camera, double ttl_s) {
  return ask("acquire-batch", {{"key", fmt::format("{}-{}", boot_, ++keys_)}}, camera, ttl_s);
}

bool Manager::renew(const std::string& camera, double ttl_s, bool rotate) {
  boost::json::object item{{"version", held_.at(camera).version}};
  if (rotate) {
    item["rotate"] = true;
    item["key"] = fmt::format("{}-{}", boot_, ++keys_);
  }
  return ask("renew-batch", std::move(item), camera, ttl_s);
}

void Manager::release(const std::string& camera) {
  ask("release-batch", {{"version", held_.at(camera).version}}, camera, 6);
  held_.erase(camera);
}

boost::json::object Manager::lease(const std::string& camera) const {
  const Held& held = held_.at(camera);
  boost::json::object out{{"camera_uuid", camera},
                          {"version", held.version},
                          {"grant_version", held.grant},
                          {"boot_id", boot_},
                          {"valid_until_us", held.valid_until.time_since_epoch().count()}};
  if (!held.previous.is_null()) out["adopt"] = held.previous;
  return out;
}

boost::json::object Manager::source(const std::string& camera, const std::string& url, boost::json::object more) const {
  boost::json::object out{{"camera_uuid", camera}, {"tenant_id", "t1"}, {"site_id", "s1"}, {"url", url}};
  for (auto& [name, value] : more) out[name] = value;
  if (held_.contains(camera)) {
    out["lease"] = lease(camera);
    out["lease"].as_object().erase("camera_uuid");
  }
  return out;
}

Secret Manager::worker_token() const {
  auto key = net::TokenKey::load_or_create(plane_.folder() + "/auth.secret");
  WEIR_ASSERT(key);
  net::Claims claims{.sub = runner_, .role = net::Role::worker, .boot = BootId::trusted(boot_),
                     .expires = wall_now() + 60min};
  return key->sign(claims);
}

boost::json::object Manager::config(boost::json::array sources) const {
  return {{"runner_id", runner_},
          {"shard_id", "shard-0"},
          {"cp", {{"base_url", plane_.url()}, {"token", worker_token().reveal()}}},
          {"sources", std::move(sources)}};
}

// ---- events ----

std::vector<boost::json::object> events_of(const WeirProcess& plane, const std::string& pattern) {
  std::vector<boost::json::object> events;
  std::string after = "0";
  for (;;) {
    Reply page = plane.get(fmt::format("/v1/events?follow=false&limit=1000&after={}&pattern={}", after, pattern));
    EXPECT_EQ(page.status, 200) << page.text;
    if (page.status != 200) return events;
    const auto& items = page.body.at("items").as_array();
    for (const auto& each : items) events.push_back(each.get_object());
    std::string next = page.field("next_cursor");
    if (items.empty() || next.empty() || next == "null" || next == after) return events;
    after = next;
  }
}

}  // namespace weir::test
