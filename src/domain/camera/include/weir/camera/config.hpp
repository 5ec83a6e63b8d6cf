// Config: everything a person can say about one camera, validated completely.
//
// A field that is left out has its default. A wrong value is reported with its path and what is allowed; the value
// itself is never repeated, because a URL may hold a password. The JSON form is the API's and the store's. Plain
// values and pure functions; any thread.
#pragma once

#include "weir/base/ids.hpp"
#include "weir/base/json.hpp"
#include "weir/base/secret.hpp"

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace weir::camera {

enum class ZoneKind { include, exclude };
enum class ZoneTest { center, bottom_center, iou };
enum class Processing { lease, cluster };
enum class Decode { adaptive, full, keyframes };
enum class Transport { tcp, udp };

inline constexpr std::array<json::EnumName<ZoneKind>, 2> kZoneKindNames = {
    {{ZoneKind::include, "include"}, {ZoneKind::exclude, "exclude"}}};
inline constexpr std::array<json::EnumName<ZoneTest>, 3> kZoneTestNames = {
    {{ZoneTest::center, "center"}, {ZoneTest::bottom_center, "bottom_center"}, {ZoneTest::iou, "iou"}}};
inline constexpr std::array<json::EnumName<Processing>, 2> kProcessingNames = {
    {{Processing::lease, "lease"}, {Processing::cluster, "cluster"}}};
inline constexpr std::array<json::EnumName<Decode>, 3> kDecodeNames = {
    {{Decode::adaptive, "adaptive"}, {Decode::full, "full"}, {Decode::keyframes, "keyframes"}}};
inline constexpr std::array<json::EnumName<Transport>, 2> kTransportNames = {
    {{Transport::tcp, "tcp"}, {Transport::udp, "udp"}}};
constexpr auto& enum_names(ZoneKind) { return kZoneKindNames; }
constexpr auto& enum_names(ZoneTest) { return kZoneTestNames; }
constexpr auto& enum_names(Processing) { return kProcessingNames; }
constexpr auto& enum_names(Decode) { return kDecodeNames; }
constexpr auto& enum_names(Transport) { return kTransportNames; }

using Point = std::array<double, 2>;  // pixels of the configured frame size

struct Zone {
  std::int64_t zone_id = 0;
  std::string name;
  ZoneKind kind = ZoneKind::include;
  int priority = 100;
  std::vector<Point> polygon;
  std::optional<std::vector<std::string>> allow_labels = {};  // absent: all that the camera allows
  std::optional<double> min_score = {};
};

struct MotionGating {
  bool enabled = true;
  double downscale = 0.5;
  int min_area_px = 1500;
  int cooldown_frames = 2;
};

struct Crop {
  int x = 0, y = 0, width = 0, height = 0;
};

struct Snapshot {
  Secret url;               // http or https; may hold credentials
  double interval_s = 1.0;
};

struct Model {
  std::string detector = "tflite";  // tflite, onnx, hog, none
  std::string name;                 // "" the default of the detector
};

struct FrameSize {
  int width = 0, height = 0;
};

struct Config {
  CameraId camera;
  TenantId tenant;
  SiteId site;
  std::string name;
  Secret rtsp_url;
  std::optional<Secret> substream_url = {};
  bool enabled = true;
  Processing processing = Processing::lease;
  ClusterId cluster = ClusterId::trusted("default");  // which one processes it, where one does
  Transport transport = Transport::tcp;
  Decode decode = Decode::adaptive;
  std::vector<Zone> zones;
  MotionGating motion_gating;
  std::optional<std::vector<std::string>> allow_labels = {};
  double min_score = 0.30;
  ZoneTest zone_test = ZoneTest::center;
  double iou_threshold = 0.10;
  double max_fps = 6;
  std::optional<int> max_sessions = {};
  std::optional<FrameSize> frame_size = {};
  std::optional<Crop> crop = {};
  std::optional<Snapshot> snapshot = {};
  Model model;

  bool assignable() const { return enabled && processing == Processing::lease; }
  // The cluster that processes the camera now; empty where none does.
  ClusterId served_by() const { return enabled && processing == Processing::cluster ? cluster : ClusterId(); }
};

enum class Credentials { shown, redacted };

Result<Zone> read_zone(const json::value& v);
json::object write_zone(const Zone& zone);
// Reads and validates completely. Unknown fields are rejected, unless `unknown` allows them because the writer may be
// a newer version of Weir.
Result<Config> read_config(const json::value& v, json::Unknown unknown = json::Unknown::reject);
json::object write_config(const Config& config, Credentials credentials);
// What only several fields together can get wrong: zone ids that repeat, zones or a crop outside the frame, too many
// zones. `read_config` checks these too; this is for a configuration changed as a value.
std::vector<json::Problem> relation_problems(const Config& config);

// What a particular installation allows; checked besides the form.
struct Rules {
  bool loopback = false;  // cameras on this machine itself: development and demos
  friend bool operator==(const Rules&, const Rules&) = default;
};
// Problems with literal addresses, in whatever way they are written: link-local, multicast, broadcast and unspecified
// ones are always refused, loopback unless allowed. A host name is judged when it is resolved, not here.
std::vector<json::Problem> rule_problems(const Config& config, const Rules& rules);

// The same for an address that belongs to a camera and stands outside of its configuration: what is wrong with its
// form, and with its host; "" where nothing is. And how it is shown to those who must not see credentials.
std::string snapshot_url_problem(const Secret& url);
std::string host_problem(const Secret& url, const Rules& rules);
std::string shown_url(const Secret& url);

}  // namespace weir::camera
