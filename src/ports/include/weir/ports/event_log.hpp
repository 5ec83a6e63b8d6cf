// EventLog: the events that the control plane's own bus keeps, stored beside the leases, so that the fence and the insert
// are one step ("The sink fences, and locks what it compared" in docs/lease-protocol.md).
//
// `append` accepts a camera's event iff its version is the lease row's, the lease is not released, the epoch is the
// store's and the speaker is its owner (`lease::fence_accepts`), decided inside the inserting step; no version change
// of that camera can slip between. For a camera that a cluster processes the cluster's lease counts instead, as long as
// its version is above the camera's own. An event that is in the log already is `duplicate`, whichever runner owns the
// camera now. Answers stand in the order of the events. `read` gives events in an order that nothing can be inserted
// before any more: a reader that continues after `scanned_to` loses nothing. Sequences rise, but not by one. When the
// epoch rises, sequences that lost commits had used may be used again: a place of an older epoch means nothing. An
// error of class `unavailable` means that nothing is known. Loop thread only.
#pragma once

#include "weir/lease/row.hpp"
#include "weir/ports/event_bus.hpp"

namespace weir {

inline constexpr size_t kAppendMax = 4096;                          // events in one step
inline constexpr size_t kEventPageBytes = 4 << 20;                  // of payloads: a page that has as many ends
inline constexpr Duration kEventsRemembered = std::chrono::minutes(10);  // at least: an outage's grace and its drain
// Events stored with a time so far ahead of the present clock were stamped by a clock that was wrong: their age is
// unknown.
inline constexpr Duration kEventsFromTheFuture = std::chrono::minutes(1);

struct EventSpeaker {
  RunnerId runner;           // whose token it is; empty for an administrator's, which may publish for no camera
  BootId boot = {};          // of a worker's token; empty: any boot of that runner
  TenantId tenant = {};      // cameras of other tenants do not exist; also the tenant of events without a camera
};

// The lease owner that the speaker must be, so that the fence can compare.
inline lease::Owner speaking_owner(const EventSpeaker& speaker, const lease::LeaseRow& row) {
  return {speaker.runner, speaker.boot.empty() ? row.owner.boot : speaker.boot};
}

// An event as the log keeps it. Its event_id stands in the payload; the column is not read again.
struct StoredEvent : event::Event {
  std::int64_t sequence = 0;
  WallTime stored_at{};
};

// A place in the log; a reader continues after it.
struct EventPlace {
  std::int64_t epoch = 0;
  std::int64_t sequence = 0;
  friend bool operator==(const EventPlace&, const EventPlace&) = default;
};

struct EventPage {
  std::vector<StoredEvent> events = {};
  std::int64_t scanned_to = 0;     // continue after this; without `more` not below what was the newest before
  std::int64_t forgotten_to = 0;   // nothing up to here is kept; a reader below has missed something
  std::int64_t epoch = 0;
  bool more = false;               // it ended at its limit or its bytes; there may be more at once
};

struct EventRetention {
  Duration age = std::chrono::hours(1);
  // Beyond this many, only what is younger than kEventsRemembered is kept, and not from the future.
  std::int64_t events_max = 2'000'000;
  friend bool operator==(const EventRetention&, const EventRetention&) = default;
};

class EventLog {
 public:
  virtual ~EventLog() = default;
  // At most kAppendMax events.
  virtual boost::asio::awaitable<Result<std::vector<Confirmation>>> append(std::vector<event::Event> events,
                                                                           EventSpeaker speaker) = 0;
  // Appends the control plane's own events: they need no lease, and each names its tenant. At most kAppendMax, in one
  // step. An event that is in the log already is left out, and so is one with a stamp unless the camera's lease has
  // that version, released or not, and no cluster that processes the camera has a later one: an event about one owner
  // must not come after one about the next owner.
  virtual boost::asio::awaitable<Result<Nothing>> announce(std::vector<event::Event> announcements) = 0;
  // At most `limit` events; fewer, but at least one, where they are heavy.
  virtual boost::asio::awaitable<Result<EventPage>> read(std::int64_t after, int limit) = 0;
  // The place of the newest event: everything after it is new.
  virtual boost::asio::awaitable<Result<EventPlace>> newest() = 0;
  // Forgets at most `most` events beyond the retention; the number forgotten.
  virtual boost::asio::awaitable<Result<std::int64_t>> trim(EventRetention retention, int most) = 0;
};

}  // namespace weir
