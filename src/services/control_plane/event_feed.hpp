// EventFeed: carries events from the event log to every subscriber.
//
// One reader follows the log's end, woken by appends of this control plane and looking by itself for those of others,
// and turns each page into the text that is sent, once. The last few megabytes of pages are the window. A subscriber
// that resumes further back reads the log by itself until it has reached the window, a few of them at a time, so that
// the store has time for others; a subscriber that had reached the window and falls out of it is too slow and is cut
// off with a reason. No subscriber is sent an event twice or out of order on one stream, and where events were
// forgotten before they could be sent, a `gap` frame says so. Nothing is read while nobody listens or watches. Loop
// thread only.
#pragma once

#include "instruments.hpp"

#include "weir/base/clock.hpp"
#include "weir/event/pattern.hpp"
#include "weir/net/http.hpp"
#include "weir/ports/event_log.hpp"

#include <boost/asio/steady_timer.hpp>

#include <deque>
#include <list>
#include <memory>
#include <optional>

namespace weir::control_plane {

// Signal: wakes every coroutine that waits on it. A waiter checks its condition before it waits and after.
class Signal {
 public:
  void notify() {
    if (timer_) timer_->cancel();
  }
  // Returns when it is notified, or when `limit` has passed.
  boost::asio::awaitable<void> wait(Clock& clock, Duration limit);

 private:
  std::optional<boost::asio::steady_timer> timer_;  // never expires
};

// Sees every event as the feed's reader reads it.
class FeedWatcher {
 public:
  virtual ~FeedWatcher() = default;
  virtual void note(const StoredEvent& event, Instant now) = 0;
  virtual void forget() = 0;  // events were missed
  virtual void read(Instant) {}  // everything that was there has been noted
};

struct Listener {
  event::TopicPattern pattern;
  TenantId tenant = {};              // empty: all
  EventPlace after = {};
  std::optional<std::string> gap = {};  // why something is missing before `after`
  WallTime until = WallTime::max();  // the token's end
  std::string name = {};             // for the log
};

class EventFeed {
 public:
  EventFeed(EventLog& log, Clock& clock, Instruments& instruments, size_t window_bytes)
      : log_(log), clock_(clock), instruments_(instruments), window_bytes_(window_bytes) {}

  // The reader then also reads while there is no subscriber. Called before `run`.
  void watch(FeedWatcher& watcher) { watchers_.push_back(&watcher); }
  void wake();
  // The reader: runs until it is cancelled.
  boost::asio::awaitable<void> run();
  // Sends what the listener asked for, until it is cut off or gone.
  boost::asio::awaitable<void> serve(Listener listener, net::EventStream& out);
  // A page of the log for a subscriber that is behind, when it is that subscriber's turn.
  boost::asio::awaitable<Result<EventPage>> read_behind(std::int64_t after, int limit);

 private:
  struct Frame {
    std::int64_t sequence;
    TenantId tenant;
    std::string routing_key;
    std::string text;
  };
  struct Page {
    std::int64_t after, to;  // holds everything in (after, to]
    std::vector<Frame> frames;
    size_t bytes = 0;
  };
  using PagePtr = std::shared_ptr<const Page>;
  class Attendance;
  class Turn;

  PagePtr page_of(std::int64_t after, EventPage read) const;
  boost::asio::awaitable<bool> read_on();
  void restart(std::int64_t epoch, std::int64_t at);
  std::int64_t window_begin() const { return window_.empty() ? at_ : window_.front()->after; }
  PagePtr next_page(std::int64_t at) const;
  void call_next();
  boost::asio::awaitable<Result<PagePtr>> catch_up(Listener& listener);
  boost::asio::awaitable<Status> deliver(Listener& listener, const Page& page, net::EventStream& out);
  boost::asio::awaitable<void> serve_pages(Listener& listener, net::EventStream& out);

  EventLog& log_;
  Clock& clock_;
  Instruments& instruments_;
  const size_t window_bytes_;
  std::vector<FeedWatcher*> watchers_;

  bool following_ = false;       // at_ and epoch_ are known
  std::int64_t epoch_ = 0;
  std::int64_t at_ = 0;          // the window's end
  std::uint64_t lives_ = 0;      // rises when continuity was lost; everybody must resume
  std::deque<PagePtr> window_;
  size_t held_bytes_ = 0;
  int listeners_ = 0;
  int reads_ = 0;                // of those who are behind
  std::list<boost::asio::steady_timer> waiting_;  // for their turn, in the order in which they came
  bool woken_ = false;
  Signal wake_reader_, wake_listeners_;
};

}  // namespace weir::control_plane
