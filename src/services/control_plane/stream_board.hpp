// StreamBoard: the last status of each camera's stream, as it passed by on the event feed.
//
// It answers "does this camera deliver now, and if not, why?" without asking runners. It begins empty and is complete
// after one round of the workers' summaries; it is for people to look at, and decides nothing. Loop thread only.
#pragma once

#include "event_feed.hpp"

#include "weir/base/json.hpp"
#include "weir/camera/config.hpp"
#include "weir/ports/event_log.hpp"

#include <unordered_map>

namespace weir::control_plane {

class StreamBoard final : public FeedWatcher {
 public:
  void note(const StoredEvent& event, Instant now) override;
  // The statuses from before may be wrong.
  void forget() override { words_.clear(); }
  // The size of the camera's main stream's picture. It stays known when the camera gets another owner.
  std::optional<camera::FrameSize> size_of(const CameraId& camera) const;
  // What the camera's present owner published last, null where nothing:
  // {"state","ts","age_s","for_s"?,"fps"?,"looked_fps"?,"wanted_fps"?, "width"?,"height"?,"error"?
  // {"code","detail"}}; for_s: since when this board has heard of no other state
  json::value about(const lease::LeaseRow& row, Instant now) const;
  // Whether the camera's stream was heard of delivering in this tenure, and in which shard.
  bool delivered(const lease::LeaseRow& row) const;
  std::string shard_of(const lease::LeaseRow& row) const;

 private:
  struct Word {
    std::int64_t version = 0;
    std::int64_t delivered = 0;  // the version under which it streamed last
    Instant heard{}, since{};
    std::string state, ts, shard;
    std::optional<double> fps = {}, looked_fps = {}, wanted_fps = {};
    std::optional<camera::FrameSize> size = {};
    std::string code, detail;  // of the last error, until it streams
  };
  static constexpr size_t kMax = 200'000;
  std::unordered_map<CameraId, Word> words_;
};

}  // namespace weir::control_plane
