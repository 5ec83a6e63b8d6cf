// A publisher in virtual time, over a bus and a disk that tests control. One thread.
#pragma once

#include "publisher_testing.hpp"

#include <gtest/gtest.h>

namespace weir::worker {

inline const CameraId kCam = CameraId::trusted("cam-1");
inline const lease::Tenure kTenure{BootId::trusted("boot"), {10}};
inline const lease::Tenure kOther{BootId::trusted("boot"), {20}};
using Ids = std::vector<std::string>;

// `start` again is another process on the same disk.
struct Rig {
  Rig() {
    settings.retry.jitter = 0;
    start();
  }
  void start() {
    spool = std::make_unique<FakeSpool>(disk);
    PublisherHooks hooks{[this](const CameraId&, lease::Version v) { stale.push_back(v.n); },
                         [this](Duration d) { handed.push_back(d); }};
    publisher = std::make_unique<Publisher>(io, clock, bus, *spool, settings, hooks);
    asio::co_spawn(io, publisher->run(), [this](std::exception_ptr) { ended = true; });
  }
  void pass(Duration time = {}) { clock.run(clock.now() + time); }
  void say(int n, event::Kind kind = event::Kind::detection, const CameraId& camera = kCam) {
    publisher->publish(camera, {"t", "k", fmt::to_string(n), "{\"n\":1}", kind, WallTime(Duration(n))});
    pass();
  }
  // Now, by both clocks.
  void see(int n) {
    publisher->publish(kCam, {"t", "k", fmt::to_string(n), "{}", event::Kind::detection, clock.wall()}, clock.now());
    pass();
  }
  void lease(int version, Duration lasts = 10s, lease::Tenure tenure = kTenure, std::optional<lease::Tenure> adopt = {},
             std::optional<WallTime> after = {}, const CameraId& camera = kCam) {
    publisher->set_lease(camera, {version}, tenure, clock.now() + lasts, adopt, after);
    pass();
  }
  struct Silence {
    bool done = false;
    std::optional<WallTime> last;
  };
  std::shared_ptr<Silence> silence() {
    auto heard = std::make_shared<Silence>();
    asio::co_spawn(io, publisher->silence(kCam), [heard](std::exception_ptr, std::optional<WallTime> last) {
      *heard = {true, last};
    });
    pass();
    return heard;
  }
  void stop(Duration within) {
    asio::co_spawn(io, publisher->flush_and_stop(clock.now() + within), asio::detached);
    pass(within);
  }
  std::uint64_t dropped(Drop why) { return publisher->counters().dropped_for(why); }
  Ids spooled(lease::Tenure tenure = kTenure) {
    Ids ids;
    if (auto at = disk.logs.find({kCam, tenure}); at != disk.logs.end())
      for (const event::Event& event : at->second.events) ids.push_back(event.event_id);
    return ids;
  }
  Ids heard() { return bus.ids(kCam); }

  asio::io_context io;
  VirtualClock clock{io};
  FakeBus bus{clock};
  FakeDisk disk;
  PublisherSettings settings;
  std::unique_ptr<FakeSpool> spool;
  std::unique_ptr<Publisher> publisher;
  std::vector<std::int64_t> stale;
  std::vector<Duration> handed;
  bool ended = false;
};

}  // namespace weir::worker
