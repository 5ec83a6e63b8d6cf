#include "weir/event/event.hpp"

#include "weir/base/result.hpp"

#include <fmt/format.h>

#include <iterator>

namespace weir::event {

Event stamped(Event event, Stamp stamp) {
  std::string& payload = event.payload;
  WEIR_ASSERT(payload.size() >= 2 && payload.back() == '}');
  payload.pop_back();
  fmt::format_to(std::back_inserter(payload), "{}\"lease_version\":{}}}", payload.back() == '{' ? "" : ",",
                 stamp.version.n);
  event.stamp = std::move(stamp);
  return event;
}

std::string make_event_id(WallTime now, std::string_view random) {
  auto ms = std::chrono::floor<std::chrono::milliseconds>(now).time_since_epoch().count();
  return fmt::format("{:012x}-{}", ms, random);
}

}  // namespace weir::event
