#include "weir/camera/config.hpp"

#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <set>

namespace weir::camera {

namespace {

constexpr size_t kZonesMax = 64;
constexpr size_t kPointsMax = 256;
constexpr size_t kLabelsMax = 100;
constexpr size_t kLabelBytesMax = 64;
constexpr size_t kNameBytesMax = 255;
constexpr size_t kUrlBytesMax = 2048;
constexpr int kPixelsMax = 32768;
constexpr std::int64_t kZoneIdMax = 2147483647;
constexpr std::array<std::string_view, 4> kDetectors = {"tflite", "onnx", "hog", "none"};

bool has_control(std::string_view text) {
  return std::ranges::any_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7F; });
}

std::string name_problem(const std::string& name) {
  if (name.size() > kNameBytesMax) return fmt::format("must have at most {} bytes", kNameBytesMax);
  return has_control(name) ? "must not contain control characters" : "";
}

// A model's name may become part of a file's name on a worker.
std::string model_name_problem(const std::string& name) {
  if (auto problem = name_problem(name); !problem.empty()) return problem;
  if (name.starts_with('.') || name.find_first_of("/\\") != std::string::npos)
    return "must not start with a dot or contain a slash or backslash";
  return "";
}

std::string detector_problem(const std::string& detector) {
  if (std::ranges::find(kDetectors, detector) != kDetectors.end()) return "";
  return fmt::format("must be one of: {}", fmt::join(kDetectors, ", "));
}

// Every point lies on the line through the first point and the first one that differs from it.
bool on_one_line(const std::vector<Point>& points) {
  auto other = std::ranges::find_if(points, [&](const Point& p) { return p != points.front(); });
  if (other == points.end()) return true;
  auto [x0, y0] = points.front();
  double dx = (*other)[0] - x0, dy = (*other)[1] - y0;
  return std::ranges::all_of(points,
                             [&](const Point& p) { return std::abs(dx * (p[1] - y0) - dy * (p[0] - x0)) < 1e-9; });
}

std::string polygon_problem(const std::vector<Point>& polygon) {
  if (polygon.size() > kPointsMax) return fmt::format("must have at most {} points", kPointsMax);
  for (const Point& point : polygon)
    if (point[0] < 0 || point[1] < 0 || point[0] > kPixelsMax || point[1] > kPixelsMax)
      return fmt::format("must have coordinates between 0 and {}", kPixelsMax);
  if (std::set<Point>(polygon.begin(), polygon.end()).size() < 3) return "must have at least three distinct points";
  if (on_one_line(polygon)) return "must enclose an area: its points lie on one line";
  return "";
}

// ---- addresses ----

// The parser's own number wraps at 65536.
bool valid_port(std::string_view digits) {
  int port = 0;
  auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  return failed == std::errc{} && end == digits.data() + digits.size() && port >= 1 && port <= 65535;
}

std::string url_problem(const Secret& secret, std::initializer_list<std::string_view> schemes) {
  const std::string& text = secret.reveal();
  if (text.empty() || text.size() > kUrlBytesMax) return fmt::format("must have 1 to {} bytes", kUrlBytesMax);
  if (has_control(text) || text.find(' ') != std::string::npos)
    return "must not contain whitespace or control characters";
  auto parsed = boost::urls::parse_uri(text);
  if (!parsed) return "must be a URL; special characters in a user name or password are escaped (%40 for @)";
  const boost::urls::url_view& url = *parsed;
  std::string scheme(url.scheme());
  std::ranges::transform(scheme, scheme.begin(), [](unsigned char c) { return std::tolower(c); });
  if (std::ranges::find(schemes, scheme) == schemes.end())
    return fmt::format("must start with one of: {}", fmt::join(schemes, "://, ")) + "://";
  // The parser takes "host:5x" for port 5 with a path "x", and "10.0.0.1.example" for an address with a path
  // ".example"; a decoder takes them for something else.
  std::string_view path(url.encoded_path().data(), url.encoded_path().size());
  if (!path.empty() && !path.starts_with('/'))
    return "must have a host or address, then at most a port between 1 and 65535, then a path that starts with a slash";
  if (!url.has_authority() || url.encoded_host().empty()) return "must name a host";
  // Decoders disagree on whether an escaped host is decoded, so it could mean two machines.
  if (url.encoded_host().find('%') != std::string_view::npos) return "must name a host without escapes";
  if (url.host_type() == boost::urls::host_type::ipvfuture) return "must name a host or an IPv4 or IPv6 address";
  if (url.has_port() && !valid_port(std::string_view(url.port()))) return "must have a port between 1 and 65535";
  if (url.encoded_userinfo() == "***") return "holds a redacted credential: give the real one";
  return "";
}
std::string stream_url_problem(const Secret& url) { return url_problem(url, {"rtsp", "rtsps"}); }

std::string ipv4_problem(std::uint32_t address, const Rules& rules) {
  std::uint32_t first = address >> 24;
  if (first == 0) return "must not be an unspecified address";
  if ((address >> 16) == 0xA9FE) return "must not be a link-local address";
  if (first >= 224 && first <= 239) return "must not be a multicast address";
  if (address == 0xFFFFFFFF) return "must not be a broadcast address";
  if (first == 127 && !rules.loopback) return "must not be a loopback address";
  return "";
}

std::uint32_t ipv4_at(const std::array<unsigned char, 16>& bytes, size_t at) {
  return std::uint32_t{bytes[at]} << 24 | std::uint32_t{bytes[at + 1]} << 16 | std::uint32_t{bytes[at + 2]} << 8 |
         bytes[at + 3];
}

std::string ipv6_problem(const std::array<unsigned char, 16>& bytes, const Rules& rules) {
  auto zero = [&](size_t from, size_t to) {
    return std::all_of(bytes.begin() + static_cast<std::ptrdiff_t>(from),
                       bytes.begin() + static_cast<std::ptrdiff_t>(to), [](unsigned char b) { return b == 0; });
  };
  if (zero(0, 16)) return "must not be an unspecified address";
  if (zero(0, 15) && bytes[15] == 1) return rules.loopback ? "" : "must not be a loopback address";
  if (bytes[0] == 0xFF) return "must not be a multicast address";
  if (bytes[0] == 0xFE && (bytes[1] & 0xC0) == 0x80) return "must not be a link-local address";
  // Ways to write an IPv4 address: mapped, compatible, NAT64, 6to4.
  bool mapped = zero(0, 10) && bytes[10] == 0xFF && bytes[11] == 0xFF;
  bool nat64 = bytes[0] == 0 && bytes[1] == 0x64 && bytes[2] == 0xFF && bytes[3] == 0x9B && zero(4, 12);
  if (mapped || nat64 || zero(0, 12)) return ipv4_problem(ipv4_at(bytes, 12), rules);
  if (bytes[0] == 0x20 && bytes[1] == 0x02) return ipv4_problem(ipv4_at(bytes, 2), rules);
  return "";
}

// 100, not 1E2: whole numbers stay readable and a document reads the same after a round trip.
void tidy_numbers(json::value& v) {
  if (v.is_double()) {
    double number = v.get_double();
    if (std::abs(number) < 1e15 && number == std::floor(number)) v = static_cast<std::int64_t>(number);
  } else if (v.is_array()) {
    for (auto& each : v.get_array()) tidy_numbers(each);
  } else if (v.is_object()) {
    for (auto& member : v.get_object()) tidy_numbers(member.value());
  }
}

json::object tidied(json::value v) {
  tidy_numbers(v);
  return std::move(v.get_object());
}

}  // namespace

std::string snapshot_url_problem(const Secret& url) { return url_problem(url, {"http", "https"}); }

std::string host_problem(const Secret& secret, const Rules& rules) {
  auto parsed = boost::urls::parse_uri(secret.reveal());
  if (!parsed) return "must be a URL";
  if (parsed->host_type() == boost::urls::host_type::ipv6)
    return ipv6_problem(parsed->host_ipv6_address().to_bytes(), rules);
  std::string host(parsed->encoded_host());
  std::ranges::transform(host, host.begin(), [](unsigned char c) { return std::tolower(c); });
  if (host.ends_with('.')) host.pop_back();
  if (host == "localhost" || host.ends_with(".localhost"))
    return rules.loopback ? "" : "must not be a loopback address";
  // The resolver takes 127.1, 0x7f.1 and 2130706433 for an address as well, and this function is the resolver's own.
  in_addr address{};
  if (inet_aton(host.c_str(), &address) != 0) return ipv4_problem(ntohl(address.s_addr), rules);
  return "";
}

// Some recorders want user and password inside the path: then the path is not shown either.
std::string shown_url(const Secret& secret) {
  std::string shown = redact_url(secret.reveal());
  size_t host = shown.find("://");
  size_t path = host == std::string::npos ? std::string::npos : shown.find('/', host + 3);
  if (path != std::string::npos && shown.find_first_of("=%", path) != std::string::npos)
    shown = shown.substr(0, path) + "/***";
  return shown;
}

// A label is read as a type of its own, so that a wrong one is reported with its place in the list.
struct Label {
  std::string text;
};
void read_value(const json::value& v, Label& out, const std::string& path, json::Context& ctx) {
  size_t before = ctx.problems.size();
  json::read_value(v, out.text, path, ctx);
  if (ctx.problems.size() != before) return;
  if (out.text.empty() || out.text.size() > kLabelBytesMax || has_control(out.text))
    ctx.add(path, fmt::format("must have 1 to {} bytes, none of them a control character", kLabelBytesMax));
}
std::string labels_problem(const std::vector<Label>& labels) {
  return labels.size() <= kLabelsMax ? "" : fmt::format("must hold at most {} labels", kLabelsMax);
}

// A list that is written as it stands; found by argument-dependent lookup when a field of this type is written.
struct Listed {
  json::array items;
};
json::value write_value(const Listed& list) { return list.items; }

template <class V>
void label_field(V& v, std::optional<std::vector<std::string>>& labels) {
  if constexpr (V::reading) {
    std::optional<std::vector<Label>> given;
    v.optional("allow_labels", given, labels_problem);
    if (!given) return;
    labels.emplace();
    for (Label& label : *given) labels->push_back(std::move(label.text));
  } else if (labels) {
    v.required("allow_labels", Listed{json::array(labels->begin(), labels->end())});
  }
}

template <class V>
void polygon_field(V& v, std::vector<Point>& polygon) {
  if constexpr (V::reading) {
    v.required("polygon", polygon, polygon_problem);
  } else {
    Listed points;
    for (const Point& point : polygon) points.items.push_back(json::array{point[0], point[1]});
    v.required("polygon", points);
  }
}

template <class V>
void fields(V& v, Zone& z) {
  v.required("zone_id", z.zone_id, json::range<std::int64_t>(1, kZoneIdMax));
  v.optional("name", z.name, name_problem);
  v.optional("kind", z.kind);
  v.optional("priority", z.priority, json::range(-10000, 10000));
  polygon_field(v, z.polygon);
  label_field(v, z.allow_labels);
  v.optional("min_score", z.min_score, json::range(0.0, 1.0));
}

template <class V>
void fields(V& v, MotionGating& m) {
  v.optional("enabled", m.enabled);
  v.optional("downscale", m.downscale, json::range(0.05, 1.0));
  v.optional("min_area_px", m.min_area_px, json::range(0, 100'000'000));
  v.optional("cooldown_frames", m.cooldown_frames, json::range(0, 10'000));
}

template <class V>
void fields(V& v, Crop& c) {
  v.required("x", c.x, json::range(0, kPixelsMax));
  v.required("y", c.y, json::range(0, kPixelsMax));
  v.required("width", c.width, json::range(1, kPixelsMax));
  v.required("height", c.height, json::range(1, kPixelsMax));
}

template <class V>
void fields(V& v, FrameSize& f) {
  v.required("width", f.width, json::range(1, kPixelsMax));
  v.required("height", f.height, json::range(1, kPixelsMax));
}

template <class V>
void fields(V& v, Snapshot& s) {
  v.required("url", s.url, snapshot_url_problem);
  v.optional("interval_s", s.interval_s, json::range(0.1, 86400.0));
}

template <class V>
void fields(V& v, Model& m) {
  v.optional("detector", m.detector, detector_problem);
  v.optional("name", m.name, model_name_problem);
}

template <class V>
void fields(V& v, Config& c) {
  v.required("camera_uuid", c.camera);
  v.required("tenant_id", c.tenant);
  v.required("site_id", c.site);
  v.optional("name", c.name, name_problem);
  if (V::reading || !c.rtsp_url.empty()) v.optional("rtsp_url", c.rtsp_url, stream_url_problem);
  v.optional("substream_url", c.substream_url, stream_url_problem);
  v.optional("enabled", c.enabled);
  v.optional("processing", c.processing);
  bool names_cluster = c.processing == Processing::cluster || c.cluster != Config().cluster;
  if (V::reading || names_cluster) v.optional("cluster", c.cluster);
  v.optional("transport", c.transport);
  v.optional("decode", c.decode);
  v.optional("zones", c.zones);
  v.optional("motion_gating", c.motion_gating);
  label_field(v, c.allow_labels);
  v.optional("min_score", c.min_score, json::range(0.0, 1.0));
  v.optional("zone_test", c.zone_test);
  v.optional("iou_threshold", c.iou_threshold, json::range(0.0, 1.0));
  v.optional("max_fps", c.max_fps, json::range(0.1, 120.0));
  v.optional("max_sessions", c.max_sessions, json::range(1, 64));
  v.optional("frame_size", c.frame_size);
  v.optional("crop", c.crop);
  v.optional("snapshot", c.snapshot);
  v.optional("model", c.model);
}

std::vector<json::Problem> relation_problems(const Config& config) {
  std::vector<json::Problem> problems;
  if (config.zones.size() > kZonesMax)
    problems.push_back({"zones", fmt::format("must hold at most {} zones", kZonesMax)});
  std::set<std::int64_t> seen;
  for (size_t i = 0; i < std::min(config.zones.size(), kZonesMax); ++i) {
    const Zone& zone = config.zones[i];
    if (!seen.insert(zone.zone_id).second)
      problems.push_back({fmt::format("zones[{}].zone_id", i), "must be unique within the camera"});
    bool outside = config.frame_size && std::ranges::any_of(zone.polygon, [&](const Point& p) {
                     return p[0] > config.frame_size->width || p[1] > config.frame_size->height;
                   });
    if (outside) problems.push_back({fmt::format("zones[{}].polygon", i), "must lie inside frame_size"});
  }
  if (config.crop && config.frame_size &&
      (config.crop->x + config.crop->width > config.frame_size->width ||
       config.crop->y + config.crop->height > config.frame_size->height))
    problems.push_back({"crop", "must lie inside frame_size"});
  return problems;
}

Result<Zone> read_zone(const json::value& v) { return json::read<Zone>(v, json::Unknown::reject); }

json::object write_zone(const Zone& zone) { return tidied(json::write_value(zone)); }

Result<Config> read_config(const json::value& v, json::Unknown unknown) {
  json::Context ctx{unknown};
  Config config;
  json::read_value(v, config, "", ctx);
  if (v.is_object()) {
    auto given = [&](std::string_view name) {
      const json::value* found = v.get_object().if_contains(name);
      return found != nullptr && !found->is_null();
    };
    if (!given("rtsp_url") && !given("snapshot")) ctx.add("rtsp_url", "is required, unless a snapshot is given");
  }
  if (ctx.problems.empty())
    for (auto& [path, what] : relation_problems(config)) ctx.add(path, std::move(what));
  if (!ctx.problems.empty()) return json::problems_error(ctx.problems);
  return config;
}

json::object write_config(const Config& config, Credentials credentials) {
  json::object out = tidied(json::write_value(config));
  if (credentials == Credentials::shown) return out;
  if (!config.rtsp_url.empty()) out["rtsp_url"] = shown_url(config.rtsp_url);
  if (config.substream_url) out["substream_url"] = shown_url(*config.substream_url);
  if (config.snapshot) out["snapshot"].as_object()["url"] = shown_url(config.snapshot->url);
  return out;
}

std::vector<json::Problem> rule_problems(const Config& config, const Rules& rules) {
  std::vector<json::Problem> problems;
  auto look = [&](const char* path, const Secret& url) {
    if (auto problem = host_problem(url, rules); !problem.empty()) problems.push_back({path, std::move(problem)});
  };
  if (!config.rtsp_url.empty()) look("rtsp_url", config.rtsp_url);
  if (config.substream_url) look("substream_url", *config.substream_url);
  if (config.snapshot) look("snapshot.url", config.snapshot->url);
  return problems;
}

}  // namespace weir::camera
