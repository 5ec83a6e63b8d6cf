// EventLog: the embedded bus's memory, beside the leases, so that the fence and the insert are one step (rule 7).
//
// `append` accepts a camera's event iff its version is the lease row's, the lease is not released, the epoch is the
// store's and the speaker is its owner (`lease::fence_accepts`), decided inside the inserting step; no version change
// of that camera can slip between. An event that is in the log already is `duplicate`, whoever owns the camera now.
// Answers stand in the order of the events. `read` gives events in an order that nothing can be inserted before any
// more: a reader that continues after `scanned_to` loses nothing. Sequences rise, but not by one.
// When the epoch rises, sequences that lost commits had used may be used again: a place of an older epoch means nothing.
// An error of class `unavailable` means that nothing is known. Loop thread only.
#pragma once

#include "weir/lease/row.hpp"
#include "weir/ports/event_bus.hpp"

namespace weir {

inline constexpr size_t kAppendMax = 4096;                          // events in one step
inline constexpr size_t kEventPageBytes = 4 << 20;                  // of payloads: a page that has as many ends
inline constexpr Duration kEventsRemembered = std::chrono::minutes(10);  // at least: an outage's grace and its drain
// Stored so far ahead of the present clock: by one that was wrong, and how old they are nobody knows.
inline constexpr Duration kEventsFromTheFuture = std::chrono::minutes(1);

struct EventSpeaker {
  RunnerId runner;           // whose token it is; empty for an administrator's, which speaks for no camera
  BootId boot = {};          // of a worker's token; empty: any boot of that runner
  TenantId tenant = {};      // cameras of other tenants do not exist; also the tenant of events without a camera
};

// The lease owner that the speaker must be, so that the fence can compare.
inline lease::Owner speaking_owner(const EventSpeaker& speaker, const lease::LeaseRow& row) {
  return {speaker.runner, speaker.boot.empty() ? row.owner.boot : speaker.boot};
}

// What the control plane tells by itself. It needs no lease to speak.
struct Announcement {
  TenantId tenant;           // whose camera, lease or runner it is about; empty: of no tenant
  std::string routing_key;
  std::string event_id;
  std::string payload;
  std::string_view topic = kControlTopic;
  std::optional<EventStamp> stamp = {};  // left out unless the camera's lease has this version, released or not: a
                                         // word about one owner must not follow the next one's
};

struct StoredEvent {
  std::int64_t sequence = 0;
  TenantId tenant;           // empty: of no tenant
  std::string topic;
  std::string routing_key;
  std::string payload;
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
  virtual boost::asio::awaitable<Result<std::vector<Confirmation>>> append(std::vector<OutgoingEvent> events,
                                                                           EventSpeaker speaker) = 0;
  // At most kAppendMax, in one step; those that are in the log already, or whose stamp is over, are left out.
  virtual boost::asio::awaitable<Result<Nothing>> announce(std::vector<Announcement> announcements) = 0;
  // At most `limit` events; fewer, but at least one, where they are heavy.
  virtual boost::asio::awaitable<Result<EventPage>> read(std::int64_t after, int limit) = 0;
  // The place after which everything is new.
  virtual boost::asio::awaitable<Result<EventPlace>> newest() = 0;
  // Forgets at most `most` events beyond the retention; the number forgotten.
  virtual boost::asio::awaitable<Result<std::int64_t>> trim(EventRetention retention, int most) = 0;
};

}  // namespace weir
