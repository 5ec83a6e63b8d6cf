// PublisherCounters: what became of the events, for metrics. Plain values; not shared between threads.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace weir::worker {

// Why an event was dropped. The names are label values.
enum class Drop {
  no_lease,        // before any tenure there is nowhere to keep it
  inbox_full,      // the publisher's thread does not keep up
  queue_full,      // neither the bus nor the disk takes it: the oldest detection goes
  before_cutover,  // its moment was already reported by the worker before
  summary,         // a summary that cannot be sent now is worth nothing later
  silent,          // made after the worker was told to publish nothing more for the camera
  lost,            // another owner has the camera
  other_tenure,
  refused,  // the bus calls the event itself wrong
  stopped,
  spool_full,  // the oldest, to keep the spool's bounds
  spool_damaged,
};
inline constexpr std::array<std::string_view, 12> kDropNames = {
    "no_lease", "inbox_full",   "queue_full", "before_cutover", "summary",    "silent",
    "lost",     "other_tenure", "refused",    "stopped",        "spool_full", "spool_damaged"};

struct PublisherCounters {
  std::uint64_t published = 0;   // in the bus for good
  std::uint64_t spooled = 0;     // took the way over the disk
  std::uint64_t stale = 0;       // events that the bus refused because of their version
  std::uint64_t bus_errors = 0;  // requests without an answer
  std::array<std::uint64_t, kDropNames.size()> dropped{};
  // Now.
  std::uint64_t queued = 0;
  std::uint64_t spool_bytes = 0;
  bool disk_trouble = false;

  void drop(Drop why, std::uint64_t events = 1) { dropped[static_cast<size_t>(why)] += events; }
  std::uint64_t dropped_for(Drop why) const { return dropped[static_cast<size_t>(why)]; }
};

}  // namespace weir::worker
