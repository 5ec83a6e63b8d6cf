#include "event_feed.hpp"

#include "event_bodies.hpp"

#include "weir/base/json.hpp"
#include "weir/base/log.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace weir::control_plane {

namespace asio = boost::asio;

namespace {
constexpr int kPageEvents = 1000;
constexpr size_t kSendBytes = 64 << 10;     // what a slow client must take within the server's write time-out
constexpr int kReadsAtOnce = 4;             // of all that are behind
constexpr Duration kGather = 4ms;           // appends that come close together share a read
constexpr Duration kLookMax = 200ms;        // for events that another control plane appended
constexpr Duration kAway = 250ms;           // before the store is asked again
constexpr Duration kProgress = 5s;          // how often a listener whom nothing concerns is told how far it has come
constexpr Duration kIdle = 30s;

std::string error_frame(std::string_view code, std::string_view message) {
  return net::event_text("", "error", json::to_text(json::object{{"code", code}, {"message", message}}));
}
// The two sides of a wait. Each is a coroutine of its own, which by itself would listen to the hardest cancellation only.
asio::awaitable<void> notified(asio::steady_timer& timer) {
  co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
  co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
}
asio::awaitable<void> passed(Clock& clock, Duration limit) {
  co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
  co_await clock.wait(limit);
}
}  // namespace

asio::awaitable<void> Signal::wait(Clock& clock, Duration limit) {
  using namespace asio::experimental::awaitable_operators;
  if (!timer_) timer_.emplace(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
  co_await (notified(*timer_) || passed(clock, limit));
}

void EventFeed::wake() {
  woken_ = true;
  wake_reader_.notify();
}

// ---- the reader ----

EventFeed::PagePtr EventFeed::page_of(std::int64_t after, EventPage read) const {
  auto page = std::make_shared<Page>(Page{after, read.scanned_to, {}});
  page->frames.reserve(read.events.size());
  for (StoredEvent& event : read.events) {
    std::string text =
        net::event_text(cursor_text({read.epoch, event.sequence}), event.topic, write_event_data(event));
    page->bytes += text.size();
    page->frames.push_back({event.sequence, std::move(event.tenant), std::move(event.routing_key), std::move(text)});
  }
  return page;
}

void EventFeed::restart(std::int64_t epoch, std::int64_t at) {
  following_ = true;
  epoch_ = epoch;
  at_ = at;
  ++lives_;
  window_.clear();
  held_bytes_ = 0;
  for (FeedWatcher* watcher : watchers_) watcher->forget();
  wake_listeners_.notify();
}

// True if there may be more at once.
asio::awaitable<bool> EventFeed::read_on() {
  std::int64_t after = at_;
  auto read = co_await log_.read(after, kPageEvents);
  if (!read) {
    co_await wake_reader_.wait(clock_, kAway);
    co_return false;
  }
  if (read->epoch != epoch_ || read->forgotten_to > after) {
    log::warn("events.feed_restarted", "events were forgotten or lost before they were read; listeners must resume");
    restart(read->epoch, std::max(read->scanned_to, read->forgotten_to));
    co_return false;
  }
  bool more = read->more;
  for (FeedWatcher* watcher : watchers_) {
    for (const StoredEvent& event : read->events) watcher->note(event, clock_.now());
    if (!more) watcher->read(clock_.now());
  }
  if (read->events.empty()) co_return false;
  instruments_.event_lag(clock_.wall() - read->events.back().stored_at);
  PagePtr page = page_of(after, *std::move(read));
  at_ = page->to;
  held_bytes_ += page->bytes;
  window_.push_back(std::move(page));
  while (window_.size() > 1 && (held_bytes_ > window_bytes_ || listeners_ == 0)) {
    held_bytes_ -= window_.front()->bytes;
    window_.pop_front();
  }
  wake_listeners_.notify();
  co_return more;
}

asio::awaitable<void> EventFeed::run() {
  co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
  co_await asio::this_coro::throw_if_cancelled(false);
  Duration pause = kGather;
  while ((co_await asio::this_coro::cancellation_state).cancelled() == asio::cancellation_type::none) {
    if (listeners_ == 0 && watchers_.empty()) {
      following_ = false;
      window_.clear();
      held_bytes_ = 0;
      co_await wake_reader_.wait(clock_, kIdle);
      continue;
    }
    if (!following_) {
      auto newest = co_await log_.newest();
      if (newest) restart(newest->epoch, newest->sequence);
      else co_await wake_reader_.wait(clock_, kAway);
      continue;
    }
    woken_ = false;
    if (co_await read_on()) continue;
    co_await clock_.wait(kGather);
    // An append that is not visible yet, because an older transaction still runs, is looked for again soon.
    pause = woken_ ? kGather : std::min(pause * 2, kLookMax);
    if (!woken_) co_await wake_reader_.wait(clock_, pause);
    if (woken_) pause = kGather;
  }
}

// ---- listeners ----

class EventFeed::Attendance {
 public:
  explicit Attendance(EventFeed& feed) : feed_(feed) { count(1); }
  ~Attendance() { count(-1); }
  Attendance(const Attendance&) = delete;

 private:
  void count(int by) {
    feed_.listeners_ += by;
    feed_.instruments_.event_listeners(feed_.listeners_);
    feed_.wake_reader_.notify();
  }
  EventFeed& feed_;
};

EventFeed::PagePtr EventFeed::next_page(std::int64_t at) const {
  auto found = std::ranges::upper_bound(window_, at, {}, [](const PagePtr& page) { return page->to; });
  return found == window_.end() ? nullptr : *found;
}

class EventFeed::Turn {
 public:
  Turn(EventFeed& feed, const asio::any_io_executor& on)
      : feed_(feed), place_(feed.waiting_.emplace(feed.waiting_.end(), on, asio::steady_timer::time_point::max())) {}
  // However the turn ended, in the queue or after a read: the next subscriber gets its turn.
  ~Turn() {
    if (here_) --feed_.reads_;
    else feed_.waiting_.erase(place_);
    feed_.call_next();
  }
  Turn(const Turn&) = delete;

  asio::awaitable<void> come() {
    while (feed_.reads_ == kReadsAtOnce || place_ != feed_.waiting_.begin())
      co_await place_->async_wait(asio::as_tuple(asio::use_awaitable));
    feed_.waiting_.erase(place_);
    here_ = true;
    ++feed_.reads_;
    feed_.call_next();
  }

 private:
  EventFeed& feed_;
  std::list<asio::steady_timer>::iterator place_;
  bool here_ = false;
};

void EventFeed::call_next() {
  if (reads_ < kReadsAtOnce && !waiting_.empty()) waiting_.front().cancel();
}

asio::awaitable<Result<EventPage>> EventFeed::read_behind(std::int64_t after, int limit) {
  Turn turn(*this, co_await asio::this_coro::executor);
  co_await turn.come();
  co_return co_await log_.read(after, limit);
}

asio::awaitable<Result<EventFeed::PagePtr>> EventFeed::catch_up(Listener& listener) {
  CO_TRY(read, co_await read_behind(listener.after.sequence, kPageEvents / 2));
  if (read.forgotten_to > listener.after.sequence) {
    listener.gap = "events after the last one received are no longer kept";
    listener.after.sequence = read.forgotten_to;
    std::erase_if(read.events, [&](const StoredEvent& event) { return event.sequence <= read.forgotten_to; });
    read.scanned_to = std::max(read.scanned_to, read.forgotten_to);
  }
  co_return page_of(listener.after.sequence, std::move(read));
}

asio::awaitable<Status> EventFeed::deliver(Listener& listener, const Page& page, net::EventStream& out) {
  std::string text;
  if (listener.gap) {
    text = net::event_text(cursor_text(listener.after), "gap", json::to_text(json::object{{"message", *listener.gap}}));
    listener.gap.reset();
  }
  for (const Frame& frame : page.frames) {
    bool wanted = frame.sequence > listener.after.sequence &&
                  (listener.tenant.empty() || frame.tenant == listener.tenant) &&
                  listener.pattern.matches(frame.routing_key);
    if (!wanted) continue;
    text += frame.text;
    if (text.size() < kSendBytes) continue;
    CO_TRY(sent, co_await out.send_text(text));
    text.clear();
  }
  listener.after.sequence = std::max(listener.after.sequence, page.to);
  if (!text.empty()) co_return co_await out.send_text(text);
  co_return ok();
}

asio::awaitable<void> EventFeed::serve(Listener listener, net::EventStream& out) {
  Attendance attendance(*this);
  while (!following_) co_await wake_listeners_.wait(clock_, kIdle);
  co_await serve_pages(listener, out);
}

asio::awaitable<void> EventFeed::serve_pages(Listener& listener, net::EventStream& out) {
  std::uint64_t life = lives_;
  bool caught_up = false;
  Instant told = clock_.now();
  if (listener.gap) {
    Page nothing{0, 0, {}};
    Status told_gap = co_await deliver(listener, nothing, out);
    if (!told_gap) co_return;
  }
  for (;;) {
    std::string end;
    if (life != lives_ || epoch_ != listener.after.epoch)
      end = error_frame("feed_restarted", "the feed lost its continuity; resume from the last event received");
    else if (clock_.wall() >= listener.until)
      end = error_frame("token_expired", "the token has expired; resume with a fresh one");
    bool behind = listener.after.sequence < window_begin();
    if (behind && caught_up) {
      end = error_frame("slow_subscriber", "events came faster than they were read; resume from the last one received");
      log::warn("events.slow_subscriber", "cut off").with("subscriber", listener.name);
      instruments_.event_listener_cut();
    }
    if (!end.empty()) {
      co_await out.send_text(end);
      co_return;
    }
    PagePtr page;
    if (behind) {
      auto read = co_await catch_up(listener);
      if (read) page = *std::move(read);
      else co_await clock_.wait(kAway);
    } else {
      caught_up = true;
      page = next_page(listener.after.sequence);
      Duration left = std::max(listener.until - clock_.wall(), Duration(1ms));
      if (!page) co_await wake_listeners_.wait(clock_, std::min<Duration>(kIdle, left));
    }
    if (!page) continue;
    std::int64_t before = listener.after.sequence;
    Status sent = co_await deliver(listener, *page, out);
    if (!sent) {
      // A slow client and one that has gone look alike here, but only a slow one concerns the operator.
      if (caught_up && before < window_begin()) {
        log::warn("events.slow_subscriber", "a subscriber that took nothing any more was cut off")
            .with("subscriber", listener.name);
        instruments_.event_listener_cut();
      }
      co_return;
    }
    if (clock_.now() - told < kProgress) continue;
    told = clock_.now();
    Status noted = co_await out.send_text(fmt::format("id: {}\n\n", cursor_text(listener.after)));
    if (!noted) co_return;
  }
}

}  // namespace weir::control_plane
