#include "camera_state.hpp"

#include "weir/base/clock.hpp"
#include "weir/base/log.hpp"
#include "weir/restart/retry_policy.hpp"

namespace weir::worker {

namespace {

// A substream that could not be had is left alone for so long.
constexpr Duration kSubstreamPause = 10min;

// After so many dials in a row that reached nobody, the main stream has a try.
constexpr int kUnreachedMax = 3;

}  // namespace

bool allows_substream(const Source& source) {
  const camera::Config& config = source.config;
  return !source.snapshots && config.substream_url && config.decode == camera::Decode::adaptive &&
         config.motion_gating.enabled;
}

void CameraTask::State::set_state(StreamState state) {
  if (muted) return;
  bool edge = false;
  status->update([&](CameraView& view) {
    edge = view.state != state || !said_any;
    said_any = true;
    view.state = state;
    if (state == StreamState::streaming) view.error.reset();
  });
  if (state == StreamState::streaming) repeats.succeeded();
  if (edge) parts.reporter.state_changed(*newest(), state, status->view(boot_now()));
}

void CameraTask::State::say(const restart::StreamError& error, Duration delay) {
  if (muted) return;
  Instant now = boot_now();
  status->update([&](CameraView& view) {
    ++view.counts.errors;
    view.error = error;
    view.retry_at = now + delay;
  });
  parts.reporter.failed(*newest(), error, delay, repeats.failed(error.code, now));
}

void CameraTask::State::use_substream(std::string why) {
  substream = true;
  log::info("stream.substream", std::move(why) + "; using the substream").with("camera_uuid", newest()->config.camera);
}

void CameraTask::State::use_main(std::string why) {
  substream = false;
  log::info("stream.main", "back to the main stream: " + std::move(why)).with("camera_uuid", newest()->config.camera);
}

// The first dial of a substream follows pictures of the main stream: what is wrong then is wrong with the substream.
// Later, a substream that cannot be reached is most often a recorder that restarts, and away with both streams.
bool CameraTask::State::gives_substream_up(restart::StreamError& error) {
  if (!substream) {
    if (std::exchange(unreached, 0) == kUnreachedMax) use_substream("the main stream cannot be had either");
    return false;
  }
  bool away = substream_known && restart::retry_policy(error.code).side == restart::Side::runner;
  if (away && ++unreached < kUnreachedMax) return false;
  if (!away) {
    unreached = 0;
    substream_from = boot_now() + kSubstreamPause;
    error.detail = "the substream cannot be had: " + error.detail;
  }
  say(error, Duration(0));
  use_main(away ? "the substream cannot be reached, perhaps this one can"
                : fmt::format("{}; it is tried again after {} min at the earliest", error.detail,
                              std::chrono::duration_cast<std::chrono::minutes>(kSubstreamPause).count()));
  return true;
}

}  // namespace weir::worker
