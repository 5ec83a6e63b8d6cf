// The publisher as other threads see it: calls become entries of its inbox, taken in order on the publisher's thread.
#include "weir/worker/publisher.hpp"

#include "publisher_lane.hpp"

#include "weir/base/log.hpp"

#include <boost/asio/async_result.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace weir::worker {

namespace asio = boost::asio;

namespace {

// Starts something that calls back from another thread, and resumes here with what it brought.
template <class T, class Start>
asio::awaitable<T> called_back(Start start) {
  auto initiate = [&start](auto handler) {
    // The executor's outstanding work keeps the caller's loop alive until it is called.
    auto executor = asio::prefer(asio::get_associated_executor(handler), asio::execution::outstanding_work.tracked);
    auto shared = std::make_shared<decltype(handler)>(std::move(handler));
    start([shared, executor](T value) {
      asio::post(executor, [shared, value = std::move(value)]() mutable { std::move (*shared)(std::move(value)); });
    });
  };
  co_return co_await asio::async_initiate<const asio::use_awaitable_t<>, void(T)>(initiate, asio::use_awaitable);
}

}  // namespace

// ---- any thread ----

bool Publisher::submit(Action action) {
  Inbox::Put put = inbox_.put(std::move(action));
  wake_after(put);
  return put != Inbox::Put::refused;
}

void Publisher::publish(CameraId camera, event::Event event, Instant decoded) {
  wake_after(inbox_.put(Inbox::Said{std::move(camera), std::move(event), decoded}));
}

void Publisher::wake_after(Inbox::Put put) {
  if (put == Inbox::Put::first) asio::post(io_, [this] { take_inbox(); });
}

void Publisher::set_lease(CameraId camera, lease::Version version, lease::Tenure tenure, Instant valid_until,
                          std::optional<lease::Tenure> adopt, std::optional<WallTime> after, bool extends) {
  submit([=, this] { begin(camera, version, tenure, valid_until, adopt, after, extends); });
}

void Publisher::lost(CameraId camera) {
  submit([=, this] { end(camera, true); });
}

void Publisher::forget(CameraId camera) {
  submit([=, this] { end(camera, false); });
}

asio::awaitable<std::optional<WallTime>> Publisher::silence(CameraId camera) {
  using Done = std::function<void(std::optional<WallTime>)>;
  return called_back<std::optional<WallTime>>([this, camera](Done done) {
    auto hush = [this, camera, done] {
      auto found = lanes_.find(camera);
      if (found == lanes_.end()) return done({});
      Lane& lane = *found->second;
      lane.waiting.push_back(done);
      if (lane.voice == Voice::speaking) {
        lane.voice = Voice::closing;
        lane.close_by = clock_.now() + settings_.close_within;
      }
      settle(lane);
    };
    if (!submit(hush)) done({});
  });
}

asio::awaitable<void> Publisher::flush_and_stop(Instant deadline) {
  using Done = std::function<void(bool)>;
  co_await called_back<bool>([this, deadline](Done done) {
    auto stop = [this, deadline, done] {
      stop_by_ = std::min(deadline, stop_by_.value_or(deadline));
      when_stopped_.push_back([done] { done(true); });
    };
    if (!submit(stop)) done(false);
  });
}

// ---- publisher's thread ----

void Publisher::take_inbox() {
  Inbox::Entries taken = inbox_.take();
  for (auto& each : taken)
    if (auto* said = std::get_if<Inbox::Said>(&each)) accept(std::move(*said));
    else std::get<Action>(each)();
  flush_when_due();
  if (taken.empty()) return;
  show_counters();
  woken_ = true;
  signal_.cancel();
}

void Publisher::show_counters() {
  counters_.queued = 0;
  for (const auto& [camera, lane] : lanes_) counters_.queued += lane->queue.size();
  SpoolCounts disk = spool_.counts();
  counters_.spool_bytes = disk.bytes;
  counters_.disk_trouble = disk.disk_trouble;
  PublisherCounters shown = counters_;
  shown.drop(Drop::spool_full, disk.overflowed);
  shown.drop(Drop::spool_damaged, disk.damaged);
  inbox_.show(shown);
}

Lane& Publisher::lane_of(const CameraId& camera) {
  auto& lane = lanes_[camera];
  if (!lane) lane = std::make_unique<Lane>(camera, ++serials_);
  return *lane;
}

void Publisher::accept(Inbox::Said said) {
  Lane& lane = lane_of(said.camera);
  event::Event& event = said.event;
  bool speaking = lane.voice == Voice::speaking;
  if (!speaking || !lane.tenure) {
    if (event.kind == event::Kind::status) lane.edge = std::move(event);
    else if (speaking && event.kind == event::Kind::detection)
      lane.stand_by({std::move(event), said.decoded}, counters_);
    else counters_.drop(speaking ? Drop::no_lease : Drop::silent);
    return;
  }
  if (lane.too_early(event)) return counters_.drop(Drop::before_cutover);
  lane.push({std::move(event), said.decoded}, settings_, counters_);
  settle(lane);
}

void Publisher::begin(CameraId camera, lease::Version version, lease::Tenure tenure, Instant valid_until,
                      std::optional<lease::Tenure> adopt, std::optional<WallTime> after, bool extends) {
  Lane& lane = lane_of(camera);
  bool known = lane.tenure.has_value();
  if (known && extends && lane.voice != Voice::speaking) return;  // overtaken by the order to be silent
  if (known && version < lane.version) return;  // overtaken on its way here
  if (known && version == lane.version) {
    if (lane.voice == Voice::speaking) lane.valid_until = std::max(lane.valid_until, valid_until);
    return;
  }
  bool reopen = lane.tenure != tenure || lane.voice == Voice::silent;
  if (lane.tenure != tenure) change_tenure(lane, tenure, adopt);
  lane.version = version;
  lane.valid_until = valid_until;
  lane.voice = Voice::speaking;
  if (reopen) take_over(lane, after);
  std::optional<Lane::Now> cutover;
  if (after) {
    cutover = {clock_.now(), clock_.wall()};
    after = std::min(*after, cutover->wall);  // a moment to come is one from before the clock was set back
  }
  lane.begin_after(after, counters_);
  if (!known) lane.end_standby(cutover, settings_, counters_);
  settle(lane);
}

void Publisher::change_tenure(Lane& lane, lease::Tenure tenure, std::optional<lease::Tenure> adopt) {
  if (lane.tenure && lane.tenure != adopt) drop_queue(lane, Drop::other_tenure);
  if (adopt)
    if (Status adopted = spool_.adopt(lane.camera, *adopt, tenure); !adopted)
      log::warn("spool.not_adopted", adopted.error().message).with("camera_uuid", lane.camera);
  counters_.drop(Drop::other_tenure, spool_.drop_others(lane.camera, tenure));
  lane.tenure = tenure;
}

// What an earlier process of this tenure could not send goes before everything live.
void Publisher::take_over(Lane& lane, std::optional<WallTime>& after) {
  auto found = spool_.open(lane.camera, *lane.tenure);
  if (!found) {
    log::warn("spool.not_opened", found.error().message).with("camera_uuid", lane.camera);
    return;
  }
  lane.backlog = found->events > 0;
  // After a cutover the spool tells of moments that this process saw too: they are published from the spool only.
  if (after && found->newest) after = std::max(*after, *found->newest);
}

void Publisher::end(const CameraId& camera, bool lost) {
  auto found = lanes_.find(camera);
  if (found == lanes_.end()) return;
  Lane& lane = *found->second;
  if (lost) {
    lane.end_standby({}, settings_, counters_);
    drop_queue(lane, Drop::lost);
    if (lane.tenure) counters_.drop(Drop::lost, spool_.drop(camera, *lane.tenure));
  } else {
    put_away(lane);
  }
  for (auto& done : lane.waiting) done(lane.handed);
  lanes_.erase(found);
}

}  // namespace weir::worker
