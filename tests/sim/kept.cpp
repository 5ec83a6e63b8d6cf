// An orchestrator's children in the simulated world: a worker or forwarder each, and above it a keeper, whose leash is
// the product's own. They outlive the orchestrator.
#include "streams.hpp"

namespace weir::sim {

using keeper::Extended;
using keeper::Micros;

namespace {

constexpr Duration kStopGrace = 10s, kBackstop = 35s;  // as weir-keeper is started
constexpr Duration kSilentAtMost = 30s;                // a child that nobody extends ends by itself
constexpr Duration kPatience = 3s;                     // for an input that is not there
constexpr int kKilled = 137;

Micros micros(Instant when) { return when.time_since_epoch(); }

}  // namespace

// ---- as the orchestrator sees them ----

class StreamWorld::Handle final : public Kept {
 public:
  Handle(StreamWorld& world, StreamHost& host, OrchestratorPtr o, ChildPtr c)
      : world_(world), host_(host), o_(std::move(o)), c_(std::move(c)) {}
  const std::string& name() const override { return c_->spec.name; }
  const std::string& note() const override { return c_->spec.note; }
  std::int64_t version() const override { return c_->version.n; }
  Instant ends_at() const override { return c_->ends_at; }
  const std::string& control() const override { return none_; }
  bool running() const override { return c_->alive; }
  asio::awaitable<Status> extend(std::int64_t version, Term term) override {
    return world_.question<Nothing>(o_, [this, version, term](const Done<Nothing>& done) {
      world_.extend(host_, o_, c_, {version}, term, done);
    });
  }
  void stop() override { world_.stop_child(host_, c_); }
  void kill() override { world_.kill_child(host_, c_); }
  asio::awaitable<std::optional<int>> wait() override { return world_.end_of(host_, o_, c_); }

 private:
  StreamWorld& world_;
  StreamHost& host_;
  const OrchestratorPtr o_;
  const ChildPtr c_;
  const std::string none_;
};

class StreamWorld::Children final : public KeptHost {
 public:
  Children(StreamWorld& world, StreamHost& host, OrchestratorPtr o) : world_(world), host_(host), o_(std::move(o)) {}
  asio::awaitable<Result<std::unique_ptr<Kept>>> start(KeptSpec spec) override {
    CO_TRY(started, world_.start_child(host_, o_, spec));
    co_return handle(started);
  }
  std::vector<std::unique_ptr<Kept>> adopt() override {
    std::erase_if(host_.records, [&](const ChildPtr& c) { return c->boot != o_->owner.boot && !c->alive; });
    std::vector<std::unique_ptr<Kept>> found;
    const Done<Nothing> unheard{std::weak_ptr<Open<Nothing>>()};
    for (const ChildPtr& c : host_.records) {
      if (c->boot != o_->owner.boot) continue;
      world_.time_.trace("host {} finds child {}, {}", host_.index, c->process, c->alive ? "alive" : "dead");
      found.push_back(handle(c));
      // Planted: what the records say is enough to extend it.
      if (world_.is_planted(Planted::extended_from_memory)) {
        Instant until = world_.time_.local(host_) + world_.lease_.ttl;
        world_.extend(host_, o_, c, c->version, {until, until}, unheard);
      }
    }
    return found;
  }

 private:
  std::unique_ptr<Kept> handle(const ChildPtr& c) { return std::make_unique<Handle>(world_, host_, o_, c); }
  StreamWorld& world_;
  StreamHost& host_;
  const OrchestratorPtr o_;
};

std::unique_ptr<KeptHost> StreamWorld::children_for(StreamHost& host, const OrchestratorPtr& o) {
  return std::make_unique<Children>(*this, host, o);
}

// ---- the keeper ----

Result<ChildPtr> StreamWorld::start_child(StreamHost& host, const OrchestratorPtr& o, const KeptSpec& spec) {
  auto same = [&](const ChildPtr& c) { return c->spec.name == spec.name && c->alive; };
  if (std::ranges::any_of(host.records, same))
    return Error{Errc::conflict, "kept_alive", "an earlier process of that name lives"};
  if (network_.fails()) return Error{Errc::unavailable, "start", "no process can be started now"};
  auto note = orchestrator::read_note(spec.note);
  WEIR_ASSERT(note);
  bool knows = !spec.lease_socket.empty();
  keeper::Task task{.version = spec.version, .valid_until = micros(spec.valid_until), .stop_grace = kStopGrace,
                    .backstop = knows ? Micros(kBackstop) : Micros(0)};
  auto c = std::make_shared<Child>(++processes_, *note, spec, o->owner.boot, task);
  c->heeds = rng_.chance(0.8);
  host.records.push_back(c);
  host.processes.push_back(c);
  time_.trace("host {} starts child {} for {} under version {:x}", host.index, c->process, spec.name, spec.version);
  time_.note(static_cast<std::uint64_t>(c->process));
  checks_.extends(time_.now(), o->heard, c->sender(), {spec.valid_until, spec.valid_until});
  checks_.told(time_.now(), c->sender());
  watch_leash(host, c);
  work_later(host, c, rng_.between(50ms, 400ms));
  return c;
}

// The record is written first; keeper and child hear of it each for itself.
void StreamWorld::extend(StreamHost& host, const OrchestratorPtr& o, const ChildPtr& c, lease::Version version,
                         Term term, const Done<Nothing>& done) {
  Sender extended = c->sender();
  extended.version = version;
  checks_.extends(time_.now(), o->heard, extended, term);
  if (c->alive && version >= c->version) {
    c->version = version;
    c->ends_at = c->knows_deadline() ? term.keep_until : term.valid_until;
  }
  if (network_.fails()) return;
  time_.in(rng_.between(0ms, 5ms), [this, &host, o, c, version, term, done] {
    auto answer = [this, o, done](const Status& said) { think(o, [done, said] { done(said); }); };
    if (!c->alive) return answer(Error{Errc::conflict, "ended", "the child has ended"});
    Timeline::deliver(c, [this, &host, c, version, term, answer] { answer(hear_extension(host, c, version, term)); });
  });
}

Status StreamWorld::hear_extension(const StreamHost& host, const ChildPtr& c, lease::Version version, Term term) {
  // Planted: the deadline is taken for a time that begins when the child hears of it.
  Duration whole = lease_.ttl - lease::safety_margin(lease_.ttl);
  if (is_planted(Planted::leash_from_arrival)) term.valid_until = term.keep_until = time_.local(host) + whole;
  switch (c->leash.extend(version.n, micros(c->knows_deadline() ? term.keep_until : term.valid_until))) {
    case Extended::stale_version: return Error{Errc::conflict, "stale_version", "a higher version was used"};
    case Extended::too_late: return Error{Errc::conflict, "ended", "the child is being ended"};
    case Extended::yes: break;
  }
  if (c->knows_deadline() && network_.fails()) return Error{Errc::unavailable, "kept_silent", "no answer"};
  bool fresh = version > c->told;
  c->until = fresh ? term.valid_until : std::max(c->until, term.valid_until);
  c->keep = fresh ? term.keep_until : std::max(c->keep, term.keep_until);
  c->told = std::max(c->told, version);
  checks_.told(time_.now(), c->sender());
  return ok();
}

// One alarm at a time: it goes off when the leash would end as it was then, and finds out whether it was lengthened.
void StreamWorld::watch_leash(StreamHost& host, const ChildPtr& c) {
  TrueTime when = Timeline::true_time(host, Instant(c->leash.kill_at())) + 1;
  if (c->alarm <= when) return;
  c->alarm = when;
  time_.at(when, [this, &host, c, when] {
    if (!c->alive || c->alarm != when) return;
    c->alarm = kForever;
    Timeline::deliver(c, [this, &host, c] {
      if (c->leash.over(micros(time_.local(host)))) end_child(host, c, kKilled);
      else watch_leash(host, c);
    });
  });
}

void StreamWorld::stop_child(StreamHost& host, const ChildPtr& c) {
  time_.in(rng_.between(0ms, 5ms), [this, &host, c] {
    Timeline::deliver(c, [this, &host, c] {
      c->leash.stop(micros(time_.local(host)));
      watch_leash(host, c);
      if (!c->heeds) return;
      time_.in(rng_.between(10ms, 900ms), [this, &host, c] {
        Timeline::deliver(c, [this, &host, c] { end_child(host, c, 0); });
      });
    });
  });
}

void StreamWorld::kill_child(StreamHost& host, const ChildPtr& c) {
  time_.in(rng_.between(0ms, 5ms), [this, &host, c] {
    Timeline::deliver(c, [this, &host, c] {
      c->leash.kill(micros(time_.local(host)));
      end_child(host, c, kKilled);
    });
  });
}

// ---- the end ----

asio::awaitable<std::optional<int>> StreamWorld::end_of(StreamHost& host, OrchestratorPtr o, ChildPtr c) {
  std::function<void(Done<Nothing>)> begin = [this, o, c](const Done<Nothing>& done) {
    auto tell = [this, o, done] {
      time_.in(rng_.between(1ms, 60ms), [this, o, done] { think(o, [done] { done(ok()); }); });
    };
    if (c->alive) c->at_end.emplace_back(tell);
    else tell();
  };
  (void)co_await ask(std::move(begin));
  std::erase(host.records, c);
  co_return c->code;
}

void StreamWorld::end_child(StreamHost& host, const ChildPtr& c, std::optional<int> code) {
  if (!c->alive) return;
  time_.trace("host {} child {} ends: {}", host.index, c->process, code.value_or(-1));
  time_.note(static_cast<std::uint64_t>(c->process));
  disconnect(c);
  c->alive = false;
  c->code = code;
  c->waiting.clear();
  std::erase(host.processes, c);
  for (auto& each : std::exchange(c->at_end, {})) each();
}

// ---- what a child does ----

void StreamWorld::work_later(StreamHost& host, const ChildPtr& c, Duration delay) {
  time_.in(delay, [this, &host, c] { Timeline::deliver(c, [this, &host, c] { work(host, c); }); });
}

// One turn: it looks at its deadline, then at what it reads, and connects or sends.
void StreamWorld::work(StreamHost& host, const ChildPtr& c) {
  Instant now = time_.local(host);
  // What stands may be kept for a while; what is closed is not opened again before the right is valid.
  bool may = now < c->until, keeps = now < std::max(c->keep, c->until);
  if (c->knows_deadline() && !c->open && !may && (c->silent_since == Instant{} || now < c->silent_since)) c->silent_since = now;
  if (may || c->open) c->silent_since = {};
  if (c->silent_since != Instant{} && now >= c->silent_since + kSilentAtMost)
    return end_child(host, c, c->worker() ? 60 : 40);
  if (c->open && !(keeps && input_there(*c))) disconnect(c);
  if (!c->open && may && input_there(*c)) connect(c);
  if (c->open) {
    c->waited = {};
    checks_.sent(time_.now(), c->sender());
    return work_later(host, c, rng_.between(700ms, 1300ms));
  }
  Duration pause = rng_.between(300ms, 700ms);
  c->waited += may ? pause : Duration(0);
  if (c->waited > kPatience) return end_child(host, c, 20);
  work_later(host, c, pause);
}

}  // namespace weir::sim
