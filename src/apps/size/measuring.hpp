// Measuring this machine with the helper that links the media libraries, and a runner's capacity that follows from it.
//
// A runner without `capacity_streams` takes as many cameras of the default kind as its machine can look at while half of
// their scenes move. Its first start measures that, in seconds and before it asks for a camera, and keeps it in
// state_dir/machine.json; later starts read it there, unless processor, quota, model or library are others by then.
// Loop thread only.
#pragma once

#include "weir/base/clock.hpp"
#include "weir/base/settings.hpp"
#include "weir/ports/process_host.hpp"
#include "weir/sizing/measurement.hpp"

#include <boost/asio/awaitable.hpp>

namespace weir::apps {

// What `weir-worker measure --json` with these further arguments answers.
boost::asio::awaitable<Result<sizing::Measurement>> measure_machine(ProcessHost& host, Clock& clock,
                                                                    std::vector<std::string> arguments, Duration limit);

struct Capacity {
  int cameras = 1;
  std::string because;  // "14 cameras: 2 processors, 14.6 ms a picture, measured on …"
};

// The capacity for cameras that are not known yet: of the default kind, `sizing::kUsualMotion` of their scenes moving.
Capacity capacity_from(const sizing::Measurement& measured, std::string_view measured_at);
// The capacity where nothing could be measured.
Capacity capacity_guessed(double processors, std::string_view why);

// Reads what is kept, or measures and keeps it.
boost::asio::awaitable<Capacity> machine_capacity(ProcessHost& host, Clock& clock, const Settings& settings);

}  // namespace weir::apps
