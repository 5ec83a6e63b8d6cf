// Config: what shall be simulated: recorders, each one RTSP listener, with named cameras.
//
// The configuration file of `weir-camsim --config`, and the bodies with which the control endpoint adds a recorder or a
// camera, have these fields. Plain values; any thread.
#pragma once

#include "weir/base/json.hpp"

namespace weir::camsim {

// Where a session begins: with the newest keyframe and what followed it, as cameras do, or in the middle of a group, as
// behind a relay.
enum class Start { keyframe, live };
inline constexpr auto enum_names(Start) {
  return std::to_array<json::EnumName<Start>>({{Start::keyframe, "keyframe"}, {Start::live, "live"}});
}

struct CameraSpec {
  std::string name;
  std::string profile;                   // "codec=h265,fps=15": see profile.hpp
  std::optional<std::int64_t> phase_ms;  // of its timeline; by default from its name
  Start start = Start::keyframe;
};

struct RecorderSpec {
  std::string name = "recorder-1";
  std::string listen = "127.0.0.1:0";  // address and port; 0 takes a free one
  bool tls = false;                    // rtsps, with a certificate made at start
  std::string user;                    // where set, digest authentication
  Secret password;
  std::vector<CameraSpec> cameras;
};

struct Config {
  std::string footage;  // a video file
  std::string cache;    // folder of encoded loops
  std::string control = "127.0.0.1:0";
  std::vector<RecorderSpec> recorders;
};

// What is wrong with a camera's or recorder's name, "" where nothing is: names stand in URLs.
inline std::string name_problem(std::string_view name) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  bool good = !name.empty() && name.size() <= 64 && name.find_first_not_of(kAllowed) == std::string_view::npos;
  return good ? "" : "must be 1 to 64 letters, digits, underscores or dashes";
}

template <class V>
void fields(V& v, CameraSpec& c) {
  v.required("name", c.name, name_problem);
  v.optional("profile", c.profile);
  v.optional("phase_ms", c.phase_ms, json::range<std::int64_t>(0, 86'400'000));
  v.optional("start", c.start);
}
template <class V>
void fields(V& v, RecorderSpec& r) {
  v.required("name", r.name, name_problem);
  v.optional("listen", r.listen);
  v.optional("tls", r.tls);
  v.optional("user", r.user);
  v.optional("password", r.password);
  v.optional("cameras", r.cameras);
}
template <class V>
void fields(V& v, Config& c) {
  v.optional("footage", c.footage);
  v.optional("cache", c.cache);
  v.optional("control", c.control);
  v.required("recorders", c.recorders, json::length(1, 1000));
}

}  // namespace weir::camsim
