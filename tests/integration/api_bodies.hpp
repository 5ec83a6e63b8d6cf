// Every route that takes a body, with a body it accepts and what each of its fields may be. Tests of bad input derive
// their requests from this table. The places (t1, s1, cam-1 ...) are those of WeirProcess::furnish; `{V}` stands for
// the version of a lease that runner-1 holds on cam-1. Plain values.
#pragma once

#include "weir/net/http.hpp"

#include <string>
#include <vector>

namespace weir::test {

enum class Kind { id, text, url, number, whole, flag, word, list, object };

struct Field {
  std::string path;  // as the answer names it: "items[0].version"
  Kind kind;
  bool required = false;
  std::string below = {}, above = {};  // numbers just outside of what is allowed
  size_t bytes_max = 255;
};

struct BodyRoute {
  net::Method method;
  std::string target;
  std::string body;
  std::vector<Field> fields;
  bool strict = false;         // refuses fields it does not know
  bool empty_allowed = false;  // no body at all is a question too
};

inline std::vector<Field> with_prefix(const std::string& prefix, std::vector<Field> fields) {
  for (Field& field : fields) field.path = prefix + field.path;
  return fields;
}
inline std::vector<Field> join(std::vector<Field> a, const std::vector<Field>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

inline const char* const kVersionAbove = "9007199254740992";

inline std::vector<Field> zone_fields() {
  return {{"zone_id", Kind::whole, true, "0", "2147483648"},
          {"name", Kind::text},
          {"kind", Kind::word},
          {"priority", Kind::whole, false, "-10001", "10001"},
          {"polygon", Kind::list, true},
          {"polygon[0]", Kind::list, true},
          {"polygon[1][0]", Kind::number, true, "-1", "32769"},
          {"allow_labels", Kind::list},
          {"allow_labels[0]", Kind::text, true, "", "", 64},
          {"min_score", Kind::number, false, "-0.1", "1.1"}};
}

inline std::vector<Field> camera_fields() {
  std::vector<Field> own = {{"camera_uuid", Kind::id},
                            {"tenant_id", Kind::id},
                            {"site_id", Kind::id},
                            {"name", Kind::text},
                            {"rtsp_url", Kind::url},
                            {"substream_url", Kind::url},
                            {"enabled", Kind::flag},
                            {"processing", Kind::word},
                            {"transport", Kind::word},
                            {"decode", Kind::word},
                            {"zones", Kind::list},
                            {"zones[0]", Kind::object, true},
                            {"motion_gating", Kind::object},
                            {"motion_gating.enabled", Kind::flag},
                            {"motion_gating.downscale", Kind::number, false, "0.04", "1.1"},
                            {"motion_gating.min_area_px", Kind::whole, false, "-1", "100000001"},
                            {"motion_gating.cooldown_frames", Kind::whole, false, "-1", "10001"},
                            {"allow_labels", Kind::list},
                            {"allow_labels[1]", Kind::text, true, "", "", 64},
                            {"min_score", Kind::number, false, "-0.1", "1.1"},
                            {"zone_test", Kind::word},
                            {"iou_threshold", Kind::number, false, "-0.1", "1.1"},
                            {"max_fps", Kind::number, false, "0", "121"},
                            {"max_sessions", Kind::whole, false, "0", "65"},
                            {"frame_size", Kind::object},
                            {"frame_size.width", Kind::whole, true, "0", "32769"},
                            {"crop", Kind::object},
                            {"crop.x", Kind::whole, true, "-1", "32769"},
                            {"crop.height", Kind::whole, true, "0", "32769"},
                            {"snapshot", Kind::object},
                            {"snapshot.url", Kind::url, true},
                            {"snapshot.interval_s", Kind::number, false, "0", "86401"},
                            {"model", Kind::object},
                            {"model.detector", Kind::word},
                            {"model.name", Kind::text}};
  return join(std::move(own), with_prefix("zones[0].", zone_fields()));
}

inline std::string camera_body(const std::string& camera) {
  return R"({"camera_uuid":")" + camera +
         R"(","tenant_id":"t1","site_id":"s1","name":"gate","rtsp_url":"rtsp://u:p@camera.example/1",
      "substream_url":"rtsp://u:p@camera.example/2","enabled":true,"processing":"lease","transport":"tcp",
      "decode":"adaptive","zones":[{"zone_id":1,"name":"z","kind":"include","priority":7,
      "polygon":[[0,0],[90,0],[90,90]],
      "allow_labels":["person"],"min_score":0.5}],"motion_gating":{"enabled":true,"downscale":0.5,"min_area_px":100,
      "cooldown_frames":2},"allow_labels":["person","car"],"min_score":0.3,"zone_test":"iou","iou_threshold":0.2,
      "max_fps":6,"max_sessions":2,"frame_size":{"width":640,"height":480},"crop":{"x":0,"y":0,"width":100,"height":90},
      "snapshot":{"url":"http://u:p@camera.example/s.jpg","interval_s":2},"model":{"detector":"onnx","name":"m"}})";
}

inline std::vector<BodyRoute> lease_body_routes() {
  const std::vector<Field> head = {{"runner_id", Kind::id, true}, {"boot_id", Kind::id}};
  const std::vector<Field> batch_head = {{"runner_id", Kind::id, true}, {"boot_id", Kind::id, true}};
  const Field camera{"camera_uuid", Kind::id, true}, version{"version", Kind::whole, false, "-1", kVersionAbove};
  const Field ttl{"ttl_seconds", Kind::number, true, "2.9", "61"};
  const Field items{"items", Kind::list, true}, item{"items[0]", Kind::object, true};
  const Field item_camera{"items[0].camera_uuid", Kind::id, true};
  const Field item_version{"items[0].version", Kind::whole, true, "-1", kVersionAbove};
  const Field item_key{"items[0].key", Kind::text, true, "", "", 128};
  const net::Method post = net::Method::post;
  return {
      {post, "/v1/leases/camera/acquire",
       R"({"runner_id":"runner-1","boot_id":"b1","camera_uuid":"cam-1","ttl_seconds":60,"shard_id":"s-1"})",
       join(head, {camera, ttl, {"shard_id", Kind::text}})},
      {post, "/v1/leases/camera/renew",
       R"({"runner_id":"runner-1","boot_id":"b1","camera_uuid":"cam-1","ttl_seconds":60,"version":{V}})",
       join(head, {camera, ttl, version})},
      {post, "/v1/leases/camera/release",
       R"({"runner_id":"runner-1","boot_id":"b1","camera_uuid":"cam-1","version":{V},"avoid":false})",
       join(head, {camera, version, {"avoid", Kind::flag}})},
      {post, "/v1/leases/camera/acquire-batch",
       R"({"runner_id":"runner-1","boot_id":"b1","ttl_seconds":60,"items":[{"camera_uuid":"cam-2","key":"k1"}]})",
       join(batch_head, {ttl, items, item, item_camera, item_key})},
      {post, "/v1/leases/camera/renew-batch",
       R"({"runner_id":"runner-1","boot_id":"b1","ttl_seconds":60,
           "items":[{"camera_uuid":"cam-1","version":{V},"rotate":true,"key":"k2"}]})",
       join(batch_head, {ttl, items, item, item_camera, item_version, item_key, {"items[0].rotate", Kind::flag}})},
      {post, "/v1/leases/camera/release-batch",
       R"({"runner_id":"runner-1","boot_id":"b1","items":[{"camera_uuid":"cam-1","version":{V},"avoid":true}]})",
       join(batch_head, {items, item, item_camera, item_version, {"items[0].avoid", Kind::flag}})},
  };
}

inline std::vector<BodyRoute> place_body_routes() {
  const net::Method post = net::Method::post, put = net::Method::put, patch = net::Method::patch;
  const std::string nested = "/v1/tenants/t1/sites/s1/cameras", zones = "/v1/tenants/t1/sites/s1/zones";
  const std::string zone = R"({"zone_id":1,"name":"z","kind":"exclude","priority":3,"polygon":[[0,0],[9,0],[9,9]],
                              "allow_labels":["person"],"min_score":0.4,"camera_uuid":"cam-1"})";
  std::string new_zone = zone;
  new_zone.replace(new_zone.find("1"), 1, "77");
  const std::vector<Field> of_zone = join(zone_fields(), {{"camera_uuid", Kind::id}});
  std::vector<Field> zone_in_path = of_zone;
  zone_in_path[0].required = false;
  return {
      {post,
       "/v1/tenants",
       R"({"tenant_id":"t-new","name":"New"})",
       {{"tenant_id", Kind::id, true}, {"name", Kind::text}},
       true},
      {post,
       "/v1/api-keys",
       R"({"role":"viewer","sub":"somebody","name":"New","tenant_id":"t1"})",
       {{"role", Kind::word, true}, {"sub", Kind::id, true}, {"name", Kind::text}, {"tenant_id", Kind::id}},
       true},
      {post,
       "/v1/sites",
       R"({"site_id":"s-new","tenant_id":"t1","name":"New","capacity":5,"refill_rate":60})",
       {{"site_id", Kind::id, true},
        {"tenant_id", Kind::id, true},
        {"name", Kind::text},
        {"capacity", Kind::number, false, "0", "10001"},
        {"refill_rate", Kind::number, false, "-1", "100001"}},
       true},
      {put,
       "/v1/sites/s1/budget",
       R"({"capacity":20,"refill_rate":120,"tokens":5})",
       {{"capacity", Kind::number, true, "0", "10001"},
        {"refill_rate", Kind::number, true, "-1", "100001"},
        {"tokens", Kind::number, false, "-1", "21"}},
       true},
      {post,
       "/v1/sites/s1/budget/consume",
       R"({"camera_uuid":"cam-1","grant_version":{V}})",
       {{"camera_uuid", Kind::id}, {"grant_version", Kind::whole, false, "0", kVersionAbove}},
       false,
       true},
      {post, "/v1/cameras", camera_body("cam-new"), camera_fields(), true},
      {put, "/v1/cameras/cam-1", camera_body("cam-1"), camera_fields(), true},
      {patch, "/v1/cameras/cam-1", camera_body("cam-1"), camera_fields(), true},
      {post, nested, camera_body("cam-new2"), camera_fields(), true},
      {put, nested + "/cam-1", camera_body("cam-1"), camera_fields(), true},
      {patch, nested + "/cam-1", camera_body("cam-1"), camera_fields(), true},
      {post, "/v1/cameras/cam-1/zones", new_zone, of_zone, true},
      {put, "/v1/cameras/cam-1/zones/1", zone, zone_in_path, true},
      {post, zones, new_zone, of_zone, true},
      {put, zones + "/1", zone, zone_in_path, true},
  };
}

inline std::vector<BodyRoute> runner_body_routes() {
  const net::Method post = net::Method::post, put = net::Method::put, patch = net::Method::patch;
  const std::vector<Field> beat = {{"streams_owned", Kind::whole, false, "-1", "100001"},
                                   {"shards", Kind::whole, false, "-1", "100001"},
                                   {"cpu_pct", Kind::number, false, "-1", "1000001"},
                                   {"mem_mb", Kind::number, false, "-1", "1000000001"},
                                   {"ts", Kind::text, false, "", "", 64}};
  const std::string numbers = R"("streams_owned":2,"shards":1,"cpu_pct":12.5,"mem_mb":99,"ts":"2024-01-01T00:00:00Z"})";
  return {
      {post,
       "/v1/runners/register",
       R"({"runner_id":"runner-1","tenant_id":"t1","site_id":"s1","boot_id":"b1","deployment_group":"g",
           "deployment_version":"v","host":"h","port":8080,"metrics_port":9107,"capacity":40,"capacity_streams":41,
           "capabilities":["gpu"]})",
       {{"runner_id", Kind::id, true},
        {"tenant_id", Kind::id},
        {"site_id", Kind::id},
        {"boot_id", Kind::id},
        {"deployment_group", Kind::text},
        {"deployment_version", Kind::text},
        {"host", Kind::text},
        {"port", Kind::whole, false, "-1", "65536"},
        {"metrics_port", Kind::whole, false, "-1", "65536"},
        {"capacity", Kind::whole, false, "-1", "100001"},
        {"capacity_streams", Kind::whole, false, "-1", "100001"},
        {"capabilities", Kind::list},
        {"capabilities[0]", Kind::text, true, "", "", 64}}},
      {post, "/v1/runners/heartbeat", R"({"runner_id":"runner-1",)" + numbers,
       join({{"runner_id", Kind::id, true}}, beat)},
      {put, "/v1/runners/runner-1/heartbeat", "{" + numbers, beat, false, true},
      {post, "/v1/runners/runner-1/heartbeat", "{" + numbers, beat, false, true},
      {patch,
       "/v1/runners/runner-1",
       R"({"cordoned":false,"drain_mode":"none","capacity_streams":40})",
       {{"cordoned", Kind::flag}, {"drain_mode", Kind::word}, {"capacity_streams", Kind::whole, false, "0", "100001"}},
       true},
      {post,
       "/v1/runners/runner-1/release-all",
       R"({"boot_id":"b9","will":"no such will"})",
       {{"boot_id", Kind::id, true}}},
  };
}

inline std::vector<BodyRoute> stream_body_routes() {
  const net::Method post = net::Method::post, put = net::Method::put;
  const std::vector<Field> owner = {{"runner_id", Kind::id, true}, {"boot_id", Kind::id, true}};
  const std::vector<Field> acquire =
      join(owner, {{"tenant_id", Kind::id, true},
                   {"site_id", Kind::id, true},
                   {"ttl_seconds", Kind::number, true, "2.9", "61"}});
  return {
      {post, "/v1/leases/stream/acquire-batch",
       R"({"runner_id":"runner-1","boot_id":"b1","ttl_seconds":60,"tenant_id":"t1","site_id":"s1",
           "items":[{"stream_id":"live-2","key":"k1"}]})",
       join(acquire, {{"items", Kind::list, true}, {"items[0]", Kind::object, true}})},
      {put,
       "/v1/streams/live",
       R"({"forward":true,"destination":"rtmp://host.example/app/key","mode":"annotate","max_fps":5,
           "preferences":{"lang":"es"},"tenant_id":"t1","site_id":"s1"})",
       {{"forward", Kind::flag},
        {"mode", Kind::word},
        {"max_fps", Kind::number, false, "0", "121"},
        {"preferences", Kind::object},
        {"tenant_id", Kind::id},
        {"site_id", Kind::id}},
       true},
      {post, "/v1/streams/live/stop", "{}", {}, false, true},
      {post, "/v1/streams/live/restart", "{}", {}, false, true},
      {post, "/v1/streams/live/forward", R"({"on":true})", {{"on", Kind::flag}}},
      {post, "/v1/streams/live/told",
       R"({"runner_id":"runner-1","boot_id":"b1","version":7,"memory":{"run_id":"r1"},"view":{"state":"running"}})",
       join(owner, {{"version", Kind::whole, true, "0", kVersionAbove},
                    {"memory", Kind::object, true},
                    {"view", Kind::object, true}})},
  };
}

inline std::vector<BodyRoute> display_body_routes() {
  const net::Method post = net::Method::post, put = net::Method::put;
  const Field model_id{"model_id", Kind::whole, true, "0", "2147483648"};
  const std::vector<Field> display = {{"display_id", Kind::id},   {"tenant_id", Kind::id},   {"name", Kind::text},
                                      {"camera_uuid", Kind::id}, {"playlist_id", Kind::id}};
  const std::string of_display = R"("tenant_id":"t1","name":"n","camera_uuid":"cam-1","playlist_id":"lunch"})";
  const std::vector<Field> playlist = {
      {"playlist_id", Kind::id}, {"tenant_id", Kind::id}, {"name", Kind::text}, model_id};
  const std::string of_playlist = R"({"playlist_id":"lunch","tenant_id":"t1","name":"n","model_id":7})";
  const std::vector<Field> model = {{"model_id", Kind::whole, false, "0", "2147483648"},
                                    {"tenant_id", Kind::id},
                                    {"name", Kind::text, true},
                                    {"metadata", Kind::object}};
  return {
      {post, "/v1/displays", R"({"display_id":"d-new",)" + of_display, display, true},
      {put, "/v1/displays/d-1", R"({"display_id":"d-1",)" + of_display, display, true},
      {post, "/v1/playlists", of_playlist, playlist, true},
      {put, "/v1/playlists/lunch", of_playlist, playlist, true},
      {post, "/v1/models", R"({"model_id":7,"tenant_id":"t1","name":"n","metadata":{"labels":["car"]}})", model, true},
      {put, "/v1/models/7", R"({"model_id":7,"tenant_id":"t1","name":"n","metadata":{}})", model, true},
      {post,
       "/v1/subscriptions",
       R"({"subscription_identifier":"kiosk;cam-1","camera_uuid":"cam-1","model_id":7,"snapshot_interval_ms":500,
           "snapshot_url":"http://u:p@camera.example/s.jpg","crop_x1":1,"crop_y1":2,"crop_x2":30,"crop_y2":40})",
       {{"subscription_identifier", Kind::id, true},
        {"camera_uuid", Kind::id},
        model_id,
        {"snapshot_url", Kind::url},
        {"snapshot_interval_ms", Kind::whole, false, "99", "86400001"},
        {"crop_x1", Kind::whole, false, "-1", "32769"},
        {"crop_y2", Kind::whole, false, "-1", "32769"}},
       true},
      {post, "/v1/leases/cluster/acquire-batch",
       R"({"runner_id":"runner-1","boot_id":"b1","ttl_seconds":60,"tenant_id":"t1",
           "items":[{"cluster":"default","key":"k1"}]})",
       {{"runner_id", Kind::id, true},
        {"boot_id", Kind::id, true},
        {"tenant_id", Kind::id},
        {"ttl_seconds", Kind::number, true, "2.9", "61"},
        {"items", Kind::list, true},
        {"items[0].cluster", Kind::id, true}}},
  };
}

inline std::vector<BodyRoute> body_routes() {
  std::vector<BodyRoute> all = lease_body_routes();
  for (auto more : {place_body_routes(), runner_body_routes(), stream_body_routes(), display_body_routes()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace weir::test
