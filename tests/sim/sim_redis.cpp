#include "sim_redis.hpp"

#include "run.hpp"

#include "weir/cluster/announcement.hpp"
#include "weir/in_process/coordination.hpp"

namespace weir::sim {

namespace {

constexpr Duration kAnswerWithin = 2s;
constexpr Duration kAgain = 300ms;
constexpr std::int64_t kIdsOfALife = 1'000'000;

// 0 where it is no detection.
int number_in(const std::string& text) {
  auto said = cluster::read_announcement(text);
  const auto* routed = said ? std::get_if<cluster::DetectionRouted>(&said->what) : nullptr;
  return routed == nullptr ? 0 : static_cast<int>(routed->detection.boxes.at(0).box[0]);
}

}  // namespace

// ---- listening ----

class SimRedis::OpenEar final : public Listening {
 public:
  explicit OpenEar(EarPtr ear) : ear_(std::move(ear)) {}
  ~OpenEar() override {
    ear_->closed = true;
    ear_->inner.reset();
  }

 private:
  const EarPtr ear_;
};

void SimRedis::begin_later(const EarPtr& ear, Duration delay) {
  time_.in(delay, [this, ear] {
    if (ear->closed || ear->inner) return;
    if (unreachable(ear->line->host)) return begin_later(ear, kAgain);
    hook(ear);
  });
}

void SimRedis::hook(const EarPtr& ear) {
  ear->inner = kept_->listen(ear->channels, [this, weak = std::weak_ptr(ear)](const Heard& heard) {
    auto there = weak.lock();
    if (there && !(quiet_ && heard.begun)) bring(there, heard);
  });
  io_.restart();
  io_.poll();
}

void SimRedis::bring(const EarPtr& ear, const Heard& heard) {
  Line& line = *ear->line;
  line.in = std::max(line.in, time_.now() + network_.latency().count());
  time_.at(line.in, [this, ear, heard, connection = line.connection] {
    if (ear->closed || ear->line->connection != connection) return;
    if (time_.now() < ear->line->host.redis_cut_until) return break_line(*ear->line);
    think(ear->line->process, [ear, heard] {
      if (!ear->closed) ear->each(heard);
    });
  });
}

void SimRedis::break_line(Line& line) {
  ++line.connection;
  for (const auto& each : std::vector(ears_)) {
    auto ear = each.lock();
    if (!ear || ear->line.get() != &line || ear->closed || !ear->inner) continue;
    ear->inner.reset();
    begin_later(ear, network_.latency() + kAgain);
  }
}

// ---- questions ----

template <class T>
Result<T> SimRedis::at_once(Async<T> work) {
  return test::run(io_, std::move(work));
}

void SimRedis::give_up(const TalkPtr& talk) {
  if (std::exchange(talk->given_up, true)) return;
  for (auto& each : std::exchange(talk->open, {})) think(talk->process, each);
}

void SimRedis::send(const TalkPtr& talk, std::function<std::function<void()>()> serve) {
  talk->out = std::max(talk->out, time_.now() + network_.latency().count());
  time_.at(talk->out, [this, talk, serve = std::move(serve)] {
    if (away()) return give_up(talk);
    talk->broken |= time_.now() < talk->host.redis_cut_until;
    if (talk->broken) return;
    auto reply = serve();
    talk->in = std::max(talk->in, time_.now() + network_.latency().count());
    time_.at(talk->in, [this, talk, reply = std::move(reply)] {
      talk->broken |= time_.now() < talk->host.redis_cut_until;
      if (!talk->broken && !talk->given_up) think(talk->process, reply);
    });
  });
}

std::vector<SimRedis::TalkPtr> SimRedis::open_talks() {
  std::vector<TalkPtr> out;
  std::erase_if(talks_, [](const auto& each) { return each.expired(); });
  for (const auto& each : talks_) out.push_back(each.lock());
  return out;
}

class SimRedis::Way final : public Coordination {
 public:
  Way(SimRedis& redis, const ClusterHost& host, ClusterProcessPtr p)
      : redis_(redis), host_(host), p_(std::move(p)), line_(std::make_shared<Line>(Line{host, p_})) {}

  Async<Nothing> open_epoch(std::int64_t epoch) override {
    redis_.checks_.acts(redis_.time_.now(), p_->number, "opens an epoch");
    auto work = [&redis = redis_, p = p_, epoch, sent = redis_.time_.now()] {
      auto done = redis.at_once(redis.kept_->open_epoch(epoch));
      redis.time_.trace("redis: backend {} opens epoch {:x}{}", p->number, epoch, done ? "" : ", which is refused");
      if (done) redis.checks_.opened(redis.time_.now(), p->number, epoch, sent);
      return done;
    };
    return ask<Nothing>(std::move(work));
  }
  Async<Nothing> write(std::int64_t epoch, std::vector<TableChange> changes) override {
    return act<Nothing>(epoch, "writes", [changes = std::move(changes)](Coordination& kept, std::int64_t under) {
      return kept.write(under, changes);
    });
  }
  Async<Nothing> publish(std::int64_t epoch, std::string channel, std::string text) override {
    return act<Nothing>(epoch, "publishes", [channel = std::move(channel), text = std::move(text)](
                                                Coordination& kept, std::int64_t under) {
      return kept.publish(under, channel, text);
    });
  }
  Async<std::string> deliver(std::int64_t epoch, std::string channel, std::string text) override {
    int number = number_in(text);
    auto taken = [&redis = redis_, p = p_, number](const std::string& id) {
      redis.time_.trace("redis: backend {} delivers result {} as {}", p->number, number, id);
      redis.time_.note(static_cast<std::uint64_t>(number));
      redis.checks_.passed_on(redis.time_.now(), p->number, number, "Redis");
      redis.checks_.kept(id, number);
    };
    return act<std::string>(epoch, "delivers", [channel = std::move(channel), text = std::move(text)](
                                                   Coordination& kept, std::int64_t under) {
      return kept.deliver(under, channel, text);
    }, std::move(taken));
  }

  Async<Nothing> put_slave(std::string slave, std::string record) override {
    return read<Nothing>([slave = std::move(slave), record = std::move(record)](Coordination& kept) {
      return kept.put_slave(slave, record);
    });
  }
  Async<Nothing> remove_slave(std::string slave) override {
    return read<Nothing>([slave = std::move(slave)](Coordination& kept) { return kept.remove_slave(slave); });
  }
  Async<Nothing> tell(std::string channel, std::string text) override {
    return read<Nothing>([channel = std::move(channel), text = std::move(text)](Coordination& kept) {
      return kept.tell(channel, text);
    });
  }
  Async<std::optional<std::int64_t>> epoch() override {
    return read<std::optional<std::int64_t>>([](Coordination& kept) { return kept.epoch(); });
  }
  Async<SharedTable> table(ClusterTable table) override {
    return read<SharedTable>([table](Coordination& kept) { return kept.table(table); });
  }
  Async<std::optional<std::string>> entry(ClusterTable table, std::string field) override {
    return read<std::optional<std::string>>([table, field = std::move(field)](Coordination& kept) {
      return kept.entry(table, field);
    });
  }
  Async<DetectionPage> detections_after(std::string id, int limit) override {
    return read<DetectionPage>([id = std::move(id), limit](Coordination& kept) {
      return kept.detections_after(id, limit);
    });
  }
  std::unique_ptr<Listening> listen(std::vector<std::string> channels,
                                    std::function<void(const Heard&)> each) override {
    // Planted: whoever listens does not learn that it was interrupted.
    if (redis_.planted_ == Planted::interruption_unheard)
      each = [inner = std::move(each), first = true](const Heard& heard) mutable {
        if (!heard.begun || std::exchange(first, false)) inner(heard);
      };
    auto ear = std::make_shared<Ear>(Ear{line_, std::move(channels), std::move(each)});
    redis_.ears_.push_back(ear);
    redis_.begin_later(ear, redis_.network_.latency());
    return std::make_unique<OpenEar>(std::move(ear));
  }

 private:
  template <class T>
  Async<T> ask(std::function<Result<T>()> work) {
    return sim::ask<T>([this, work = std::move(work)](Done<T> done) {
      if (!talk_ || talk_->given_up) {
        talk_ = std::make_shared<Talk>(Talk{host_, p_});
        redis_.talks_.push_back(talk_);
      }
      talk_->open.emplace_back([done] { done(no_answer("coordination_unavailable")); });
      redis_.send(talk_, [work, done] { return [done, answer = work()] { done(answer); }; });
      redis_.time_.in(kAnswerWithin, [talk = talk_, done] {
        if (done.wanted()) give_up(talk);
      });
    });
  }
  template <class T>
  Async<T> read(std::function<Async<T>(Coordination& kept)> question) {
    return ask<T>([&redis = redis_, question = std::move(question)] { return redis.at_once(question(*redis.kept_)); });
  }
  // Under the epoch, which Redis compares.
  template <class T>
  Async<T> act(std::int64_t epoch, std::string_view what, std::function<Async<T>(Coordination&, std::int64_t)> question,
               std::function<void(const T&)> taken = [](const T&) {}) {
    redis_.checks_.acts(redis_.time_.now(), p_->number, what);
    return ask<T>([&redis = redis_, p = p_, epoch, question = std::move(question), taken = std::move(taken)] {
      auto stored = *redis.at_once(redis.kept_->epoch());
      std::int64_t under = epoch;
      // Planted: nobody compares, or whoever finds no epoch stores its own without having renewed.
      if (redis.planted_ == Planted::epoch_not_compared) under = stored.value_or(epoch);
      if (redis.planted_ == Planted::epoch_opened_unrenewed && !stored) {
        (void)redis.at_once(redis.kept_->open_epoch(epoch));
        redis.checks_.opened(redis.time_.now(), p->number, epoch, redis.time_.now());
        stored = epoch;
      }
      auto answer = redis.at_once(question(*redis.kept_, under));
      if (answer) redis.checks_.took(redis.time_.now(), p->number, epoch, stored);
      if (answer) taken(*answer);
      return answer;
    });
  }

  SimRedis& redis_;
  const ClusterHost& host_;
  const ClusterProcessPtr p_;
  const std::shared_ptr<Line> line_;
  std::shared_ptr<Talk> talk_;
};

// ---- the whole ----

SimRedis::SimRedis(Timeline& time, Network& network, ClusterChecks& checks, Planted planted)
    : time_(time), network_(network), checks_(checks), planted_(planted) {
  make_anew();
}
SimRedis::~SimRedis() = default;

// Redis makes ids of the time, so none is given out twice.
void SimRedis::make_anew() {
  kept_ = in_process::make_coordination(io_.get_executor(), {.ids_above = kIdsOfALife * lives_++});
}

std::unique_ptr<Coordination> SimRedis::connect(const ClusterHost& host, const ClusterProcessPtr& p) {
  return std::make_unique<Way>(*this, host, p);
}

void SimRedis::away_until(TrueTime when) {
  away_until_ = std::max(away_until_, when);
  for (const TalkPtr& talk : open_talks()) {
    talk->broken = true;
    time_.in(network_.latency(), [talk] { give_up(talk); });
  }
  for (const auto& each : std::vector(ears_))
    if (auto ear = each.lock()) break_line(*ear->line);
}

void SimRedis::empty(bool restarted) {
  checks_.emptied(time_.now());
  std::erase_if(ears_, [](const auto& each) { return each.expired(); });
  make_anew();
  if (restarted) return away_until(time_.now() + std::chrono::duration_cast<Duration>(50ms).count());
  quiet_ = true;
  for (const auto& each : ears_)
    if (auto ear = each.lock(); ear->inner) hook(ear);
  quiet_ = false;
}

void SimRedis::break_connections(const ClusterHost& host) {
  for (const TalkPtr& talk : open_talks())
    if (&talk->host == &host) talk->broken = true;
  for (const auto& each : std::vector(ears_))
    if (auto ear = each.lock(); ear && &ear->line->host == &host) break_line(*ear->line);
}

}  // namespace weir::sim
