#include "history.hpp"

#include "weir/base/json.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace weir::test {

namespace {

std::string text_in(const boost::json::object& o, std::string_view name) {
  const auto* found = o.if_contains(name);
  return found != nullptr && found->is_string() ? std::string(found->get_string()) : std::string();
}
std::int64_t number_in(const boost::json::object& o, std::string_view name, std::int64_t otherwise) {
  const auto* found = o.if_contains(name);
  return found != nullptr && found->is_int64() ? found->get_int64() : otherwise;
}

Accepted read_event(const boost::json::object& item) {
  const boost::json::object& payload = item.at("payload").as_object();
  Accepted out{.camera = text_in(payload, "camera_uuid"),
               .runner = text_in(payload, "runner_id"),
               .state = text_in(payload, "state"),
               .event_id = text_in(payload, "event_id"),
               .version = number_in(payload, "lease_version", 0),
               .captured = from_iso(text_in(payload, "last_frame_ts"))};
  std::string key = text_in(item, "routing_key");
  size_t dot = key.find('.');
  out.kind = key.starts_with("detections.") ? "detections" : key.substr(0, key.find('.', dot + 1));
  out.ts = from_iso(text_in(payload, "ts")).value_or(WallTime{});
  out.stored = from_iso(text_in(item, "stored_at")).value_or(WallTime{});
  out.frame = number_in(payload, "frame_id", -1);
  out.summary = payload.contains("last_frame_age_s");
  if (out.kind == "detections") out.captured = out.ts;
  return out;
}

}  // namespace

void History::read(const WeirProcess& plane) {
  for (;;) {
    Reply page = plane.get(fmt::format("/v1/events?follow=false&limit=1000&after={}", after_));
    if (page.status != 200) return;
    for (const auto& each : page.body.at("items").as_array()) events_.push_back(read_event(each.as_object()));
    std::string next = page.field("next_cursor");
    bool end = page.body.at("items").as_array().empty() || next.empty() || next == "null" || next == after_;
    if (end) return;
    after_ = next;
  }
}

void History::expect_one_voice() const {
  std::map<std::string, std::int64_t> version;
  std::map<std::string, WallTime> newest;   // capture, of all versions before the present one
  std::map<std::string, WallTime> present;  // of the present one
  std::set<std::string> ids;
  for (const Accepted& event : events_) {
    if (event.version == 0 || event.camera.empty()) continue;
    EXPECT_TRUE(ids.insert(event.event_id).second) << "twice: " << event.event_id;
    std::int64_t& before = version[event.camera];
    EXPECT_GE(event.version, before) << "a stale event was accepted: " << event.kind << " of " << event.camera;
    if (event.version > before) newest[event.camera] = std::max(newest[event.camera], present[event.camera]);
    before = event.version;
    // A status names the newest picture that its worker had decoded. That worker may have fallen silent before it
    // looked at the picture, and then its successor reports what is in it.
    if (event.kind != "detections" || !event.captured) continue;
    EXPECT_GT(*event.captured, newest[event.camera])
        << event.kind << " of " << event.camera << " under " << event.version << " by " << event.runner
        << " speaks of a time that an earlier version spoke of: " << to_iso_exact(*event.captured) << " and "
        << to_iso_exact(newest[event.camera]);
    present[event.camera] = std::max(present[event.camera], *event.captured);
  }
}

std::optional<WallTime> History::streaming_above(const std::string& camera, std::int64_t version) const {
  for (const Accepted& event : events_)
    if (event.kind == "stream.status" && event.camera == camera && event.version > version &&
        event.state == "STREAMING")
      return event.stored;
  return std::nullopt;
}

std::vector<WallTime> History::captures(const std::string& camera) const {
  std::set<WallTime> seen;
  for (const Accepted& event : events_)
    if (event.camera == camera && event.captured) seen.insert(*event.captured);
  return {seen.begin(), seen.end()};
}

size_t History::count(const std::string& kind, const std::string& camera) const {
  return static_cast<size_t>(std::ranges::count_if(
      events_, [&](const Accepted& e) { return e.kind == kind && (camera.empty() || e.camera == camera); }));
}

}  // namespace weir::test
