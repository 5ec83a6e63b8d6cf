// The manager: feeds the lease holders and performs what they answer.
#include "parts.hpp"

namespace weir::sim {

void World::feed(Node& node, const std::shared_ptr<Manager>& m, int camera, const HolderEvent& event) {
  auto& holder = m->holders[static_cast<size_t>(camera)];
  auto [next, actions] = lease::step(holder, event, local(node), policy_, m->owner.boot);
  Version before = holder.version;
  holder = std::move(next);
  for (const auto& action : actions) {
    if (std::holds_alternative<lease::StopCamera>(action)) checks_->stopped(now_, cameras_[static_cast<size_t>(camera)], before);
    perform(node, m, camera, action);
  }
}

void World::perform(Node& node, const std::shared_ptr<Manager>& m, int camera, const lease::HolderAction& action) {
  auto index = static_cast<size_t>(camera);
  if (const auto* question = std::get_if<lease::SendQuestion>(&action)) {
    m->outgoing.emplace_back(camera, question->question);
  } else if (const auto* right = std::get_if<lease::Speak>(&action)) {
    speak(node, m, camera, *right);
  } else if (std::holds_alternative<lease::DropSpool>(action)) {
    node.disk[index].events.clear();
  } else {
    stop_worker(m, camera);
    node.disk[index].events.clear();
  }
}

// Questions that arise together travel together: one batch for each operation.
void World::flush(Node& node, const std::shared_ptr<Manager>& m) {
  auto outgoing = std::exchange(m->outgoing, {});
  for (Operation operation : {Operation::acquire, Operation::renew, Operation::release}) {
    std::vector<std::pair<int, lease::Question>> questions;
    for (auto& [camera, question] : outgoing)
      if (question.operation == operation) questions.emplace_back(camera, question);
    if (!questions.empty()) ask(node, m, operation, std::move(questions));
  }
}

void World::ask(Node& node, const std::shared_ptr<Manager>& m, Operation operation,
                std::vector<std::pair<int, lease::Question>> questions) {
  Batch batch{operation, m->owner, policy_.ttl};
  for (const auto& [camera, question] : questions) batch.asks.push_back(question.ask);
  TrueTime asked = now_;
  auto refused = [=, this, &node] {
    for (const auto& [camera, question] : questions) {
      if (options_.planted == Planted::unauthorized_is_lost && now_ < node.unauthorized_until + kSecond) {
        Answer invented{question.ask.camera, lease::Outcome::lost, {m->holders[static_cast<size_t>(camera)].version.n + 1}};
        feed(node, m, camera, lease::Answered{question.id, invented});
      } else {
        feed(node, m, camera, lease::Unanswered{question.id});
      }
    }
    flush(node, m);
    wake(node, m);
  };
  auto work = [=, this, &node]() -> Reply {
    std::vector<lease::LeaseRow> before;
    for (const auto& each : batch.asks) before.push_back(store_->row(each.camera));
    auto answers = store_->apply(batch);
    for (size_t i = 0; i < answers.size(); ++i) {
      const Answer& answer = answers[i];
      trace("store: {} {} {} -> {} version {:x}", batch.owner.runner, batch.owner.boot, answer.camera,
            std::string(json::write_value(answer.outcome).as_string()), answer.version.n);
      note(static_cast<std::uint64_t>(answer.outcome) + static_cast<std::uint64_t>(answer.version.n) * 31);
      checks_->answered(now_, batch, answer);
      // Whoever lost it had trouble, or shares its runner_id with somebody, or asked too late since the store came back.
      if (answer.stolen) {
        bool troubled = faults_.twin_runner || options_.planted == Planted::duplicate_boot || store_unsteady();
        for (const auto& other : nodes_)
          troubled |= other->runner == before[i].owner.runner &&
                      (recent(other->trouble) || other->down || before[i].owner != other->manager->owner);
        checks_->taken_over(now_, answer.camera, troubled);
      }
    }
    return [=, this, &node] {
      for (size_t i = 0; i < answers.size(); ++i) {
        auto [camera, question] = questions[i];
        hear(node, m, camera, question, answers[i], asked);
      }
      flush(node, m);
      wake(node, m);
    };
  };
  request(node, m, work, refused);
}

void World::hear(Node& node, const std::shared_ptr<Manager>& m, int camera, const lease::Question& question,
                 Answer answer, TrueTime asked) {
  auto& holder = m->holders[static_cast<size_t>(camera)];
  bool yes = answer.outcome == lease::Outcome::granted || answer.outcome == lease::Outcome::renewed ||
             answer.outcome == lease::Outcome::rotated;
  // The right as it really is: from before asking, for the TTL less the margin, by this node's clock.
  if (yes) {
    Duration length = answer.ttl - lease::safety_margin(answer.ttl);
    TrueTime until = asked + static_cast<TrueTime>(static_cast<double>(length.count()) / node.rate);
    bool counts = holder.open && holder.open->id == question.id;
    if (counts) {
      TrueTime& right = m->right[answer.version];
      right = std::max(right, until);
      checks_->believes(answer.camera, m->owner, answer.version, until);
    }
  }
  std::uint64_t id = question.id;
  if (options_.planted == Planted::stamp_after_reply && holder.open && holder.open->id == id) holder.open->asked_at = local(node);
  if (options_.planted == Planted::renew_crosses_rotation && holder.open) id = holder.open->id;
  feed(node, m, camera, lease::Answered{id, std::move(answer)});
}

void World::wake(Node& node, const std::shared_ptr<Manager>& m) {
  std::optional<Instant> next;
  for (const HolderState& holder : m->holders)
    if (auto due = lease::wake_at(holder, policy_); due && (!next || *due < *next)) next = due;
  if (!next) return;
  std::uint64_t timer = ++m->timer;
  at(std::max(now_ + 1000, true_time(node, *next) + 1), [this, &node, m, timer] {
    if (timer != m->timer) return;
    deliver(m, [this, &node, m] {
      for (size_t c = 0; c < cameras_.size(); ++c) feed(node, m, static_cast<int>(c), lease::TimePassed{});
      flush(node, m);
      wake(node, m);
    });
  });
}

void World::speak(Node& node, const std::shared_ptr<Manager>& m, int camera, const lease::Speak& right) {
  auto index = static_cast<size_t>(camera);
  Spool& spool = node.disk[index];
  lease::Tenure tenure{m->owner.boot, right.grant};
  if (spool.tenure != tenure) {
    bool adopt = right.adopt && *right.adopt == spool.tenure;
    if (!adopt && options_.planted != Planted::foreign_spool) spool.events.clear();
    spool.tenure = tenure;
  }
  auto& w = m->workers[index];
  if (!w || !w->alive) {
    if (!right.fresh) return;  // its worker died; a fresh version is on its way
    w = start_worker(node, camera);
  }
  auto found = m->right.find(right.version);
  TrueTime right_until = found == m->right.end() ? -1 : found->second;
  if (m->token_for[index] != right.grant || !w->streaming) pay_and_dial(node, m, camera, right.grant);
  Duration left = right.valid_until - local(node);
  in(rng_.between(0ms, 20ms), [=, this, &node, w = w] {
    deliver(w, [=, this, &node] {
      if (right.version < w->version) return;
      w->version = right.version;
      w->grant = right.grant;
      w->valid_until = options_.planted == Planted::relative_deadline ? local(node) + left : right.valid_until;
      w->right_until = right_until;
      pump(node, w);
    });
  });
}

void World::stop_worker(const std::shared_ptr<Manager>& m, int camera) {
  auto& w = m->workers[static_cast<size_t>(camera)];
  if (w) w->alive = false;
  w.reset();
}

// Lease first, then the site's token, then the first connection. Rotations and restarts keep the token.
void World::pay_and_dial(Node& node, const std::shared_ptr<Manager>& m, int camera, Version grant) {
  auto index = static_cast<size_t>(camera);
  auto w = m->workers[index];
  if (m->token_for[index] == grant) {
    if (w && !w->dialling) dial(node, m, w, 0);
    return;
  }
  request(node, m, [=, this, &node]() -> Reply {
    store_->tick();
    bool granted = store_->consume(site_, cameras_[index], grant);
    checks_->tokens(now_, store_->tokens(site_), kBucketCapacity);
    return [=, this, &node] {
      if (m->workers[index] != w || m->holders[index].grant != grant || m->token_for[index] == grant) return;
      if (granted) {
        m->token_for[index] = grant;
        checks_->dialled(now_, ++first_dials_, kBucketCapacity, kBucketRefill);
        dial(node, m, w, 0);
      }
    };
  }, [] {});
}

}  // namespace weir::sim
