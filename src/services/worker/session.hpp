// Session: one connection to a camera, from the dial to its end.
//
// It reads packets, decodes as many as the plan wants, asks the motion gate about the pictures, and offers those that
// are due to the detectors. It ends when the task is stopped or paused, when the stream fails, or when the other one of
// the camera's two streams shall be dialled. The camera's thread only.
#pragma once

#include "camera_state.hpp"
#include "pace.hpp"

#include "weir/motion/decode_plan.hpp"
#include "weir/motion/gate.hpp"

#include <deque>
#include <memory>
#include <optional>

namespace weir::worker {

class Session {
 public:
  Session(CameraTask::State& task, motion::MotionGate& gate)
      : task_(task),
        gate_(gate),
        substream_(task.substream),
        frames_before_(task.frames),
        patience_(task.parts.patience) {}
  ~Session() { hang_up(); }
  Session(const Session&) = delete;

  enum class End { stopped, failed, use_substream, use_main };
  End run();
  // What became of the connection so far.
  struct Course {
    std::optional<Instant> first_frame = {};
    bool showed_any = false;            // a picture was decoded
    restart::StreamError error = {};    // of one that failed
  };
  const Course& course() const { return course_; }

 private:
  Status dial();
  void hang_up();
  Status take(const PacketPtr& packet);
  Status miss_keyframes(const Packet& packet);
  void measure(const StreamFacts& facts);
  Status follow_configuration();
  std::shared_ptr<const Source> in_its_pixels(std::shared_ptr<const Source> source) const;
  Status carry_out(const motion::Step& step, const PacketPtr& packet);
  Status decode(const PacketPtr& packet);
  Status decode_alone(const PacketPtr& packet);
  Status consider(const PicturePtr& picture);
  Status look(const PicturePtr& picture, bool& open);
  void offer(const PicturePtr& picture, bool moves);
  bool wants_substream() const;

  CameraTask::State& task_;
  motion::MotionGate& gate_;
  const bool substream_;
  const std::int64_t frames_before_;
  Duration patience_;
  std::shared_ptr<const Source> source_, followed_;  // in pixels of this stream; as it was configured
  camera::FrameSize size_;
  std::unique_ptr<VideoSource> video_;
  std::optional<motion::DecodePlan> plan_;
  camera::Decode mode_ = camera::Decode::full;
  std::deque<PacketPtr> kept_;          // as the plan says
  std::deque<std::int64_t> looked_at_;  // key pictures that were decoded alone and may come again
  std::optional<Duration> last_key_;    // in the stream's time
  Pace pace_;
  Instant decoded_{};                   // when the decoder gave its last pictures
  Instant kept_until_{};                // those of a replay, and what comes right after it
  std::optional<bool> still_;  // as last shown
  Course course_;
};

}  // namespace weir::worker
