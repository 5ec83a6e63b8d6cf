// EventFeed: from the event log to everybody who listens.
//
// One reader follows the log's end, woken by appends of this control plane and looking by itself for those of others,
// and turns each page into the text that is sent, once. The last few megabytes of pages are the window. A subscriber
// that resumes further back reads the log by itself until it has reached the window, a few of them at a time, so that
// the store has time for others; one that was there already and falls out of it is too slow and is cut off with a
// reason. Nobody is sent an event twice or out of order on one stream, and where something was forgotten before it could
// be sent, a `gap` frame says so.
// Nothing is read while nobody listens or watches. Loop thread only.
#pragma once

#include "weir/base/clock.hpp"
#include "weir/control_plane/instruments.hpp"
#include "weir/control_plane/stream_board.hpp"
#include "weir/event/pattern.hpp"
#include "weir/net/http.hpp"
#include "weir/ports/event_log.hpp"

#include <boost/asio/steady_timer.hpp>

#include <deque>
#include <list>
#include <memory>
#include <optional>

namespace weir::control_plane {

// Wakes everybody who waits. A waiter looks at its condition before it waits and after.
class Signal {
 public:
  void notify() {
    if (timer_) timer_->cancel();
  }
  // Until it is notified, or `limit` has passed.
  boost::asio::awaitable<void> wait(Clock& clock, Duration limit);

 private:
  std::optional<boost::asio::steady_timer> timer_;  // never expires
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

  // Shows every event to `watcher` as it is read, and what was said before the last break in continuity no more. Then
  // the reader also reads when nobody listens. Before `run`.
  void watch(StreamBoard& watcher) { watcher_ = &watcher; }
  void wake();
  // The reader; until it is cancelled.
  boost::asio::awaitable<void> run();
  // Sends what the listener asked for, until it is cut off or gone.
  boost::asio::awaitable<void> serve(Listener listener, net::EventStream& out);
  // A page of the log for somebody who is behind, when it is their turn.
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
  StreamBoard* watcher_ = nullptr;

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
