// Publisher: the one place where a worker publishes. It asks "is the lease still mine, now?" just before every event.
//
// Every camera has its own order: what waits on disk goes first, then what is live. A camera's events are handed to
// the bus only while its version stands and its deadline has not passed; the version is stamped there. Past the
// deadline, and while the bus does not answer, events go to the spool of the camera's tenure; the first lease of the
// same tenure lets them follow in order; another tenure or a loss drops and counts them. After an error everything
// from the lowest unconfirmed is sent again; `event_id` makes that harmless. One request is in flight at a time, with
// events of many cameras in it. Without a tenure only the latest status of a camera is kept, and sent first. It keeps
// the rules under "The voice" in docs/lease-protocol.md, and "Unknown is not lost".
//
// `run` lives on the io_context given, which one thread runs; the bus and the spool belong to that thread, and the
// hooks are called on it. The other methods may be called from any thread and take effect in the order of the calls;
// their coroutines resume where they were started. The publisher outlives all of them.
#pragma once

#include "weir/base/backoff.hpp"
#include "weir/base/clock.hpp"
#include "weir/base/random.hpp"
#include "weir/ports/event_bus.hpp"
#include "weir/ports/spool.hpp"
#include "weir/worker/inbox.hpp"
#include "weir/worker/outlet.hpp"
#include "weir/worker/publisher_counters.hpp"

#include <boost/asio/steady_timer.hpp>

#include <functional>
#include <map>
#include <memory>

namespace weir::worker {

struct PublisherSettings {
  size_t batch_events_max = 256;
  size_t batch_bytes_max = 512 << 10;
  size_t queue_events_max = 256;  // a camera's, in memory
  size_t queue_bytes_max = 1 << 20;
  size_t inbox_events_max = 4096;  // of all cameras, between the threads
  Duration answer_within = 5s;     // a request without an answer counts as failed
  Duration close_within = 500ms;   // falling silent may take this long to send what waits in memory
  Duration flush_every = 100ms;    // how often the spool is flushed at most
  Duration disk_within = 20s;      // a disk that takes longer hangs
  Backoff retry = {.first = 100ms, .cap = 2s};
  friend bool operator==(const PublisherSettings&, const PublisherSettings&) = default;
};

struct PublisherHooks {
  // The bus refused the version, so another owner has the camera. Called once for each version.
  std::function<void(const CameraId&, lease::Version)> on_stale = {};
  // A live event is handed to the bus: the time since its picture was decoded.
  std::function<void(Duration)> on_handed = {};
  std::function<double()> draw = random_unit;  // spreads retries
};

class Lane;

class Publisher final : public Outlet {
 public:
  Publisher(boost::asio::io_context& io, Clock& clock, EventBus& bus, Spool& spool, PublisherSettings settings = {},
            PublisherHooks hooks = {});
  ~Publisher() override;
  Publisher(const Publisher&) = delete;

  // Runs until `flush_and_stop` is done.
  boost::asio::awaitable<void> run();

  // An event that is not stamped yet. `decoded`: when its picture left the decoder; unset: not measured.
  void publish(CameraId camera, event::Event event, Instant decoded = {});
  void say(event::DetectionEvent seen, Instant decoded) override {
    publish(seen.place.camera, to_event(seen), decoded);
  }
  void say(event::StreamStatus status, event::Kind kind) override {
    publish(status.place.camera, to_event(status, kind));
  }
  void say(event::StreamErrorEvent error) override { publish(error.place.camera, to_event(error)); }
  // The right to publish for the camera. `adopt`: the tenure whose spool may be taken over. `after`: no live
  // detection captured at or before it is sent. A version below the present one is ignored, and so is the present one
  // after `silence`; one that `extends`, whatever its version.
  void set_lease(CameraId camera, lease::Version version, lease::Tenure tenure, Instant valid_until,
                 std::optional<lease::Tenure> adopt = {}, std::optional<WallTime> after = {},
                 bool extends = false);
  void set_right(const link::LeaseGrant& right) override {
    set_lease(right.camera, right.version, right.tenure, right.valid_until, right.adopt, right.after, right.extends);
  }
  // Another owner has the camera: all its events are dropped.
  void lost(CameraId camera) override;
  // Sends what waits in memory where that is possible at once, keeps the rest on disk for the next worker that
  // publishes, and lets go of the disk. When it returns nothing is in flight; it returns the capture time of the last
  // detection handed to the bus. Until a higher version comes, further events are dropped, the latest status aside.
  boost::asio::awaitable<std::optional<WallTime>> silence(CameraId camera) override;
  // The camera is no longer this worker's; what was not sent stays on disk. Called after the camera's threads have
  // ended.
  void forget(CameraId camera) override;
  // Sends what may be sent until `deadline`, puts the rest on disk, and ends `run`.
  boost::asio::awaitable<void> flush_and_stop(Instant deadline);

  PublisherCounters counters() const override { return inbox_.counters(); }

 private:
  using Action = Inbox::Action;
  using Answer = std::optional<Result<std::vector<Confirmation>>>;
  struct Slice;
  struct Batch;

  // Any thread. False: the publisher has stopped.
  bool submit(Action action);
  void wake_after(Inbox::Put put);

  // Publisher's thread.
  void take_inbox();
  void accept(Inbox::Said said);
  void begin(CameraId camera, lease::Version version, lease::Tenure tenure, Instant valid_until,
             std::optional<lease::Tenure> adopt, std::optional<WallTime> after, bool extends);
  void change_tenure(Lane& lane, lease::Tenure tenure, std::optional<lease::Tenure> adopt);
  void take_over(Lane& lane, std::optional<WallTime>& after);
  void end(const CameraId& camera, bool lost);
  Lane& lane_of(const CameraId& camera);

  bool live(const Lane& lane) const;
  void settle(Lane& lane);
  void spill(Lane& lane);
  void put_away(Lane& lane);
  void drop_queue(Lane& lane, Drop why);

  Batch next_batch();
  void fill(Batch& batch, Lane& lane, size_t share);
  boost::asio::awaitable<void> send(Batch& batch);
  boost::asio::awaitable<void> patience(Instant sent);
  void conclude(const Batch& batch, const Answer& answer);
  void confirm(const Batch& batch, const std::vector<Confirmation>& answers);
  void take_off(Lane& lane, const Slice& slice, size_t events);
  void failed(const Batch& batch, const Error& error);
  void drop_refused(const Batch& batch, const Error& error);

  boost::asio::awaitable<void> pause(Instant until);
  bool wants_to_speak(Instant now) const;
  Instant wake_at() const;
  void flush_when_due();
  void finish();
  void show_counters();

  // Constant after construction.
  boost::asio::io_context& io_;
  Clock& clock_;
  EventBus& bus_;
  Spool& spool_;
  const PublisherSettings settings_;
  const PublisherHooks hooks_;

  Inbox inbox_;  // any thread

  // Publisher's thread only.
  std::map<CameraId, std::unique_ptr<Lane>> lanes_;
  std::uint64_t serials_ = 0;
  std::uint64_t turn_ = 0;  // who comes first in the next batch
  PublisherCounters counters_;
  // How the bus has answered lately.
  struct BusHealth {
    size_t batch_limit;  // smaller while an event that the bus calls wrong is searched for
    bool down = false;
    int failures = 0;  // in a row
    Instant retry_at{};
  } health_;
  Instant flush_at_ = Instant::max();
  Duration flush_pause_;
  std::optional<Instant> stop_by_;
  std::vector<Action> when_stopped_;
  boost::asio::steady_timer signal_;
  bool woken_ = false;
};

}  // namespace weir::worker
