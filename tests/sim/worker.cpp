// The worker, which captures and publishes, and the sink, which fences.
#include "parts.hpp"

namespace weir::sim {

std::shared_ptr<Worker> World::start_worker(Node& node, int camera) {
  auto w = std::make_shared<Worker>();
  w->number = ++processes_;
  w->camera = camera;
  trace("node {} starts worker {} for {}", node.index, w->number, cameras_[static_cast<size_t>(camera)]);
  in(rng_.between(200ms, 900ms), [this, &node, w] { capture(node, w); });
  return w;
}

void World::dial(Node& node, const std::shared_ptr<Manager>& m, const std::shared_ptr<Worker>& w, int attempt) {
  if (!w) return;
  w->dialling = true;
  in(rng_.between(200ms, 1200ms), [this, &node, m, w, attempt] {
    deliver(w, [this, &node, m, w, attempt] {
      auto index = static_cast<size_t>(w->camera);
      if (w->streaming || m->workers[index] != w) return;
      if (node.reaches[index]) {
        w->streaming = true;
        return;
      }
      // After three failures the runner asks whether somebody else can reach it, and again every ten seconds.
      if (attempt >= 3 && options_.planted != Planted::never_lets_go)
        deliver(m, [this, &node, m, w] {
          feed(node, m, w->camera, lease::Unreachable{});
          flush(node, m);
          wake(node, m);
        });
      in(attempt >= 3 ? Duration(10s) : Duration(500ms), [this, &node, m, w, attempt] { dial(node, m, w, attempt + 1); });
    });
  });
}

void World::capture(Node& node, const std::shared_ptr<Worker>& w) {
  if (!w->alive) return;
  in(rng_.between(600ms, 1000ms), [this, &node, w] { capture(node, w); });
  if (w->paused || !w->streaming) return;
  auto& events = node.disk[static_cast<size_t>(w->camera)].events;
  events.push_back({++event_ids_, now_});
  if (events.size() > 300) events.pop_front();
  pump(node, w);
}

// One batch in flight: what is not confirmed is sent again before anything newer.
void World::pump(Node& node, const std::shared_ptr<Worker>& w) {
  if (!w->alive || w->paused || w->in_flight || node.disk[static_cast<size_t>(w->camera)].events.empty()) return;
  if (!gate_open(node, *w)) return;
  w->in_flight = true;
  std::uint64_t batch = w->batch = ++batches_;
  bool blocks = faulty() && faults_.blocking && rng_.chance(0.1);
  if (!blocks) return publish(node, w, batch);
  in(rng_.between(100ms, 6s), [this, &node, w, batch] {
    deliver(w, [this, &node, w, batch] { publish(node, w, batch); });
  });
}

void World::publish(Node& node, const std::shared_ptr<Worker>& w, std::uint64_t batch) {
  if (!w->alive || w->batch != batch) return;
  auto& spool = node.disk[static_cast<size_t>(w->camera)].events;
  // After anything that can block the gate is looked at again.
  if (spool.empty() || (!gate_open(node, *w) && options_.planted != Planted::no_check_after_wait)) {
    w->in_flight = false;
    return;
  }
  const CameraId& camera = cameras_[static_cast<size_t>(w->camera)];
  checks_->emitted(now_, camera, w->version, w->number, w->right_until);
  std::vector<Event> events(spool.begin(), spool.begin() + std::min<std::ptrdiff_t>(30, std::ssize(spool)));
  Duration delay = faulty() && faults_.late_bytes && rng_.chance(0.1) ? rng_.between(500ms, 20s) : latency();
  if (!lost(node) && now_ >= node.cut_out_until)
    in(delay, [=, this, &node, owner = node.manager->owner, version = w->version, events = std::move(events)] {
      arrive(node, w, owner, version, w->camera, events, batch);
    });
  in(1s, [this, &node, w, batch] {
    deliver(w, [this, &node, w, batch] {
      if (w->batch != batch || !w->in_flight) return;
      w->in_flight = false;
      pump(node, w);
    });
  });
}

// ---- the sink ----

void World::arrive(Node& node, const std::shared_ptr<Worker>& w, const lease::Owner& owner, Version version, int camera,
                   std::vector<Event> events, std::uint64_t batch) {
  if (now_ < store_down_until_ || now_ < store_stalled_until_) return;
  lease::LeaseRow row = store_->row(cameras_[static_cast<size_t>(camera)]);
  if (options_.planted == Planted::fence_as_snapshot) {
    in(rng_.between(0s, 3s), [=, this, &node] { insert(node, w, camera, version, events, row, owner, batch); });
    return;
  }
  insert(node, w, camera, version, events, row, owner, batch);
}

void World::insert(Node& node, const std::shared_ptr<Worker>& w, int camera, Version version,
                   const std::vector<Event>& events, const lease::LeaseRow& row, const lease::Owner& owner,
                   std::uint64_t batch) {
  bool current = lease::fence_accepts(row, owner, version, store_->state().epoch);
  if (options_.planted == Planted::fence_by_highest_seen) {
    current = version >= highest_seen_[camera];
    highest_seen_[camera] = std::max(highest_seen_[camera], version);
  }
  if (current)
    for (const Event& event : events)
      if (accepted_.insert(event.id).second) {
        note(event.id);
        checks_->accepted(now_, cameras_[static_cast<size_t>(camera)], version, event.captured);
      }
  if (lost(node) || now_ < node.cut_in_until) return;
  in(latency(), [=, this, &node] {
    deliver(w, [=, this, &node] {
      if (w->batch != batch) return;
      w->in_flight = false;
      if (!current) return;  // the version is not the row's: the manager will hear why
      auto& spool = node.disk[static_cast<size_t>(camera)].events;
      while (!spool.empty() && spool.front().id <= events.back().id) spool.pop_front();
      pump(node, w);
    });
  });
}

}  // namespace weir::sim
