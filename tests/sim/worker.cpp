// The worker, which captures and publishes for the cameras it was given, and the sink, which fences.
#include "parts.hpp"

namespace weir::sim {

// ---- what its manager tells it ----

Seat& World::seat(Node& node, const WorkerPtr& w, int camera) {
  auto [found, fresh] = w->seats.try_emplace(camera);
  if (fresh) {
    int life = ++lives_;
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

void World::obey(Node& node, const ManagerPtr& m, const WorkerPtr& w, const link::Message& message, Duration left,
                 const std::function<void(std::vector<link::LastWord> said)>& done) {
  auto said = std::make_shared<std::vector<link::LastWord>>();
  auto open = std::make_shared<int>(1);
  auto one_done = [said, open, done] {
    if (--*open == 0) done(*said);
  };
  auto silence = [&](const CameraId& id, bool removed) {
    int camera = index_of(id);
    auto found = w->seats.find(camera);
    if (found != w->seats.end() && found->second.version != Version{})
      found->second.silenced = std::exchange(found->second.version, Version{});
    if (found != w->seats.end() && removed) w->seats.erase(found);
    ++*open;
    w->voice->silence(id, [=](std::optional<WallTime> last) {
      said->push_back({id, last});
      if (removed && !w->seats.contains(camera)) w->voice->publisher().forget(id);
      one_done();
    });
  };
  if (const auto* change = std::get_if<link::ChangeSources>(&message)) {
    for (const link::Source& source : change->add) {
      seat(node, w, index_of(source.config.camera));
      give_right(node, m, w, *source.lease, left);
    }
    for (const CameraId& camera : change->remove) silence(camera, true);
  } else if (const auto* quiet = std::get_if<link::Silence>(&message)) {
    for (const CameraId& camera : quiet->cameras) silence(camera, false);
  } else if (const auto* activate = std::get_if<link::Activate>(&message)) {
    for (const link::LeaseGrant& right : activate->items) give_right(node, m, w, right, left);
  } else if (const auto* leases = std::get_if<link::Leases>(&message)) {
    for (link::LeaseGrant right : leases->items) {
      right.extends = true;
      give_right(node, m, w, right, left);
    }
    for (const CameraId& camera : leases->lost) {
      w->voice->publisher().lost(camera);
      w->seats.erase(index_of(camera));
    }
  }
  one_done();
  if (std::holds_alternative<link::Drain>(message))
    w->voice->stop(local(node) + 3s, [=, this, &node] { in(1ms, [=, this, &node] { end_worker(node, m, w->process, 0); }); });
}

void World::give_right(Node& node, const ManagerPtr& m, const WorkerPtr& w, link::LeaseGrant right, Duration left) {
  int camera = index_of(right.camera);
  auto found = w->seats.find(camera);
  if (found == w->seats.end()) return;
  Seat& s = found->second;
  if (right.extends && s.version == Version{} && s.silenced != Version{}) return;
  // Planted: whoever speaks next gets the version of whoever spoke before.
  bool starts = s.version == Version{};
  if (options_.planted == Planted::one_version_two_starts && starts && m->last_handed.contains(camera))
    right.version = m->last_handed[camera];
  m->last_handed[camera] = right.version;
  // Planted: the worker takes every spool on the disk for its own.
  if (options_.planted == Planted::foreign_spool)
    for (const SpoolContent& each : node.look->list())
      if (each.camera == right.camera) right.adopt = each.tenure;
  if (right.version >= s.version && right.version > s.silenced) s.version = right.version;
  Instant until = options_.planted == Planted::relative_deadline ? local(node) + left : right.valid_until;
  w->voice->publisher().set_lease(right.camera, right.version, right.tenure, until, right.adopt, right.after, right.extends);
}

// ---- how it speaks ----

std::unique_ptr<Voice> World::make_voice(Node& node, const ManagerPtr& m, const WorkerPtr& w) {
  std::weak_ptr<Worker> weak = w;
  Voice::Surroundings around;
  around.clock.now = [this, &node] { return local(node); };
  around.clock.wall = [this, &node] { return wall(node); };
  around.clock.ring_at = [this, &node, weak](Instant when, const std::weak_ptr<Bell>& bell) {
    at(std::max(now(), true_time(node, when) + 1), [this, weak, bell] {
      auto there = weak.lock();
      if (!there || bell.expired()) return;
      let_in(there, [bell] {
        if (auto waited_for = bell.lock()) waited_for->cancel();
      });
    });
  };
  around.blocked = [this] {
    return faulty() && faults_.blocking && rng_.chance(0.1) ? rng_.between(100ms, 6s) : Duration(0);
  };
  around.send = [this, &node, m, weak](std::vector<event::Event> events, Voice::Answer answer) {
    if (auto there = weak.lock()) write(node, m, there, {m->owner, std::move(events), {}, std::move(answer)});
  };
  around.draw = [this] { return rng_.unit(); };
  around.looks_again = options_.planted != Planted::no_check_after_wait;
  return std::make_unique<Voice>(std::move(around), node.disk.spool());
}

// Nothing is lost without being counted; where only the store had trouble and nobody lost a lease, nothing is lost.
void World::check_losses() {
  std::uint64_t missing = 0, excused = 0, on_disk = 0;
  for (std::uint64_t id : owed_) {
    missing += !accepted_.contains(id);
    if (!accepted_.contains(id)) trace("event {}, captured at {:.6f}, is missing", id, static_cast<double>(captured_[id]) / 1e6);
  }
  for (auto& node : nodes_) {
    for (auto& [number, w] : node->manager ? node->manager->workers : decltype(Manager::workers){})
      if (w->voice) excused += w->voice->dropped(), on_disk += w->voice->queued();
    for (const SpoolContent& each : node->look->list()) {
      auto left = node->look->open(each.camera, each.tenure);
      if (!left) return;  // a process writes it just now
      on_disk += left->events;
    }
  }
  // A worker that does not fall silent in time for its successor is killed ("Blue confirms before green speaks" in
  // docs/lease-protocol.md), and the events that it had not published are lost.
  excused = faults_.store_only && !faults_.rollouts && taken_over_ == 0 ? 0 : excused + gone_;
  if (missing > excused + on_disk)
    checks_->fail(now(), fmt::format("{} events are missing, but {} were dropped and {} wait", missing, excused, on_disk));
}

// Where only the store has trouble somebody has the right to say or to keep what is seen, at nearly every moment.
// Whoever falls silent for a successor and loses the store in that moment waits for it: that moment lasts until a
// worker that does not confirm its silence is killed. Nobody falls silent when the store is away already.
void World::check_gap(int camera) {
  constexpr TrueTime kAnswerIsOld = kSecond / 2, kUnconfirmed = 4 * kSecond;
  TrueTime last = std::exchange(right_seen_.try_emplace(camera, now()).first->second, now());
  bool caught = std::ranges::any_of(troubles_.away, [&](const auto& span) {
    return last > span.first - kUnconfirmed && last < span.first + kAnswerIsOld;
  });
  if (now() - last > 12 * kSecond && !caught && taken_over_ == 0)
    checks_->fail(now(), fmt::format("c{}: nobody had the right to see it for {} s", camera, (now() - last) / kSecond));
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

// How the manager sees it.
Result<link::Look> World::look(const WorkerPtr& w) const {
  if (!w->alive) return Error{Errc::unavailable, "worker", "it is gone"};
  link::Look out{.protocol = link::kProtocol};
  bool hides = options_.planted == Planted::never_lets_go;
  for (const auto& [camera, s] : w->seats)
    out.cameras.push_back({.camera = cameras_[static_cast<size_t>(camera)], .streaming = s.streaming,
                           .failures = hides ? 0 : s.failures, .inferred = 1,
                           .error = restart::StreamErrorCode::tcp_timeout});
  return out;
}

void World::capture(Node& node, const WorkerPtr& w, int camera, int life) {
  if (!w->alive || find_seat(w, camera, life) == nullptr) return;
  in(rng_.between(600ms, 1000ms), [this, &node, w, camera, life] { capture(node, w, camera, life); });
  if (w->paused || !find_seat(w, camera, life)->streaming) return;
  const CameraId& id = cameras_[static_cast<size_t>(camera)];
  if (faulty() && faults_.poison && camera == 0 && rng_.chance(0.1)) return end_worker(node, node.manager, w->process, 139, id);
  event::Event event{.event_id = fmt::to_string(captured_.size()), .payload = "{}", .captured = wall(node)};
  if (find_seat(w, camera, life)->version != Version{}) {
    owed_.insert(captured_.size());
    if (faults_.store_only) check_gap(camera);
  }
  trace("process {} sees {} of {}", w->process, captured_.size(), id);
  captured_.push_back(now());
  w->voice->publisher().publish(id, std::move(event), local(node));
  w->voice->go_on();
}

// The bytes leave the process: from here on they cannot be taken back.
void World::write(Node& node, const ManagerPtr& m, const WorkerPtr& w, Sent sent) {
  for (const event::Event& event : sent.events) {
    trace("process {} says {} of {} under {:x}, captured at {:.6f}", w->process, event.event_id, event.stamp->camera,
          event.stamp->version.n, static_cast<double>(captured_[std::stoull(event.event_id)]) / 1e6);
    auto known = m->right.find(event.stamp->version);
    checks_->emitted(now(), event.stamp->camera, event.stamp->version, w->process,
                     known == m->right.end() ? -1 : known->second);
  }
  Duration delay = faulty() && faults_.late_bytes && rng_.chance(0.1) ? rng_.between(500ms, 20s) : latency();
  if (lost(node) || now() < node.cut_out_until) return;
  in(delay, [this, &node, w, sent = std::move(sent)] { arrive(node, w, sent); });
}

// ---- the sink ----

void World::arrive(Node& node, const WorkerPtr& w, Sent sent) {
  if (!troubles_.store_answers(now())) {
    // Planted: an answer before the events are safe.
    if (options_.planted == Planted::confirm_before_commit)
      let_in(w, [sent] { sent.answer(std::vector(sent.events.size(), Confirmation::accepted)); });
    return;
  }
  for (const event::Event& event : sent.events) sent.rows.push_back(store_->row(event.stamp->camera));
  if (options_.planted != Planted::fence_as_snapshot) return insert(node, w, sent);
  in(rng_.between(0s, 3s), [this, &node, w, sent = std::move(sent)] { insert(node, w, sent); });
}

void World::insert(Node& node, const WorkerPtr& w, const Sent& sent) {
  std::vector<Confirmation> answers;
  for (size_t i = 0; i < sent.events.size(); ++i) {
    const auto& [camera, version, deadline] = *sent.events[i].stamp;
    std::uint64_t id = std::stoull(sent.events[i].event_id);
    bool current = lease::fence_accepts(sent.rows[i], sent.owner, version, store_->state().epoch);
    if (options_.planted == Planted::fence_by_highest_seen) {
      Version& highest = highest_seen_[index_of(camera)];
      current = version >= highest;
      highest = std::max(highest, version);
    }
    bool fresh = current && accepted_.insert(id).second;
    answers.push_back(!current ? Confirmation::stale : fresh ? Confirmation::accepted : Confirmation::duplicate);
    trace("the bus has {} of {} under {:x}: {}", id, camera, version.n, fresh ? "accepted" : current ? "known" : "stale");
    if (!fresh) continue;
    note(id);
    checks_->accepted(now(), camera, version, captured_[id]);
  }
  if (lost(node) || now() < node.cut_in_until) return;
  in(latency(), [this, &node, w, answers, answer = sent.answer] {
    if (now() >= node.cut_in_until) let_in(w, [answers, answer] { answer(answers); });
  });
}

}  // namespace weir::sim
