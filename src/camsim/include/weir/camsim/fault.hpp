// Fault: how a camera, or a whole recorder, misbehaves on command.
//
// One at a time; a new one replaces the old, `none` ends it. A fault acts on the sessions that run and on those to
// come. With `for_s` it ends by itself. Plain values; any thread.
#pragma once

#include "weir/camsim/profile.hpp"

namespace weir::camsim {

enum class FaultKind {
  none,
  refuse,        // 503; running sessions are closed
  unauthorized,  // 401 with a challenge, whatever the credentials; running sessions are closed
  not_found,     // 404; running sessions are closed
  stall,         // everything is answered, but no picture comes
  drop,          // connections are closed now; with `hold`, new ones at their first request
  garbage,       // random bytes in the place of the payload, for `frames` frames or until cleared
  slow,          // pictures come at `rate` of their rate, ever later
  resolution,    // the stream goes on as `width` x `height` from its next keyframe
  codec,         // connections are closed, new ones get `codec`
  max_sessions,  // at most `sessions`; the next one is refused with 453 or ends the oldest one, as `policy` says
  black_hole,    // connections stay open, nothing is answered or sent any more
};
enum class SessionPolicy { refuse_new, kick_old };

inline constexpr auto enum_names(FaultKind) {
  using enum FaultKind;
  return std::to_array<json::EnumName<FaultKind>>({{none, "none"},
                                                   {refuse, "refuse"},
                                                   {unauthorized, "unauthorized"},
                                                   {not_found, "not_found"},
                                                   {stall, "stall"},
                                                   {drop, "drop"},
                                                   {garbage, "garbage"},
                                                   {slow, "slow"},
                                                   {resolution, "resolution"},
                                                   {codec, "codec"},
                                                   {max_sessions, "max_sessions"},
                                                   {black_hole, "black_hole"}});
}
inline constexpr auto enum_names(SessionPolicy) {
  return std::to_array<json::EnumName<SessionPolicy>>(
      {{SessionPolicy::refuse_new, "refuse_new"}, {SessionPolicy::kick_old, "kick_old"}});
}

struct CameraFault {
  FaultKind kind = FaultKind::none;
  bool hold = false;                 // drop
  std::int64_t frames = 0;           // garbage; 0: until cleared
  double rate = 0.5;                 // slow
  std::optional<int> width, height;  // resolution
  std::optional<Codec> codec;        // codec
  int sessions = 1;                  // max_sessions
  SessionPolicy policy = SessionPolicy::refuse_new;
  std::optional<double> for_s;
};

template <class V>
void fields(V& v, CameraFault& f) {
  v.required("kind", f.kind);
  v.optional("hold", f.hold);
  v.optional("frames", f.frames, json::range<std::int64_t>(0, 1'000'000));
  v.optional("rate", f.rate, json::range(0.001, 1.0));
  v.optional("width", f.width);
  v.optional("height", f.height);
  v.optional("codec", f.codec);
  v.optional("sessions", f.sessions, json::range(0, 1000));
  v.optional("policy", f.policy);
  v.optional("for_s", f.for_s, json::range(0.001, 86'400.0));
  v.rule("width", f.kind == FaultKind::resolution && !(f.width && f.height) ? "needs width and height" : "");
  v.rule("codec", f.kind == FaultKind::codec && !f.codec ? "is required" : "");
}

enum class RecorderFaultKind {
  none,
  refuse,      // nobody listens on the port; connections are closed
  black_hole,  // connects succeed, and nothing ever comes
  reboot,      // connections are closed, nobody listens for `for_s` (5 by default), then all is as before
};
inline constexpr auto enum_names(RecorderFaultKind) {
  using enum RecorderFaultKind;
  return std::to_array<json::EnumName<RecorderFaultKind>>(
      {{none, "none"}, {refuse, "refuse"}, {black_hole, "black_hole"}, {reboot, "reboot"}});
}

struct RecorderFault {
  RecorderFaultKind kind = RecorderFaultKind::none;
  std::optional<double> for_s;
};
template <class V>
void fields(V& v, RecorderFault& f) {
  v.required("kind", f.kind);
  v.optional("for_s", f.for_s, json::range(0.001, 86'400.0));
}

// The profile of a camera under this fault.
Result<Profile> profile_under(const CameraFault& fault, Profile profile);

}  // namespace weir::camsim
