#include "detectors.hpp"

#include <algorithm>

namespace weir::sim {

using cluster::Command;
using cluster::Subscribe;
using cluster::Unsubscribe;

namespace {

constexpr Duration kReportEvery = 2s;
constexpr Duration kDialWithin = 10s;

Error unreachable() { return {Errc::unavailable, "refused", "the worker does not answer", {}}; }

}  // namespace

// ---- as a process sees a worker ----

class Detectors::Socket final : public WorkerSocket {
 public:
  Socket(Detectors& world, DetectorTalkPtr talk, std::shared_ptr<Bell> bell)
      : world_(world), talk_(std::move(talk)), bell_(std::move(bell)) {
    talk_->bell = bell_;
  }
  ~Socket() override { cut(); }
  asio::awaitable<std::optional<std::string>> receive() override {
    auto talk = talk_;
    auto bell = bell_;
    while (talk->open && talk->inbox.empty() && !talk->closed_by_worker) co_await wait_for(bell);
    if (!talk->open || talk->inbox.empty()) co_return std::nullopt;
    DetectorTalk::Word word = std::move(talk->inbox.front());
    talk->inbox.pop_front();
    if (word.result != 0) world_.checks_.received(talk->process->number, word.result);
    co_return word.text;
  }
  Status post(std::string text) override { return world_.post(talk_, text); }
  void cut() override { world_.hang_up(talk_); }
  std::string reason() const override { return "the worker closed the connection"; }
  bool orderly() const override { return talk_->closed_by_worker; }

 private:
  Detectors& world_;
  const DetectorTalkPtr talk_;
  const std::shared_ptr<Bell> bell_;
};

class Detectors::Link final : public DetectorLink {
 public:
  Link(Detectors& world, const ClusterHost& host, ClusterProcessPtr p) : world_(world), host_(host), p_(std::move(p)) {}
  Async<std::unique_ptr<WorkerSocket>> dial(std::string worker) override {
    return ask<std::unique_ptr<WorkerSocket>>([this, worker = std::move(worker)](const Dialled& done) {
      world_.dial(host_, p_, worker, done);
    });
  }
  Async<WorkerPicture> picture(std::string, std::string) override {
    co_return Error{Errc::not_found, "no_picture", "this world has no pictures"};
  }

 private:
  Detectors& world_;
  const ClusterHost& host_;
  const ClusterProcessPtr p_;
};

std::unique_ptr<DetectorLink> Detectors::link_for(const ClusterHost& host, const ClusterProcessPtr& p) {
  return std::make_unique<Link>(*this, host, p);
}

// ---- connections ----

void Detectors::dial(const ClusterHost& from, const ClusterProcessPtr& p, const std::string& address,
                     const Dialled& done) {
  checks_.acts(time_.now(), p->number, "dials a worker");
  time_.trace("backend {} dials {}", p->number, address);
  DetectorHost& host = **std::ranges::find(hosts_, address, [](const auto& each) { return each->address; });
  auto refuse = [p, done] {
    think(p, [done] { done(unreachable()); });
  };
  time_.in(kDialWithin, refuse);
  auto talk = std::make_shared<DetectorTalk>(DetectorTalk{from, p, host, host.detector});
  if (!talk->worker->alive) return time_.in(network_.latency(), refuse);
  if (time_.now() < cut_until(*talk)) return;
  carry(talk, false, [this, talk, done] { accept(talk, done); });
}

void Detectors::accept(const DetectorTalkPtr& talk, const Dialled& done) {
  Timeline::deliver(talk->worker, [this, talk, done] {
    if (talk->host.one_master)
      for (const DetectorTalkPtr& other : std::vector(talk->worker->talks)) close(other);
    talk->served = true;
    talk->worker->talks.push_back(talk);
    carry(talk, true, [this, talk, done] { connected(talk, done); });
  });
}

void Detectors::connected(const DetectorTalkPtr& talk, const Dialled& done) {
  if (!talk->process->alive) return hang_up(talk);
  think(talk->process, [this, talk, done] {
    if (!done.wanted()) return hang_up(talk);
    time_.trace("backend {} is connected to worker {}", talk->process->number, talk->host.index);
    auto bell = make_bell(talk->process->mind->io.get_executor());
    done(std::unique_ptr<WorkerSocket>(new Socket(*this, talk, std::move(bell))));
  });
}

TrueTime Detectors::cut_until(const DetectorTalk& talk) const {
  return std::max(talk.host.cut_until, talk.process_host.workers_cut_until);
}

void Detectors::carry(const DetectorTalkPtr& talk, bool to_process, std::function<void()> what) {
  Duration delay = network_.latency();
  TrueTime& last = to_process ? talk->up : talk->down;
  last = std::max(last, time_.now() + delay.count());
  if (delay > kHarmless) talk->trouble = std::max(talk->trouble, last);
  time_.at(last, [this, talk, what = std::move(what)] { arrive(talk, what); });
}

void Detectors::arrive(const DetectorTalkPtr& talk, const std::function<void()>& what) {
  if (talk->silent) return;
  TrueTime cut = cut_until(*talk);
  if (time_.now() >= cut) return what();
  talk->trouble = std::max(talk->trouble, cut + kSecond / 2);
  time_.at(cut, [this, talk, what] { arrive(talk, what); });
}

// By the process, or by its kernel when it is dead.
void Detectors::hang_up(const DetectorTalkPtr& talk) {
  if (!std::exchange(talk->open, false)) return;
  time_.trace("backend {} hangs up on worker {}", talk->process->number, talk->host.index);
  checks_.parted(talk->process->number, talk->host.index);
  if (auto bell = talk->bell.lock()) bell->cancel();
  carry(talk, false, [talk] {
    talk->served = false;
    std::erase(talk->worker->talks, talk);
  });
}

// By the worker, or by its kernel.
void Detectors::close(const DetectorTalkPtr& talk) {
  time_.trace("worker {} hangs up on backend {}", talk->host.index, talk->process->number);
  talk->served = false;
  std::erase(talk->worker->talks, talk);
  carry(talk, true, [talk] {
    think(talk->process, [talk] {
      talk->closed_by_worker = true;
      if (auto bell = talk->bell.lock()) bell->cancel();
    });
  });
}

void Detectors::say(const DetectorTalkPtr& talk, const DetectorTalk::Word& word) {
  carry(talk, true, [this, talk, word] { heard(talk, word); });
}

void Detectors::heard(const DetectorTalkPtr& talk, const DetectorTalk::Word& word) {
  DetectorTalkPtr to = talk;
  // Planted: a result counts as that of the worker which has the subscription, whoever sent it.
  if (planted_ == Planted::results_from_anyone && word.result != 0) {
    auto given = given_over_.find({talk->process->number, checks_.subscription_of(word.result)});
    if (given != given_over_.end() && given->second->open) to = given->second;
  }
  think(to->process, [to, word] {
    to->inbox.push_back(word);
    if (auto bell = to->bell.lock()) bell->cancel();
  });
}

// ---- what a master says ----

Status Detectors::post(const DetectorTalkPtr& talk, const std::string& text) {
  if (!talk->open || talk->closed_by_worker) return unreachable();
  int process = talk->process->number, worker = talk->host.index;
  checks_.acts(time_.now(), process, "tells a worker something");
  auto command = cluster::read_command(text);
  WEIR_ASSERT(command);
  if (const auto* given = std::get_if<Subscribe>(&*command)) {
    checks_.given(process, worker, given->subscription.text());
    given_over_[{process, given->subscription.text()}] = talk;
  } else if (const auto* taken = std::get_if<Unsubscribe>(&*command)) {
    checks_.taken(process, worker, taken->subscription.text());
    // Planted: whoever loses a subscription is not told.
    if (planted_ == Planted::loser_not_told) return ok();
  }
  carry(talk, false, [this, talk, said = *std::move(command)] {
    Timeline::deliver(talk->worker, [this, talk, said] {
      if (talk->served) obey(talk, said);
    });
  });
  return ok();
}

void Detectors::obey(const DetectorTalkPtr& talk, const Command& command) {
  auto& runs = talk->worker->runs;
  if (const auto* given = std::get_if<Subscribe>(&command)) {
    if (time_.now() < talk->host.deaf_until) {
      runs.erase(given->subscription.text());
      return;
    }
    time_.trace("worker {} runs {}, as backend {} told it", talk->host.index, given->subscription.text(),
                talk->process->number);
    time_.note(static_cast<std::uint64_t>(talk->host.index) + 17);
    runs.insert_or_assign(given->subscription.text(), *given);
  } else if (const auto* taken = std::get_if<Unsubscribe>(&command)) {
    time_.trace("worker {} ends {}, as backend {} told it", talk->host.index, taken->subscription.text(),
                talk->process->number);
    time_.note(static_cast<std::uint64_t>(talk->host.index) + 37);
    runs.erase(taken->subscription.text());
  } else if (std::holds_alternative<cluster::RequestState>(command)) {
    report(talk->host, talk);
  }
}

// ---- what a worker says ----

void Detectors::report(const DetectorHost& host, const DetectorTalkPtr& talk) {
  cluster::StateReport now{.cpu_percent = host.cpu_percent, .memory_percent = 20};
  for (const auto& [id, run] : talk->worker->runs)
    now.cameras.push_back({.subscription = run.subscription, .model_id = run.model_id, .model_name = run.model_name,
                           .crop = run.crop});
  say(talk, {json::to_text(cluster::write_message(now))});
}

void Detectors::keep_reporting(DetectorHost& host, const DetectorPtr& worker) {
  Timeline::deliver(worker, [this, &host, worker] {
    for (const DetectorTalkPtr& talk : worker->talks) report(host, talk);
    time_.in(kReportEvery, [this, &host, worker] { keep_reporting(host, worker); });
  });
}

void Detectors::keep_seeing(DetectorHost& host, const DetectorPtr& worker) {
  Timeline::deliver(worker, [this, &host, worker] {
    for (const auto& [id, run] : worker->runs) {
      if (worker->talks.empty()) break;
      int number = checks_.said(host.index, id);
      cluster::ImageDetection seen{.subscription = run.subscription,
                                   .timestamp = WallTime(20'000 * 24h + Duration(time_.now())),
                                   .model_id = run.model_id,
                                   .model_name = run.model_name,
                                   .boxes = {{"car", 0.5, {static_cast<double>(number), 2, 3, 4}}}};
      std::string text = json::to_text(cluster::write_message(seen));
      for (const DetectorTalkPtr& talk : worker->talks) say(talk, {text, number});
    }
    time_.in(rng_.between(300ms, 900ms), [this, &host, worker] { keep_seeing(host, worker); });
  });
}

// ---- the workers ----

Detectors::Detectors(Surroundings around, int workers)
    : time_(around.time), network_(around.network), rng_(around.rng), checks_(around.checks), planted_(around.planted) {
  for (int n = 0; n < workers; ++n) {
    auto host = std::make_unique<DetectorHost>();
    host->index = n;
    host->address = fmt::format("ws://w{}:8000", n);
    host->one_master = rng_.chance(0.7);
    host->detector = std::make_shared<Detector>();
    host->detector->alive = false;
    hosts_.push_back(std::move(host));
  }
}

// Connections and workers know each other.
Detectors::~Detectors() {
  for (auto& host : hosts_) host->detector->talks.clear();
}

void Detectors::begin() {
  for (auto& host : hosts_) start(*host);
}

std::vector<std::string> Detectors::addresses() const {
  std::vector<std::string> out;
  for (const auto& host : hosts_) out.push_back(host->address);
  return out;
}

void Detectors::start(DetectorHost& host) {
  if (host.detector->alive) return;
  host.detector = std::make_shared<Detector>();
  keep_reporting(host, host.detector);
  keep_seeing(host, host.detector);
}

void Detectors::crash(int worker, Duration until_restart) {
  DetectorHost& host = at(worker);
  if (!host.detector->alive) return;
  time_.trace("worker {} crashes", worker);
  for (const DetectorTalkPtr& talk : std::vector(host.detector->talks)) close(talk);
  host.detector->alive = false;
  time_.in(until_restart, [this, &host] { start(host); });
}

void Detectors::freeze(int worker, Duration how_long) {
  time_.trace("worker {} stands still for {} ms", worker, how_long / 1ms);
  time_.pause(at(worker).detector, how_long);
}

void Detectors::cut(int worker, Duration how_long) {
  time_.trace("worker {} is cut off for {} ms", worker, how_long / 1ms);
  at(worker).cut_until = time_.now() + how_long.count();
}

void Detectors::deafen(int worker, Duration how_long) {
  time_.trace("worker {} is deaf for {} ms", worker, how_long / 1ms);
  at(worker).deaf_until = time_.now() + how_long.count();
}

void Detectors::break_a_connection(int worker) {
  time_.trace("the connections of worker {} are half-open", worker);
  for (const DetectorTalkPtr& talk : at(worker).detector->talks) talk->silent = true;
}

void Detectors::heal() {
  for (auto& host : hosts_) host->cut_until = host->deaf_until = 0;
}

const std::map<std::string, Subscribe>& Detectors::runs(int worker) const {
  static const std::map<std::string, Subscribe> kNothing;
  const DetectorPtr& it = hosts_[static_cast<size_t>(worker)]->detector;
  return it->alive && !it->paused ? it->runs : kNothing;
}

bool Detectors::hears(int worker, const ClusterProcessPtr& process) const {
  return std::ranges::any_of(hosts_[static_cast<size_t>(worker)]->detector->talks, [&](const DetectorTalkPtr& talk) {
    return talk->process == process && talk->open && !talk->silent && !talk->bell.expired() &&
           time_.now() >= cut_until(*talk) && time_.now() > talk->trouble;
  });
}

}  // namespace weir::sim
