// Profile: what a camera's stream looks like, before it is encoded.
//
// Written everywhere (flags, configuration, control endpoint) as "codec=h265,fps=15,keyframe_s=0.5"; a field that is
// not named has its default. Plain value; any thread.
#pragma once

#include "weir/base/json.hpp"

#include <cmath>

namespace weir::camsim {

enum class Codec { h264, h265, mjpeg };
enum class Scene {
  footage,    // the video file as it is
  still,      // its first frame, for ever
  moving,     // an empty background with a shape that wanders: movement, but no people
  halfstill,  // the video file for ten seconds, then still for ten, in turn
};

inline constexpr auto enum_names(Codec) {
  return std::to_array<json::EnumName<Codec>>({{Codec::h264, "h264"}, {Codec::h265, "h265"}, {Codec::mjpeg, "mjpeg"}});
}
inline constexpr auto enum_names(Scene) {
  return std::to_array<json::EnumName<Scene>>({{Scene::footage, "footage"},
                                               {Scene::still, "still"},
                                               {Scene::moving, "moving"},
                                               {Scene::halfstill, "halfstill"}});
}

struct Profile {
  Codec codec = Codec::h264;
  Scene scene = Scene::footage;
  int width = 768, height = 576;
  int fps = 10;
  double keyframe_s = 1;
  bool intra_refresh = false;  // the picture is renewed by a wandering column; no keyframe after the first
  int bframes = 0;
  int bitrate_kbps = 0;  // 0: constant quality; else constant bit rate
  double seconds = 0;    // of the loop; 0: the whole file, and 20 s of the scenes that are not from it
  bool stamp = true;     // off where a still scene must be perfectly still
  bool audio = false;    // a quiet tone, G.711 A-law
  friend bool operator==(const Profile&, const Profile&) = default;

  int keyframe_frames() const { return std::max(1, static_cast<int>(std::lround(keyframe_s * fps))); }
};

template <class V>
void fields(V& v, Profile& p) {
  auto grid = [](int step) {
    return [step](int size) { return size % step == 0 ? "" : fmt::format("must be a multiple of {}", step); };
  };
  v.optional("codec", p.codec);
  v.optional("scene", p.scene);
  v.optional("width", p.width, json::range(192, 3840));
  v.optional("height", p.height, json::range(96, 2160));
  v.optional("fps", p.fps, json::range(1, 60));
  v.optional("keyframe_s", p.keyframe_s, json::range(0.02, 60.0));
  v.optional("intra_refresh", p.intra_refresh);
  v.optional("bframes", p.bframes, json::range(0, 8));
  v.optional("bitrate_kbps", p.bitrate_kbps, json::range(0, 100'000));
  v.optional("seconds", p.seconds, json::range(0.0, 1000.0));
  v.optional("stamp", p.stamp);
  v.optional("audio", p.audio);
  v.rule("width", grid(8)(p.width));
  v.rule("height", grid(p.codec == Codec::mjpeg ? 8 : 2)(p.height));
  v.rule("width", p.codec == Codec::mjpeg && p.width > 2040 ? "RTP carries JPEG up to 2040 pixels" : "");
  v.rule("bframes", p.intra_refresh && p.bframes > 0 ? "cannot be combined with intra_refresh" : "");
}

// "k=v,k=v" over `base`. Errors name the field.
Result<Profile> parse_profile(std::string_view text, const Profile& base = {});
std::string to_text(const Profile& profile);

}  // namespace weir::camsim
