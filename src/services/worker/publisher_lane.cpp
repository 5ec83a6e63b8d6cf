#include "publisher_lane.hpp"

#include <algorithm>

namespace weir::worker {

namespace {
size_t bytes_of(const event::Event& event) {
  return sizeof(Queued) + event.payload.size() + event.topic.size() + event.routing_key.size() + event.event_id.size();
}
}  // namespace

void Lane::push(Queued event, const PublisherSettings& bounds, PublisherCounters& counts) {
  queue_bytes += bytes_of(event.event);
  queue.push_back(std::move(event));
  auto over = [&] { return queue.size() > bounds.queue_events_max || queue_bytes > bounds.queue_bytes_max; };
  while (queue.size() > flying + 1 && over()) {
    shed();
    counts.drop(Drop::queue_full);
  }
}

void Lane::shed() {
  auto begin = queue.begin() + static_cast<std::ptrdiff_t>(flying);
  auto victim = begin;
  for (event::Kind kind : {event::Kind::summary, event::Kind::detection, event::Kind::error}) {
    auto found = std::find_if(begin, queue.end(), [kind](const Queued& each) { return each.event.kind == kind; });
    if (found == queue.end()) continue;
    victim = found;
    break;
  }
  queue_bytes -= bytes_of(victim->event);
  queue.erase(victim);
}

void Lane::pop(size_t events) {
  for (; events > 0 && !queue.empty(); --events) {
    queue_bytes -= bytes_of(queue.front().event);
    queue.pop_front();
  }
}

void Lane::spill(Spool& spool, PublisherCounters& counts) {
  if (flying > 0 || !tenure) return;
  for (; !queue.empty(); pop(1)) {
    const event::Event& event = queue.front().event;
    if (event.kind == event::Kind::summary) {
      counts.drop(Drop::summary);
      continue;
    }
    if (!spool.append(camera, *tenure, event)) return;
    backlog = true;
    ++counts.spooled;
  }
}

void Lane::stand_by(Queued event, PublisherCounters& counts) {
  constexpr size_t kMost = 32;
  standby.push_back(std::move(event));
  if (standby.size() <= kMost) return;
  standby.pop_front();
  counts.drop(Drop::no_lease);
}

void Lane::end_standby(std::optional<Now> cutover, const PublisherSettings& bounds, PublisherCounters& counts) {
  // A picture is decoded after it was captured, by any clock that nobody has touched.
  auto set_back = [&](const Queued& each) {
    return each.decoded != Instant{} &&
           each.event.captured - cutover->wall > each.decoded - cutover->boot;
  };
  for (Queued& each : std::exchange(standby, {})) {
    if (!cutover) counts.drop(Drop::no_lease);
    else if (set_back(each) || too_early(each.event)) counts.drop(Drop::before_cutover);
    else push(std::move(each), bounds, counts);
  }
}

void Lane::begin_after(std::optional<WallTime> moment, PublisherCounters& counts) {
  after = moment;
  if (!after || flying > 0) return;
  size_t before = queue.size();
  std::erase_if(queue, [&](const Queued& each) {
    bool early = too_early(each.event);
    if (early) queue_bytes -= bytes_of(each.event);
    return early;
  });
  counts.drop(Drop::before_cutover, before - queue.size());
}

bool Lane::too_early(const event::Event& event) {
  if (!after || event.kind != event::Kind::detection) return false;
  if (event.captured <= *after) return true;
  // Frames come in order: the first one after the cutover's moment ends the comparison, so that a wall clock that is
  // set back later silences no camera.
  after.reset();
  return false;
}

}  // namespace weir::worker
