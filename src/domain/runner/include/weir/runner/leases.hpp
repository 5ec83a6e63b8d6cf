// Leases: a runner's cameras and the store: which leases are asked for, and what each answer changes.
//
// It keeps one holder (weir/lease) a camera, gathers the questions of one event into batches, asks for what is free up
// to the runner's room, and follows news: a word from the feed that a camera is another's is never believed, only asked
// about. Pure; one thread.
#pragma once

#include "weir/runner/camera.hpp"

namespace weir::runner {

class Leases {
 public:
  // `boot` is this process's own.
  Leases(BootId boot, RunnerId runner) : boot_(std::move(boot)), runner_(std::move(runner)) {}

  // One event of one camera's holder. Questions wait for `flush`.
  void feed(Camera& camera, const lease::HolderEvent& event, Turn& turn);
  // The holders whose time has come.
  void wake(Cameras& cameras, Turn& turn);
  // Everything that is free is asked for, as much at a time as there is room: all of it might be granted.
  void acquire(Cameras& cameras, Turn& turn);
  void flush(Turn& turn);

  void hear(const LeaseNews& event, Cameras& cameras, Turn& turn);
  void hear(const HoldersHeard& event, Cameras& cameras);
  void hear(const LeasesHeard& event, Cameras& cameras, Turn& turn);

 private:
  void hear(Camera& camera, const lease::HolderEvent& event, Turn& turn);
  void begin_grant(Camera& camera, const Turn& turn);

  BootId boot_;
  RunnerId runner_;
  std::vector<lease::Question> questions_;
};

}  // namespace weir::runner
