#include "weir/link/look.hpp"

#include <algorithm>

namespace weir::link {

namespace {

struct ErrorText {
  std::string code;
};
template <class V>
void fields(V& v, ErrorText& e) {
  v.optional("code", e.code);
}

struct CameraText {
  CameraId camera;
  bool streaming = false;
  std::string state;  // on the page for people, instead of `streaming`
  std::int64_t errors = 0, inferred = 0;
  bool behind = false;
  std::optional<double> last_frame_age_s;
  std::optional<ErrorText> error;
};
template <class V>
void fields(V& v, CameraText& c) {
  v.required("camera_uuid", c.camera);
  v.optional("streaming", c.streaming);
  v.optional("state", c.state);
  v.optional("errors", c.errors);
  v.optional("inferred", c.inferred);
  v.optional("behind", c.behind);
  v.optional("last_frame_age_s", c.last_frame_age_s);
  v.optional("error", c.error);
}

struct StuckText {
  CameraId camera;
};
template <class V>
void fields(V& v, StuckText& s) {
  v.required("camera_uuid", s.camera);
}

struct LookText {
  int protocol = 0;
  std::vector<CameraText> cameras;
  std::vector<StuckText> stuck;
};
template <class V>
void fields(V& v, LookText& l) {
  v.optional("protocol", l.protocol);
  v.required("cameras", l.cameras);
  v.optional("stuck", l.stuck);
}

constexpr double kOldestAge = 1e9;  // seconds: what is older is not told apart

SeenCamera seen_of(const CameraText& text) {
  SeenCamera out{.camera = text.camera,
                 .streaming = text.streaming || text.state == "STREAMING",
                 .failures = text.errors,
                 .inferred = text.inferred,
                 .behind = text.behind};
  if (text.last_frame_age_s) out.frame_age = from_seconds(std::clamp(*text.last_frame_age_s, 0.0, kOldestAge));
  if (text.error)
    for (const auto& [code, name] : restart::kStreamErrorCodeNames)
      if (text.error->code == name) out.error = code;
  return out;
}

}  // namespace

json::object write_look(const Look& look) {
  json::array cameras, stuck;
  for (const SeenCamera& each : look.cameras) {
    json::object camera{{"camera_uuid", each.camera.str()}, {"streaming", each.streaming}, {"errors", each.failures},
                        {"inferred", each.inferred},        {"behind", each.behind}};
    if (each.frame_age) camera["last_frame_age_s"] = seconds(*each.frame_age);
    if (each.error) camera["error"] = json::object{{"code", restart::to_string(*each.error)}};
    cameras.push_back(std::move(camera));
  }
  for (const CameraId& each : look.stuck) stuck.push_back(json::object{{"camera_uuid", each.str()}});
  return {{"protocol", look.protocol}, {"cameras", std::move(cameras)}, {"stuck", std::move(stuck)}};
}

Result<Look> read_look(const json::value& said) {
  TRY(text, json::read<LookText>(said));
  Look out{.protocol = text.protocol};
  for (const CameraText& each : text.cameras) out.cameras.push_back(seen_of(each));
  for (const StuckText& each : text.stuck) out.stuck.push_back(each.camera);
  return out;
}

}  // namespace weir::link
