// The manager: the product's brain, with its questions and messages sent through the simulated world.
#include "parts.hpp"

namespace weir::sim {

namespace {
constexpr std::array kMessages = {"add", "activate", "extend", "remove", "silence", "lose", "drain"};
}

void World::feed(Node& node, const ManagerPtr& m, const runner::Event& event) {
  runner::Moment moment{local(node), wall(node)};
  for (const runner::Action& action : m->brain->handle(event, moment)) perform(node, m, action);
  wake(node, m);
}

void World::perform(Node& node, const ManagerPtr& m, const runner::Action& action) {
  if (const auto* questions = std::get_if<runner::AskLeases>(&action)) return ask(node, m, questions->questions);
  if (const auto* token = std::get_if<runner::AskToken>(&action)) return pay(node, m, *token);
  if (const auto* budget = std::get_if<runner::AskBudget>(&action)) return look_at_budget(node, m, budget->site);
  if (const auto* start = std::get_if<runner::StartWorker>(&action)) return start_worker(node, m, *start);
  if (const auto* message = std::get_if<runner::Tell>(&action)) return tell(node, m, *message);
  if (const auto* kill = std::get_if<runner::KillWorker>(&action)) {
    trace("node {} kills worker {}: {}", node.index, kill->worker, kill->why);
    return end_worker(node, m, kill->worker, 137);
  }
  if (const auto* crash = std::get_if<runner::ReportCrash>(&action)) {
    return request(node, m, [this, camera = crash->camera]() -> Reply {
      ++crashes_[camera];
      return [] {};
    }, [] {});
  }
  if (const auto* note = std::get_if<runner::Note>(&action)) {
    trace("node {} {} {} {}", node.index, note->event, note->camera, note->text);
    const lease::HolderState* holder = m->brain->holder(note->camera);  // none where it is not wanted any more either
    if (note->event == "camera.lost" && holder != nullptr) checks_->stopped(now_, note->camera, holder->version);
    return;
  }
  if (std::holds_alternative<runner::End>(action)) kill_runner(node, true);
}

void World::wake(Node& node, const ManagerPtr& m) {
  std::uint64_t timer = ++m->timer;
  Instant next = m->brain->wake_at(local(node));
  at(std::max(now_ + 1000, true_time(node, next) + 1), [this, &node, m, timer] {
    if (timer == m->timer) deliver(m, [this, &node, m] { feed(node, m, runner::TimePassed{}); });
  });
}

// ---- leases ----

void World::refuse(Node& node, const ManagerPtr& m, const std::vector<lease::Question>& questions) {
  runner::LeasesHeard heard;
  for (const lease::Question& question : questions) {
    const lease::HolderState* holder = m->brain->holder(question.ask.camera);
    if (options_.planted == Planted::unauthorized_is_lost && now_ < node.unauthorized_until + kSecond && holder != nullptr) {
      Answer invented{question.ask.camera, lease::Outcome::lost, {holder->version.n + 1}};
      heard.answers.push_back({question.ask.camera, lease::Answered{question.id, invented}});
    } else {
      heard.answers.push_back({question.ask.camera, lease::Unanswered{question.id}});
    }
  }
  feed(node, m, heard);
}

void World::ask(Node& node, const ManagerPtr& m, const std::vector<lease::Question>& questions) {
  Batch batch{questions.front().operation, m->owner, policy_.lease.ttl};
  for (const lease::Question& question : questions) batch.asks.push_back(question.ask);
  TrueTime asked = now_;
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
        // A copy of its question that came late was granted, long after the first had been refused and heard.
        troubled |= faults_.duplication && !checks_->believed(answer.camera, before[i].version);
        checks_->taken_over(now_, answer.camera, troubled);
        ++taken_over_;
      }
      if (answer.outcome == lease::Outcome::released) announce(answer.camera, true, batch.owner.runner, answer.version);
      if (answer.outcome == lease::Outcome::granted) announce(answer.camera, false, batch.owner.runner, answer.version);
    }
    return [=, this, &node] {
      runner::LeasesHeard heard;
      for (size_t i = 0; i < answers.size(); ++i)
        for (auto& each : hear(node, m, questions[i], answers[i], asked).answers) heard.answers.push_back(std::move(each));
      feed(node, m, heard);
    };
  };
  // The brain gives a question up by itself; nobody needs to tell it that no answer came.
  request(node, m, work, [=, this, &node] { refuse(node, m, questions); });
}

runner::LeasesHeard World::hear(Node& node, const ManagerPtr& m, const lease::Question& question, Answer answer,
                                TrueTime asked) {
  const lease::HolderState* holder = m->brain->holder(question.ask.camera);
  bool yes = answer.outcome == lease::Outcome::granted || answer.outcome == lease::Outcome::renewed ||
             answer.outcome == lease::Outcome::rotated;
  bool counts = holder != nullptr && holder->open && holder->open->id == question.id;
  // The right as it really is: from before asking, for the TTL less the margin, by this node's clock.
  if (yes && counts) {
    Duration length = answer.ttl - lease::safety_margin(answer.ttl);
    TrueTime until = asked + static_cast<TrueTime>(static_cast<double>(length.count()) / node.rate);
    TrueTime& right = m->right[answer.version];
    right = std::max(right, until);
    checks_->believes(answer.camera, m->owner, answer.version, until);
  }
  std::uint64_t id = question.id;
  if (options_.planted == Planted::stamp_after_reply && counts) answer.ttl += local(node) - holder->open->asked_at;
  if (options_.planted == Planted::renew_crosses_rotation && holder != nullptr && holder->open) id = holder->open->id;
  return {{{answer.camera, lease::Answered{id, std::move(answer)}}}};
}

// Lease first, then the site's token, then the first connection.
void World::pay(Node& node, const ManagerPtr& m, const runner::AskToken& wanted) {
  runner::TokenHeard heard{.camera = wanted.camera, .grant = wanted.grant, .granted = false, .retry_after = 1s};
  // Planted: the connection comes first.
  if (options_.planted == Planted::dial_before_token) {
    heard.granted = true;
    return in(1ms, [=, this, &node] { deliver(m, [=, this, &node] { feed(node, m, heard); }); });
  }
  auto answered = std::make_shared<bool>(false);
  auto answer = [=, this, &node](bool granted) {
    if (std::exchange(*answered, true)) return;
    runner::TokenHeard said = heard;
    said.granted = granted;
    feed(node, m, said);
  };
  request(node, m, [=, this]() -> Reply {
    store_->tick();
    bool granted = store_->consume(site_, wanted.camera, wanted.grant);
    checks_->tokens(now_, store_->tokens(site_), kBucketCapacity);
    if (granted && paid_.emplace(wanted.camera, wanted.grant).second)
      checks_->dialled(now_, static_cast<int>(paid_.size()), kBucketCapacity, kBucketRefill);
    return [=] { answer(granted); };
  }, [=] { answer(false); });
  in(2s, [this, m, answer] { deliver(m, [answer] { answer(false); }); });  // its own time-out
}

void World::look_at_budget(Node& node, const ManagerPtr& m, const SiteId& site) {
  auto answered = std::make_shared<bool>(false);
  auto answer = [=, this, &node](std::optional<double> tokens) {
    if (!std::exchange(*answered, true)) feed(node, m, runner::BudgetHeard{site, tokens});
  };
  request(node, m, [=, this]() -> Reply {
    store_->tick();
    return [answer, tokens = store_->tokens(site_)] { answer(tokens); };
  }, [=] { answer({}); });
  in(2s, [this, m, answer] { deliver(m, [answer] { answer({}); }); });  // its own time-out
}

// ---- what the control plane tells ----

void World::announce(const CameraId& camera, bool free, const RunnerId& by, Version version) {
  for (auto& node : nodes_) {
    if (node->down || !node->manager || lost(*node)) continue;
    auto m = node->manager;
    in(latency(), [this, n = node.get(), m, news = runner::LeaseNews{camera, free, by, version}] {
      if (now_ < n->cut_in_until) return;
      deliver(m, [this, n, m, news] { feed(*n, m, news); });
    });
  }
}

void World::announce_expiries() {
  for (const CameraId& camera : cameras_) {
    lease::LeaseRow row = store_->row(camera);
    if (row.released || row.owner.runner.empty() || row.expires > store_->state().lease_now) continue;
    Version& said = expiry_announced_[camera];
    if (std::exchange(said, row.version) != row.version) announce(camera, true, row.owner.runner, row.version);
  }
}

void World::list_cameras(Node& node, const ManagerPtr& m) {
  if (!m->alive) return;
  request(node, m, [=, this, &node]() -> Reply {
    int version = configuration_;
    return [=, this, &node] {
      node.configuration = version;
      runner::CamerasListed listed;
      for (const CameraId& camera : cameras_) {
        if (unwanted_.contains(camera)) continue;
        runner::Wish wish;
        wish.config.camera = camera;
        wish.config.site = site_;
        // Every third version brings another model, the others only other thresholds.
        wish.config.model.name = fmt::format("m{}", version / 3);
        wish.version = fmt::format("v{}", version);
        wish.crashes = crashes_[camera];
        listed.cameras.push_back(std::move(wish));
      }
      feed(node, m, listed);
      drop_left_spools(node, m);
    };
  }, [] {});
  in(rng_.between(3s, 5s), [this, &node, m] { deliver(m, [this, &node, m] { list_cameras(node, m); }); });
}

// As the product's manager does: what a dead worker left is dropped once somebody else has had the camera.
void World::drop_left_spools(Node& node, const ManagerPtr& m) {
  for (const SpoolContent& left : node.look->list()) {
    const lease::HolderState* holder = m->brain->holder(left.camera);
    bool held = holder != nullptr && holder->phase == lease::Phase::holding;
    if (held && left.tenure == lease::Tenure{m->owner.boot, holder->grant}) continue;
    request(node, m, [=, this, &node]() -> Reply {
      return [=, this, &node, row = store_->row(left.camera)] {
        if (!lease::is_over(left.tenure, row, m->owner.boot)) return;
        std::uint64_t events = node.look->drop(left.camera, left.tenure);
        if (events > 0) trace("node {} drops {} events of {} that another has had since", node.index, events, left.camera);
        gone_ += events;
      };
    }, [] {});
  }
}

void World::heartbeat(Node& node) {
  if (!node.down && node.manager && !node.manager->paused) {
    auto m = node.manager;
    request(node, m, [this, &node, m]() -> Reply {
      store_->heartbeat(node.runner);
      return [this, &node, m] { feed(node, m, node.flags); };
    }, [] {});
  }
  in(1s, [this, &node] { heartbeat(node); });
}

// ---- its workers ----

// Whoever is told to connect to a camera must have been given a token for its grant.
void World::check_paid(const ManagerPtr& m, const CameraId& camera) {
  const lease::HolderState* holder = m->brain->holder(camera);
  if (holder != nullptr && !paid_.contains({camera, holder->grant}))
    checks_->fail(now_, fmt::format("{}: dialled without a token for grant {:x}", camera, holder->grant.n));
}

void World::start_worker(Node& node, const ManagerPtr& m, const runner::StartWorker& start) {
  for (const camera::Config& source : start.sources) check_paid(m, source.camera);
  auto w = std::make_shared<Worker>(gone_);
  w->process = ++processes_;
  w->number = start.worker;
  w->voice = make_voice(node, m, w);
  m->workers[start.worker] = w;
  trace("node {} starts worker {} (process {}{})", node.index, start.worker, w->process, start.standby ? ", standby" : "");
  in(rng_.between(30ms, 400ms), [this, &node, m, w, start] {
    let_in(w, [this, &node, m, w, start] {
      for (const camera::Config& source : start.sources) seat(node, w, index_of(source.camera));
      deliver(m, [this, &node, m, w] {
        if (w->alive) feed(node, m, runner::WorkerUp{w->number});
      });
      look(node, m, w);
    });
  });
}

void World::end_worker(Node& node, const ManagerPtr& m, WorkerNumber number, int code, const CameraId& culprit) {
  auto found = m->workers.find(number);
  if (found == m->workers.end() || !found->second->alive) return;
  trace("node {} worker {} (process {}) ends", node.index, number, found->second->process);
  found->second->die();
  in(rng_.between(1ms, 200ms), [=, this, &node] {
    deliver(m, [=, this, &node] {
      m->workers.erase(number);
      feed(node, m, runner::WorkerGone{number, code, culprit});
    });
  });
}

void World::tell(Node& node, const ManagerPtr& m, const runner::Tell& message) {
  auto answered = std::make_shared<bool>(false);
  auto answer = [this, &node, m, answered](const runner::Told& told) {
    deliver(m, [=, this, &node] {
      if (std::exchange(*answered, true)) return;
      trace("node {} message {} {}", node.index, told.message, told.ok ? "is confirmed" : "was in vain");
      feed(node, m, told);
    });
  };
  for (const runner::TellItem& item : message.items)
    trace("node {} message {} tells worker {} to {} {}", node.index, message.message, message.worker,
          kMessages[static_cast<size_t>(message.what)], item.camera);
  runner::Told failed{.message = message.message};
  auto found = m->workers.find(message.worker);
  if (found != m->workers.end()) {
    auto w = found->second;
    for (const runner::TellItem& item : message.items)
      if (message.what == runner::Message::add && !w->seats.contains(index_of(item.camera))) check_paid(m, item.camera);
    Duration left = message.items.empty() || !message.items[0].right ? Duration(0)
                                                                     : message.items[0].right->valid_until - local(node);
    bool arrives = !fails(), answer_arrives = !fails();
    if (arrives) in(rng_.between(0ms, 20ms), [=, this, &node] {
      let_in(w, [=, this, &node] {
        obey(node, m, w, message, left, [=, this](const runner::Told& told) {
          if (answer_arrives) in(rng_.between(0ms, 20ms), [answer, told] { answer(told); });
        });
      });
    });
  }
  in(found == m->workers.end() ? Duration(1ms) : Duration(message.what == runner::Message::add ? 3s : 1s),
     [answer, failed] { answer(failed); });
}

}  // namespace weir::sim
