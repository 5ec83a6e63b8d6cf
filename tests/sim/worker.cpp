// The worker, which captures and publishes for the cameras it was given, and the sink, which fences.
#include "parts.hpp"

namespace weir::sim {

using runner::Message;

// ---- what its manager tells it ----

Seat& World::seat(Node& node, const WorkerPtr& w, int camera) {
  auto [found, fresh] = w->seats.try_emplace(camera);
  if (fresh) {
    int life = ++lives_;
    found->second.batch = 0;
    found->second.life = life;
    dial(node, w, camera, life);
    in(rng_.between(200ms, 900ms), [this, &node, w, camera, life] { capture(node, w, camera, life); });
  }
  return found->second;
}

Seat* World::find_seat(const WorkerPtr& w, int camera, int life) const {
  auto found = w->seats.find(camera);
  return found == w->seats.end() || found->second.life != life ? nullptr : &found->second;
}

runner::Told World::obey(Node& node, const ManagerPtr& m, const WorkerPtr& w, const runner::Tell& message, Duration left) {
  runner::Told told{.message = message.message, .ok = true};
  for (const runner::TellItem& item : message.items) {
    int camera = index_of(item.camera);
    auto found = w->seats.find(camera);
    switch (message.what) {
      case Message::add:
        seat(node, w, camera);
        give_right(node, m, w, camera, item, left);
        break;
      case Message::activate:
      case Message::extend:
        if (found != w->seats.end()) give_right(node, m, w, camera, item, left);
        break;
      case Message::silence:
      case Message::remove:
        if (found == w->seats.end()) break;
        if (found->second.last_capture >= 0) told.last_capture[item.camera] = WallTime(Duration(found->second.last_capture));
        found->second.version = {};
        found->second.in_flight = false;
        found->second.batch = ++batches_;
        if (message.what == Message::remove) w->seats.erase(found);
        break;
      case Message::lose:
        node.disk[static_cast<size_t>(camera)].events.clear();
        w->seats.erase(camera);
        break;
      case Message::drain: break;
    }
  }
  if (message.what == Message::drain) end_worker(node, m, w->number, 0);
  return told;
}

void World::give_right(Node& node, const ManagerPtr& m, const WorkerPtr& w, int camera, const runner::TellItem& item,
                       Duration left) {
  Seat& s = w->seats.at(camera);
  lease::Speak right = *item.right;
  // Planted: whoever speaks next gets the version of whoever spoke before.
  bool starts = s.version == Version{};
  if (options_.planted == Planted::one_version_two_starts && starts && m->last_handed.contains(camera))
    right.version = m->last_handed[camera];
  m->last_handed[camera] = right.version;
  if (right.version < s.version) return;
  Spool& spool = node.disk[static_cast<size_t>(camera)];
  lease::Tenure tenure{m->owner.boot, right.grant};
  if (spool.tenure != tenure) {
    bool adopt = right.adopt && *right.adopt == spool.tenure;
    if (!adopt && options_.planted != Planted::foreign_spool) spool.events.clear();
    spool.tenure = tenure;
  }
  s.version = right.version;
  s.grant = right.grant;
  s.valid_until = options_.planted == Planted::relative_deadline ? local(node) + left : right.valid_until;
  auto known = m->right.find(right.version);
  s.right_until = known == m->right.end() ? -1 : known->second;
  if (item.after) s.after = std::max(s.after, item.after->time_since_epoch().count());
  pump(node, w, camera);
}

// ---- what it does ----

void World::dial(Node& node, const WorkerPtr& w, int camera, int life) {
  in(rng_.between(200ms, 1200ms), [this, &node, w, camera, life] {
    deliver(w, [this, &node, w, camera, life] {
      Seat* s = find_seat(w, camera, life);
      if (s == nullptr || s->streaming) return;
      s->streaming = node.reaches[static_cast<size_t>(camera)];
      if (s->streaming) return;
      ++s->failures;
      dial(node, w, camera, life);
    });
  });
}

// How the manager sees it: twice a second or so, and not at all while either is stopped.
void World::look(Node& node, const ManagerPtr& m, const WorkerPtr& w) {
  if (!w->alive || !m->alive) return;
  in(rng_.between(500ms, 700ms), [this, &node, m, w] { look(node, m, w); });
  if (w->paused) return;
  runner::WorkerHeard heard{.worker = w->number};
  for (const auto& [camera, s] : w->seats) {
    bool hides = options_.planted == Planted::never_lets_go;
    heard.cameras.push_back({.camera = cameras_[static_cast<size_t>(camera)], .streaming = s.streaming,
                             .failures = hides ? 0 : s.failures, .error = restart::StreamErrorCode::tcp_timeout});
  }
  deliver(m, [this, &node, m, heard] { feed(node, m, heard); });
}

void World::capture(Node& node, const WorkerPtr& w, int camera, int life) {
  if (!w->alive || find_seat(w, camera, life) == nullptr) return;
  in(rng_.between(600ms, 1000ms), [this, &node, w, camera, life] { capture(node, w, camera, life); });
  Seat& s = *find_seat(w, camera, life);
  // Without a version it looks, but keeps nothing: what it would keep, another process may be speaking about.
  if (w->paused || !s.streaming || s.version == Version{} || now_ <= s.after) return;
  auto& events = node.disk[static_cast<size_t>(camera)].events;
  events.push_back({++event_ids_, now_});
  s.last_capture = now_;
  if (events.size() > 300) events.pop_front();
  pump(node, w, camera);
}

// One batch in flight: what is not confirmed is sent again before anything newer.
void World::pump(Node& node, const WorkerPtr& w, int camera) {
  auto found = w->seats.find(camera);
  if (!w->alive || w->paused || found == w->seats.end()) return;
  Seat& s = found->second;
  if (s.in_flight || node.disk[static_cast<size_t>(camera)].events.empty() || !gate_open(node, s)) return;
  s.in_flight = true;
  std::uint64_t batch = s.batch = ++batches_;
  bool blocks = faulty() && faults_.blocking && rng_.chance(0.1);
  if (!blocks) return publish(node, w, camera, batch);
  in(rng_.between(100ms, 6s), [this, &node, w, camera, batch] {
    deliver(w, [this, &node, w, camera, batch] { publish(node, w, camera, batch); });
  });
}

void World::publish(Node& node, const WorkerPtr& w, int camera, std::uint64_t batch) {
  auto found = w->seats.find(camera);
  if (!w->alive || found == w->seats.end() || found->second.batch != batch) return;
  Seat& s = found->second;
  auto& spool = node.disk[static_cast<size_t>(camera)].events;
  // After anything that can block the gate is looked at again.
  if (spool.empty() || (!gate_open(node, s) && options_.planted != Planted::no_check_after_wait)) {
    s.in_flight = false;
    return;
  }
  checks_->emitted(now_, cameras_[static_cast<size_t>(camera)], s.version, w->process, s.right_until);
  std::vector<Event> events(spool.begin(), spool.begin() + std::min<std::ptrdiff_t>(30, std::ssize(spool)));
  Duration delay = faulty() && faults_.late_bytes && rng_.chance(0.1) ? rng_.between(500ms, 20s) : latency();
  if (!lost(node) && now_ >= node.cut_out_until)
    in(delay, [=, this, &node, owner = node.manager->owner, version = s.version, events = std::move(events)] {
      arrive(node, w, owner, version, camera, events, batch);
    });
  in(1s, [this, &node, w, camera, batch] {
    deliver(w, [this, &node, w, camera, batch] {
      auto still = w->seats.find(camera);
      if (still == w->seats.end() || still->second.batch != batch || !still->second.in_flight) return;
      still->second.in_flight = false;
      pump(node, w, camera);
    });
  });
}

// ---- the sink ----

void World::arrive(Node& node, const WorkerPtr& w, const lease::Owner& owner, Version version, int camera,
                   std::vector<Event> events, std::uint64_t batch) {
  if (now_ < store_down_until_ || now_ < store_stalled_until_) return;
  lease::LeaseRow row = store_->row(cameras_[static_cast<size_t>(camera)]);
  if (options_.planted == Planted::fence_as_snapshot) {
    in(rng_.between(0s, 3s), [=, this, &node] { insert(node, w, camera, version, events, row, owner, batch); });
    return;
  }
  insert(node, w, camera, version, events, row, owner, batch);
}

void World::insert(Node& node, const WorkerPtr& w, int camera, Version version, const std::vector<Event>& events,
                   const lease::LeaseRow& row, const lease::Owner& owner, std::uint64_t batch) {
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
      auto found = w->seats.find(camera);
      if (found == w->seats.end() || found->second.batch != batch) return;
      found->second.in_flight = false;
      if (!current) return;  // the version is not the row's: the manager will hear why
      auto& spool = node.disk[static_cast<size_t>(camera)].events;
      while (!spool.empty() && spool.front().id <= events.back().id) spool.pop_front();
      pump(node, w, camera);
    });
  });
}

}  // namespace weir::sim
