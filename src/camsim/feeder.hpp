// Feeder: one thread that gives every running session its pictures when they are due.
//
// A Feed is one session's two sources of data (pictures, perhaps sound). It starts with the keyframe that the present
// picture depends on, sends what followed at once, and from then on each picture at its time. When its camera's loop
// changes, or when it has fallen behind because the camera was made slow, it goes on with the first keyframe that is
// newer than what it sent.
// A CameraLive is what all threads need to know about a camera; its members are atomic. Feeder: any thread.
#pragma once

#include "gst.hpp"
#include "weir/camsim/config.hpp"
#include "weir/camsim/loop.hpp"

#include <gst/app/gstappsrc.h>

#include <atomic>
#include <condition_variable>
#include <set>
#include <thread>

namespace weir::camsim {

struct CameraLive {
  CameraLive(Duration its_phase, Start its_start, LoopPtr first)
      : phase(its_phase), start(its_start), loop(std::move(first)) {}
  const Duration phase;
  const Start start;
  std::atomic<LoopPtr> loop;
  std::atomic<bool> stalled{false};
  std::atomic<std::int64_t> garbage_frames{0};  // still to come; -1: until cleared
  std::atomic<double> rate{1};
  std::atomic<std::int64_t> frames_sent{0};
};

class Feed {
 public:
  // `zero` is the wall time of the pipeline's running time 0. `audio` may be null.
  Feed(std::shared_ptr<CameraLive> camera, Ref<GstAppSrc> video, Ref<GstAppSrc> audio, WallTime zero);

  // Pushes the pictures that are due and returns when to call again. Feeder thread only.
  WallTime step(WallTime now);
  // Any thread.
  void set_wanted() { wanted_ = true; }  // the pipeline asks for its first picture
  void set_playing(bool on) { playing_ = on; }

 private:
  WallTime due(std::int64_t running) const;    // when a unit is to be sent
  WallTime shown(std::int64_t running) const;  // when its picture was taken
  std::int64_t newest(WallTime now) const;     // the newest unit that is due
  std::int64_t entry(WallTime now) const;      // the unit to begin with
  void hop_forward(WallTime now);
  void push_picture(WallTime captured);
  void push_sound(WallTime now);
  WallTime step_pictures(WallTime now);

  // Constant after construction.
  const std::shared_ptr<CameraLive> camera_;
  const Ref<GstAppSrc> video_, audio_;
  const WallTime zero_;
  // Feeder thread only.
  LoopPtr loop_;
  Timeline time_;
  std::int64_t next_ = 0;  // the running number of the next unit
  bool begun_ = false, entered_ = false, sets_due_ = false;
  bool late_ = false;  // behind its timeline: was slow
  WallTime newest_sent_ = WallTime::min(), slow_due_{};
  std::int64_t next_sound_ = -1;
  // Written by GStreamer's threads.
  std::atomic<bool> wanted_{false}, playing_{false};
};

class Feeder {
 public:
  Feeder();
  ~Feeder() { stop(); }
  // Ends the feeding. Pipelines that GStreamer takes down later may still call the other methods.
  void stop();
  void add(std::shared_ptr<Feed> feed);
  void remove(const std::shared_ptr<Feed>& feed);
  void wake();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::shared_ptr<Feed>> feeds_;
  bool woken_ = false, stopping_ = false;
  std::thread thread_;
};

}  // namespace weir::camsim
