// Announcer: publishes what this control plane changed (cameras, leases, runners, what clusters shall look at) and what
// operators order of published streams. See docs/events.md.
//
// A change is queued right after the store's step and appended in that order by one sender; a request neither waits
// for it nor fails by it. While the store is away the queue waits; what does not fit is dropped and counted. A
// control plane that dies between a step and its announcement never publishes it: runners therefore also list leases
// and cameras periodically. Where a lease ended before its owner could publish the camera's last status, the
// Announcer publishes it: DISCONNECTED ("Who speaks before and after" in docs/lease-protocol.md). The id of a lease's
// announcement is made from its version, an expiry's also from when that was, so a step that is announced again adds
// nothing. Loop thread only.
#pragma once

#include "runner_watch.hpp"

#include "weir/base/clock.hpp"
#include "weir/event/routing.hpp"
#include "weir/lease/row.hpp"
#include "weir/ports/catalog.hpp"
#include "weir/ports/event_log.hpp"
#include "weir/ports/stream_plane.hpp"

#include <deque>

namespace weir::control_plane {

inline constexpr std::string_view kOwnIdPrefix = "weir-";  // of event ids that nobody else may use

inline constexpr std::string_view kLastWill = "last_will";   // the reason of a release that the owner did not ask for

struct LeaseChange {
  std::string_view what;  // granted, stolen, released, revoked, expired
  event::Place place;
  lease::Owner owner;      // who has it now, or had it
  lease::Version version;  // of the change; of an expiry: the one that ran out
  lease::Kind kind = lease::Kind::camera;
  std::string_view reason = {};
  LeaseTime expires = {};  // tells the expiries of one version apart
};
LeaseChange change_of(std::string_view what, const lease::LeaseRow& row, std::string_view reason = {});

// What readers compare to see that a camera's configuration changed, `enabled` aside. It tells nothing else: a hash of
// the configuration would let readers try passwords on it, and would differ between versions of this software.
std::string config_version(const CameraRecord& record);

class Announcer {
 public:
  Announcer(EventLog& log, EventFeed& feed, Instruments& instruments, Clock& clock)
      : log_(log), feed_(feed), instruments_(instruments), clock_(clock) {}

  void camera(std::string_view what, const CameraRecord& record);  // created, updated, deleted
  void lease(const LeaseChange& change);
  // Tells the camera's holder that a client waits for a picture.
  void snapshot_wanted(const lease::LeaseRow& held, std::string_view request);
  // Tells the stream's holder, or every orchestrator where nobody holds it, what an operator wants done with it.
  void ordered(const StreamRecord& stream, const StreamOrder& order);
  // A display, a playlist, a model or an ad-hoc subscription changed: `what` is "display.created" and the like, and
  // `about` holds its id and what it names, but no secret.
  void desire(std::string_view what, const TenantId& tenant, std::string_view id, json::object about);
  // A camera was taken from its cluster, which can say nothing of it any more; the version is the camera's since then.
  void left_cluster(const lease::LeaseRow& row, std::string_view reason);
  void runner(const Runner& runner);
  void silent(const RunnerWatch::Silence& silence);
  // The sender: runs until it is cancelled, and then tries once to append what still waits.
  boost::asio::awaitable<void> run();

 private:
  void add(event::Event announcement, json::object payload);
  void disconnected(const LeaseChange& change);
  std::string fresh_id() const;

  static constexpr size_t kWaitingMax = 20'000;
  EventLog& log_;
  EventFeed& feed_;
  Instruments& instruments_;
  Clock& clock_;
  std::deque<event::Event> waiting_;
  Signal added_;
};

}  // namespace weir::control_plane
