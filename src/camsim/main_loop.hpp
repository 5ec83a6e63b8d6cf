// MainLoop: GLib's thread, on which everything of the RTSP server happens.
//
// Other threads hand work over with `call`, which waits for its end; callbacks of the RTSP server already run on this
// thread. Any thread may call; timers run on the loop's thread and die with it.
#pragma once

#include "weir/base/time.hpp"

#include <glib.h>

#include <functional>
#include <thread>

namespace weir::camsim {

class MainLoop {
 public:
  MainLoop();
  ~MainLoop();
  MainLoop(const MainLoop&) = delete;

  GMainContext* context() const { return context_; }
  void call(const std::function<void()>& work);
  // Runs `work` once everything that waits has been done.
  void when_idle(std::function<void()> work);
  void after(Duration delay, std::function<void()> work);
  // Runs `work` again and again while it returns true.
  void every(Duration period, std::function<bool()> work);

 private:
  GMainContext* const context_;
  GMainLoop* const loop_;
  std::thread thread_;
};

}  // namespace weir::camsim
