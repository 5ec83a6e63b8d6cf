// What a manager hands to a worker: shard configurations, sources, leases, and the camera's configuration inside them.
#include "target.hpp"

#include "weir/worker/shard_config.hpp"

#include <boost/url/parse.hpp>

namespace weir::fuzz {
namespace {

constexpr std::string_view kCanary = "xyzzy-canary";

constexpr std::string_view kShard = R"({
  "runner_id": "runner-123", "shard_id": "shard-0", "max_fps": 6, "standby": true, "crash_file": "/run/weir/crash",
  "sources": [
    {"camera_uuid": "cam-1", "url": "rtsp://admin:xyzzy-canary@10.0.0.7:554/1?token=xyzzy-canary", "site_id": "site-A",
     "tenant_id": "t-01", "name": "Einfahrt \u00fc", "substream_url": "rtsps://admin:xyzzy-canary@cam.example/2",
     "enabled": true, "processing": "lease", "transport": "udp", "decode": "keyframes", "max_sessions": 2,
     "zones": [{"zone_id": 1, "name": "driveway", "kind": "include", "priority": 100, "min_score": 0.25,
                "polygon": [[100, 100], [700, 100], [700, 500], [200, 500.5]], "allow_labels": ["person", "car"]},
               {"zone_id": 2, "kind": "exclude", "polygon": [[0, 0], [10, 0], [10, 10]]}],
     "motion_gating": {"enabled": true, "downscale": 0.5, "min_area_px": 1500, "cooldown_frames": 2},
     "allow_labels": ["person", "truck"], "min_score": 0.3, "zone_test": "bottom_center", "iou_threshold": 0.1,
     "max_fps": 12.5, "frame_size": {"width": 1920, "height": 1080}, "model": {"detector": "onnx", "name": "yolox"},
     "crop": {"x": 0, "y": 10, "width": 640, "height": 480}, "updated_at": "2026-01-31T09:05:07.123Z",
     "lease": {"version": 1099511627777, "grant_version": 1099511627776, "boot_id": "b-1", "valid_until_us": 99000000,
               "adopt": {"boot_id": "b-0", "grant_version": 7}, "after": "2026-01-31T09:05:07.123Z"}},
    {"camera_uuid": "cam-2", "url": "file:///footage/vtest.avi", "site_id": "site-A", "tenant_id": "t-01"},
    {"camera_uuid": "cam-3", "snapshotUrl": "http://u:xyzzy-canary@[2001:db8::7]/snap.jpg", "snapshotInterval": 5000,
     "site_id": "site-B", "tenant_id": "t-01", "zones": []}
  ],
  "amqp": {"host": "rabbit", "ex_status": "status.topic", "ex_detect": "detections.topic"},
  "cp": {"base_url": "https://u:xyzzy-canary@cp/api", "token": "xyzzy-canary.jwt"},
  "control_token": "xyzzy-canary-control", "telemetry": {"report_interval_seconds": 5}
})";
constexpr std::string_view kCamera = R"({
  "camera_uuid": "cam-001", "rtsp_url": "rtsp://u:xyzzy-canary@camera.local/stream", "tenant_id": "tenant-1",
  "site_id": "site-1", "snapshot": {"url": "https://u:xyzzy-canary@camera.local/x.jpg", "interval_s": 0.5},
  "zones": [{"zone_id": 1, "polygon": [[100, 100], [700, 100], [700, 500]]}], "zone_test": "iou"
})";
constexpr std::string_view kLeases = R"({"items": [
  {"camera_uuid": "cam-1", "version": 1099511627777, "grant_version": 1099511627776, "boot_id": "b-1",
   "valid_until_us": 123456789, "adopt": {"boot_id": "b-0", "grant_version": 60},
   "after": "2026-01-31T09:05:07.123456Z"},
  {"camera_uuid": "cam-2", "version": 1, "grant_version": 0, "boot_id": "b-1", "valid_until_us": 0}]})";

const Words kWords = {"null",
                      "true",
                      "-1",
                      "1e999",
                      "1e-400",
                      "0.1e1",
                      "-0",
                      "\\u0000",
                      "\\ud800",
                      "\\uFFFF",
                      "\"",
                      "{",
                      "}",
                      "[",
                      "]",
                      "[[[[",
                      "\\",
                      ",",
                      ":",
                      "\xFF",
                      "\xC3\xA9",
                      "\"\"",
                      "{}",
                      "[]",
                      "\"lease\":",
                      "\"sources\":[",
                      "\"camera_uuid\":",
                      "\"rtsp_url\":\"",
                      "\"url\":\"",
                      "\"snapshot\":{",
                      "file:",
                      "rtsp://",
                      "rtsp://[::1]",
                      "http://",
                      "%40",
                      "%",
                      "@",
                      "#",
                      "?",
                      "***",
                      "***@",
                      "/",
                      "xyzzy-canary",
                      ":xyzzy-canary@",
                      "0.000001Z",
                      "9999-12-31T23:59:59.999999Z",
                      "0000-01-01T00:00:00Z"};

// Changes what a document says and leaves it a document.
class Values {
 public:
  explicit Values(Mutator& mutate) : mutate_(mutate) {}

  void change(json::value& document, json::value& other) {
    for (size_t changes = 1 + mutate_.below(3); changes > 0; --changes) {
      json::value& place = somewhere(document);
      switch (mutate_.below(5)) {
        case 0: place = odd(); break;
        case 1: place = json::value(somewhere(other)); break;
        case 2: drop_or_double(place); break;
        case 3:
          if (place.is_string()) place = mutate_.bytes(std::string(place.get_string()), kWords);
          break;
        default:
          if (place.is_object()) place.get_object()[mutate_.any(kKeys)] = json::value(somewhere(other));
          break;
      }
    }
  }

 private:
  json::value& somewhere(json::value& root) {
    json::value* place = &root;
    while (!mutate_.one_in(5)) {
      if (place->is_object() && !place->get_object().empty())
        place = &(place->get_object().begin() + static_cast<std::ptrdiff_t>(mutate_.below(place->get_object().size())))
                     ->value();
      else if (place->is_array() && !place->get_array().empty()) place = &mutate_.any(place->get_array());
      else break;
    }
    return *place;
  }
  void drop_or_double(json::value& place) {
    if (place.is_object() && !place.get_object().empty())
      place.get_object().erase(place.get_object().begin() +
                               static_cast<std::ptrdiff_t>(mutate_.below(place.get_object().size())));
    else if (place.is_array() && !place.get_array().empty())
      for (size_t copies = mutate_.below(mutate_.one_in(8) ? 300 : 4); copies > 0; --copies)
        place.get_array().push_back(json::value(place.get_array()[0]));
    else if (place.is_string()) place.get_string().append(mutate_.below(3000), 'x');
  }
  json::value odd() {
    static const json::array all = {nullptr,
                                    true,
                                    false,
                                    0,
                                    -1,
                                    1,
                                    INT64_MAX,
                                    INT64_MIN,
                                    UINT64_MAX,
                                    1ll << 53,
                                    (1ll << 53) + 1,
                                    INT32_MAX,
                                    0.5,
                                    -0.0,
                                    1e15,
                                    -1e308,
                                    1e308,
                                    1e-320,
                                    "",
                                    "0",
                                    "\n",
                                    "file:",
                                    "file:///x",
                                    "rtsp://h:99999/",
                                    "rtsp://xyzzy-canary@",
                                    "\xF0\x9F\x8E\xA5",
                                    json::array{},
                                    json::object{},
                                    json::array{nullptr},
                                    json::array{0, 0},
                                    json::object{{"", ""}}};
    return all[mutate_.below(all.size())];
  }

  static constexpr std::array<std::string_view, 12> kKeys = {
      "lease",   "url",   "rtsp_url", "snapshot", "snapshotUrl", "snapshot_url", "snapshotInterval",
      "sources", "adopt", "crop",     "zones",    "frame_size"};
  Mutator& mutate_;
};

bool names(const json::value& v, std::string_view word) {
  if (v.is_array())
    return std::ranges::any_of(v.get_array(), [&](const json::value& each) { return names(each, word); });
  if (!v.is_object()) return false;
  return std::ranges::any_of(v.get_object(), [&](const auto& member) {
    return std::string_view(member.key()).find(word) != std::string_view::npos || names(member.value(), word);
  });
}

bool holds(std::string_view text, std::string_view word) { return text.find(word) != std::string_view::npos; }

// The canary stands where a credential does, and nowhere else in the URL.
bool is_credential(const Secret& secret) {
  auto url = boost::urls::parse_uri(secret.reveal());
  if (!url) return false;
  auto has = [](auto part) { return holds(std::string_view(part.data(), part.size()), kCanary); };
  return (has(url->encoded_userinfo()) || has(url->encoded_query())) && !has(url->encoded_host()) &&
         !has(url->encoded_path()) && !has(url->encoded_fragment());
}

class ShardTarget final : public Target {
 public:
  Input draw(Mutator& mutate) override {
    std::string_view text = mutate.any(kTexts);
    auto other = *json::parse_text(mutate.any(kTexts));
    if (mutate.one_in(3)) return {mutate.bytes(std::string(text), kWords, json::to_text(other))};
    auto document = *json::parse_text(text);
    // A part of a document is one too: a source is added alone.
    if (text == kShard && mutate.one_in(2)) document = json::value(mutate.any(document.at("sources").as_array()));
    Values(mutate).change(document, other);
    std::string changed = json::to_text(document);
    return {mutate.one_in(8) ? mutate.bytes(changed, kWords) : changed};
  }

  void run(const Input& input) override {
    auto document = json::parse_text(input.at(0));
    if (!document) return silent(document.error(), {});
    if (auto shard = worker::read_shard_config(*document); judged(shard, *document))
      for (const worker::Source& source : shard->sources) comes_back(source);
    if (auto source = worker::read_source(*document, 6); judged(source, *document)) comes_back(*source);
    if (auto leases = worker::read_leases(*document); judged(leases, *document))
      for (const worker::LeaseGrant& lease : *leases) comes_back(lease);
    if (auto config = camera::read_config(*document); judged(config, *document)) comes_back(*config);
  }

  std::string finish() override { return fmt::format("{} documents accepted, {} refused", accepted_, refused_); }
  bool conclusive() const override { return accepted_ > 0 && refused_ > 0; }

 private:
  template <class T>
  bool judged(const Result<T>& read, const json::value& document) {
    ++(read ? accepted_ : refused_);
    if (!read) silent(read.error(), document);
    return static_cast<bool>(read);
  }
  // A path may be shown, also one that the sender made of a credential.
  static void silent(const Error& error, const json::value& document) {
    check(!error.message.empty() && !error.reason.empty(), "an error without words");
    if (names(document, kCanary)) return;
    std::string text = error.reason + error.message + json::to_text(error.details);
    check(!holds(text, kCanary), "an error repeats a credential: " + text);
  }
  static void comes_back(const camera::Config& config) {
    json::object written = camera::write_config(config, camera::Credentials::shown);
    auto again = camera::read_config(*json::parse_text(json::to_text(written)));
    check(static_cast<bool>(again),
          "a camera that was accepted is not, once written: " + (again ? "" : again.error().message));
    same(written, camera::write_config(*again, camera::Credentials::shown));
    hidden(config);
  }
  static void comes_back(const worker::Source& source) {
    auto written_of = [](const worker::Source& s) {
      json::object written = camera::write_config(s.config, camera::Credentials::shown);
      if (s.lease) written["lease"] = worker::write_lease(*s.lease);
      return written;
    };
    json::object written = written_of(source);
    auto again = worker::read_source(*json::parse_text(json::to_text(written)), 1);
    check(static_cast<bool>(again),
          "a source that was accepted is not, once written: " + (again ? "" : again.error().message));
    same(written, written_of(*again));
    check(source.same_dial(*again) && source.snapshots == again->snapshots, "a source dials elsewhere, once written");
    if (source.lease) {
      check(source.lease->camera == source.config.camera, "a lease of another camera");
      comes_back(*source.lease);
    }
    hidden(source.config);
  }
  static void comes_back(const worker::LeaseGrant& lease) {
    json::object written{{"items", json::array{worker::write_lease(lease)}}};
    auto again = worker::read_leases(*json::parse_text(json::to_text(written)));
    check(static_cast<bool>(again),
          "a lease that was accepted is not, once written: " + (again ? "" : again.error().message));
    const worker::LeaseGrant& back = again->at(0);
    check(back.camera == lease.camera && back.version == lease.version && back.tenure == lease.tenure &&
              back.valid_until == lease.valid_until && back.adopt == lease.adopt && back.after == lease.after,
          "a lease says something else, once written: " + json::to_text(written));
  }
  static void same(const json::object& before, const json::object& after) {
    check(json::to_text(before) == json::to_text(after),
          fmt::format("written differently the second time:\n{}\n{}", json::to_text(before), json::to_text(after)));
  }
  static void hidden(const camera::Config& config) {
    json::object shown = camera::write_config(config, camera::Credentials::redacted);
    auto look = [](const Secret& url, const json::value& text) {
      check(!is_credential(url) || !holds(text.as_string(), kCanary),
            "a redacted URL holds a credential: " + json::to_text(text));
    };
    if (!config.rtsp_url.empty()) look(config.rtsp_url, shown.at("rtsp_url"));
    if (config.substream_url) look(*config.substream_url, shown.at("substream_url"));
    if (config.snapshot) look(config.snapshot->url, shown.at("snapshot").at("url"));
  }

  static constexpr std::array<std::string_view, 4> kTexts = {kShard, kShard, kCamera, kLeases};
  std::uint64_t accepted_ = 0, refused_ = 0;
};

}  // namespace

std::unique_ptr<Target> make_shard_target() { return std::make_unique<ShardTarget>(); }

}  // namespace weir::fuzz
