#include "weir/worker/publisher.hpp"

#include "publisher_batch.hpp"
#include "publisher_lane.hpp"

#include "weir/base/log.hpp"

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace weir::worker {

namespace asio = boost::asio;
using namespace asio::experimental::awaitable_operators;

namespace {
asio::awaitable<void> ask(EventBus& bus, std::vector<event::Event> events,
                          std::optional<Result<std::vector<Confirmation>>>& answer) {
  answer = co_await bus.publish(std::move(events));
}
}  // namespace

Publisher::Publisher(asio::io_context& io, Clock& clock, EventBus& bus, Spool& spool, PublisherSettings settings,
                     PublisherHooks hooks)
    : io_(io),
      clock_(clock),
      bus_(bus),
      spool_(spool),
      settings_(std::move(settings)),
      hooks_(std::move(hooks)),
      inbox_(settings_.inbox_events_max),
      health_{.batch_limit = settings_.batch_events_max},
      flush_pause_(settings_.flush_every),
      signal_(io) {}

Publisher::~Publisher() = default;

// ---- the loop ----

asio::awaitable<void> Publisher::run() {
  for (;;) {
    take_inbox();
    Instant now = clock_.now();
    Batch batch;
    if (now >= health_.retry_at) batch = next_batch();
    if (stop_by_ && (now >= *stop_by_ || (batch.events.empty() && !wants_to_speak(now)))) break;
    if (batch.events.empty()) co_await pause(wake_at());
    else co_await send(batch);
  }
  finish();
}

bool Publisher::wants_to_speak(Instant now) const {
  return std::any_of(lanes_.begin(), lanes_.end(),
                     [&](const auto& each) { return each.second->may_speak(now) && each.second->waits(); });
}

Instant Publisher::wake_at() const {
  Instant at = std::min(flush_at_, stop_by_.value_or(Instant::max()));
  Instant now = clock_.now();
  return health_.retry_at > now && wants_to_speak(now) ? std::min(at, health_.retry_at) : at;
}

asio::awaitable<void> Publisher::pause(Instant until) {
  if (!std::exchange(woken_, false) && clock_.now() < until) {
    boost::system::error_code woken;
    signal_.expires_at(asio::steady_timer::time_point::max());
    co_await (signal_.async_wait(asio::redirect_error(asio::use_awaitable, woken)) || clock_.wait_until(until));
    woken_ = false;
  }
}

// Returns when a request has gone unanswered for too long; what is to be done by then may change meanwhile.
asio::awaitable<void> Publisher::patience(Instant sent) {
  for (;;) {
    // Cameras that shall fall silent and are not part of this request need not wait for its end.
    for (auto& [camera, lane] : lanes_) settle(*lane);
    Instant now = clock_.now();
    Instant until = std::min(sent + settings_.answer_within, stop_by_.value_or(Instant::max()));
    if (now >= until) co_return;
    for (auto& [camera, lane] : lanes_)
      if (lane->voice == Voice::closing && lane->close_by > now) until = std::min(until, lane->close_by);
    co_await pause(until);
  }
}

asio::awaitable<void> Publisher::send(Batch& batch) {
  show_counters();
  Answer answer;
  co_await (ask(bus_, std::move(batch.events), answer) || patience(clock_.now()));
  conclude(batch, answer);
  show_counters();
}

// ---- what the bus said ----

void Publisher::conclude(const Batch& batch, const Answer& answer) {
  for (const Slice& slice : batch.slices)
    if (auto found = lanes_.find(slice.camera); found != lanes_.end()) {
      found->second->in_flight = false;
      if (found->second->serial == slice.serial) found->second->flying = 0;
    }
  if (!answer) failed(batch, {Errc::unavailable, "bus_silent", "the bus did not answer in time"});
  else if (!*answer) failed(batch, answer->error());
  else if ((*answer)->size() != batch.size) failed(batch, {Errc::unavailable, "bus_confused", "answers are missing"});
  else confirm(batch, **answer);
  for (auto& [camera, lane] : lanes_) settle(*lane);
}

void Publisher::confirm(const Batch& batch, const std::vector<Confirmation>& answers) {
  if (std::exchange(health_.down, false)) log::info("bus.back", "the bus answers again");
  health_.failures = 0;
  ++turn_;
  health_.batch_limit = std::min(health_.batch_limit * 2, settings_.batch_events_max);
  auto answer = answers.begin();
  for (const Slice& slice : batch.slices) {
    auto end = answer + static_cast<std::ptrdiff_t>(slice.events);
    // Only the events before the first refusal are done with: the rest is sent again, in order.
    auto done = static_cast<size_t>(std::find(answer, end, Confirmation::stale) - answer);
    answer = end;
    counters_.published += done;
    counters_.stale += slice.events - done;
    auto found = lanes_.find(slice.camera);
    if (found == lanes_.end() || found->second->serial != slice.serial) continue;
    Lane& lane = *found->second;
    take_off(lane, slice, done);
    if (done == slice.events || slice.version != lane.version || lane.refused_version == lane.version) continue;
    lane.refused_version = lane.version;
    log::warn("lease.stale", "the bus refuses the version: another owner may have the camera")
        .with("camera_uuid", lane.camera)
        .with("version", lane.version.n);
    if (hooks_.on_stale) hooks_.on_stale(lane.camera, lane.version);
  }
}

void Publisher::take_off(Lane& lane, const Slice& slice, size_t events) {
  if (events == 0) return;
  if (slice.from == Slice::From::memory) lane.pop(events);
  if (slice.from == Slice::From::disk) spool_.advance(lane.camera, *lane.tenure, slice.first + events);
  if (slice.from == Slice::From::edge && lane.edge && lane.edge->event_id == slice.edge_id) lane.edge.reset();
}

void Publisher::failed(const Batch& batch, const Error& error) {
  ++counters_.bus_errors;
  // The gate keeps whoever it was out of the next batch; the others need not wait.
  if (error.reason == "deadline_passed" && health_.failures++ == 0) return;
  if (is_about_the_events(error) && batch.size > 1) {
    health_.batch_limit = batch.size / 2;
    return;
  }
  if (is_about_the_events(error)) return drop_refused(batch, error);
  if (!std::exchange(health_.down, true))
    log::warn("bus.down", "the bus does not take events: they wait").with("error", error.message);
  health_.retry_at = clock_.now() + settings_.retry.delay(health_.failures++, hooks_.draw());
}

void Publisher::drop_refused(const Batch& batch, const Error& error) {
  const Slice& slice = batch.slices.front();
  log::error("bus.refused", "the bus calls an event wrong: it is dropped")
      .with("camera_uuid", slice.camera)
      .with("error", error.message);
  counters_.drop(Drop::refused);
  auto found = lanes_.find(slice.camera);
  if (found != lanes_.end() && found->second->serial == slice.serial) take_off(*found->second, slice, 1);
}

// ---- what goes out next ----

Publisher::Batch Publisher::next_batch() {
  Batch batch;
  std::vector<Lane*> ready;
  Instant now = clock_.now();
  for (auto& [camera, lane] : lanes_) {
    settle(*lane);
    if (lane->may_speak(now) && lane->waits()) ready.push_back(lane.get());
  }
  if (ready.empty()) return batch;
  size_t share = std::max(kShareMin, health_.batch_limit / ready.size());
  for (size_t n = 0; n < ready.size() && batch.events.size() < health_.batch_limit; ++n)
    fill(batch, *ready[(turn_ + n) % ready.size()], share);
  batch.size = batch.events.size();
  return batch;
}

void Publisher::fill(Batch& batch, Lane& lane, size_t share) {
  Instant now = clock_.now();
  share = std::min(share, health_.batch_limit - batch.events.size());
  auto room = [&] { return share - std::min(share, batch.added); };
  batch.added = 0;
  if (lane.edge) {
    batch.begin(lane, Slice::From::edge).edge_id = lane.edge->event_id;
    if (!batch.add(lane, *lane.edge, settings_.batch_bytes_max)) return;
  }
  if (lane.backlog && lane.voice == Voice::speaking && room() > 0) {
    size_t bytes = settings_.batch_bytes_max - std::min(settings_.batch_bytes_max, batch.bytes);
    SpoolPage page = spool_.peek(lane.camera, *lane.tenure, room(), bytes);
    lane.backlog = page.later || !page.events.empty();
    batch.begin(lane, Slice::From::disk).first = page.first;
    for (const event::Event& event : page.events)
      if (!batch.add(lane, event, settings_.batch_bytes_max)) return;
  }
  if (lane.backlog) return;
  batch.begin(lane, Slice::From::memory);
  for (const Queued& each : lane.queue) {
    if (room() == 0 || !batch.add(lane, each.event, settings_.batch_bytes_max)) return;
    ++lane.flying;
    if (hooks_.on_handed && each.decoded != Instant{}) hooks_.on_handed(now - each.decoded);
  }
}

// ---- where a camera's events go ----

bool Publisher::live(const Lane& lane) const { return lane.may_speak(clock_.now()) && !health_.down && !lane.backlog; }

// Events that cannot be sent at once go to the disk; a camera that shall fall silent does so when nothing of it is in
// flight any more.
void Publisher::settle(Lane& lane) {
  bool closing = lane.voice == Voice::closing && !lane.in_flight;
  if (closing && (lane.queue.empty() || !live(lane) || clock_.now() >= lane.close_by)) {
    lane.voice = Voice::silent;
    put_away(lane);
  }
  if (lane.voice == Voice::speaking && !lane.queue.empty() && !live(lane)) spill(lane);
  if (lane.voice == Voice::closing || lane.in_flight) return;
  for (auto& done : std::exchange(lane.waiting, {})) done(lane.handed);
}

void Publisher::spill(Lane& lane) {
  std::uint64_t before = counters_.spooled;
  lane.spill(spool_, counters_);
  if (counters_.spooled != before && flush_at_ == Instant::max()) flush_at_ = clock_.now() + flush_pause_;
}

void Publisher::put_away(Lane& lane) {
  lane.end_standby({}, settings_, counters_);
  lane.flying = 0;
  spill(lane);
  drop_queue(lane, Drop::queue_full);
  if (lane.tenure) spool_.close(lane.camera, *lane.tenure);
  lane.backlog = false;
}

void Publisher::drop_queue(Lane& lane, Drop why) {
  counters_.drop(why, lane.queue.size());
  lane.flying = 0;
  lane.pop(lane.queue.size());
  lane.serial = ++serials_;
}

void Publisher::flush_when_due() {
  Instant begin = clock_.now();
  if (begin < flush_at_) return;
  flush_at_ = Instant::max();
  if (Status flushed = spool_.flush(); !flushed) log::debug("spool.flush", flushed.error().message);
  // A slow disk gets a fifth of the thread's time at most.
  flush_pause_ = std::max(settings_.flush_every, 4 * (clock_.now() - begin));
}

void Publisher::finish() {
  take_inbox();
  for (auto& [camera, lane] : lanes_) {
    put_away(*lane);
    for (auto& done : std::exchange(lane->waiting, {})) done(lane->handed);
  }
  lanes_.clear();
  if (Status flushed = spool_.flush(); !flushed) log::error("spool.flush", flushed.error().message);
  for (auto& each : inbox_.take(true))
    if (auto* action = std::get_if<Action>(&each)) (*action)();
    else counters_.drop(Drop::stopped);
  show_counters();
  for (Action& action : std::exchange(when_stopped_, {})) action();
}

}  // namespace weir::worker
