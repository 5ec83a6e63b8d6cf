// lease_load: simulated runners that hold leases, driven by lines on stdin, answered by lines of JSON on stdout.
//
//   lease_load --print-renew-statement        the SQL that a renew-batch becomes, for the peer
//   lease_load PORT SECRET_FILE RUNNERS LEASES_EACH SPARES
//     furnish COUNT            adds tenant, site and cameras cam-0 … through the API
//     acquire                  every runner takes its cameras in one acquire-batch
//     hold SECONDS SINGLES     every runner renews in one batch every 2 s; beside it SINGLES single acquires a second
//     saturate SECONDS WIRES   renews batches of runners in random order, as fast as WIRES connections can
//
// Each runner has a token of its own, as real ones do.
#include "load.hpp"

#include "weir/base/clock.hpp"
#include "weir/net/token.hpp"
#include "weir/postgres/store.hpp"

#include <fmt/format.h>

#include <sys/resource.h>

#include <charconv>
#include <cstdio>
#include <deque>
#include <iostream>
#include <random>
#include <sstream>

namespace weir::bench {

namespace {

using namespace std::chrono_literals;
constexpr Span kPeriod = 2s;
constexpr Span kPatience = 10s;
constexpr int kTtlSeconds = 6;
constexpr const char* kBoot = "boot-1";

// What the answers said, per lease. Anything unexpected is kept as text, so that a run explains itself.
struct Tally {
  std::int64_t batches = 0, expected = 0, lost = 0, other = 0, failed = 0;
  std::string first_trouble = {};

  void trouble(std::int64_t& kind, std::int64_t count, const Answer& answer) {
    kind += count;
    if (first_trouble.empty()) first_trouble = fmt::format("{} {}", answer.status, answer.body.substr(0, 300));
  }

  // Every camera of a batch is answered with one result.
  void judge(const Answer& answer, std::string_view wanted, int leases) {
    ++batches;
    if (answer.status != 200) return trouble(failed, 1, answer);
    constexpr std::string_view kResult = "\"result\":\"";
    int good = 0, lost_here = 0, seen = 0;
    for (size_t at = answer.body.find(kResult); at != std::string_view::npos; at = answer.body.find(kResult, at)) {
      at += kResult.size();
      ++seen;
      std::string_view word = answer.body.substr(at, answer.body.find('"', at) - at);
      good += word == wanted ? 1 : 0;
      lost_here += word == "lost" ? 1 : 0;
      at += 40;  // what follows a result within its item is longer than this
    }
    expected += good;
    if (lost_here > 0) trouble(lost, lost_here, answer);
    if (seen - good - lost_here > 0) trouble(other, seen - good - lost_here, answer);
    if (seen != leases) trouble(failed, 1, answer);
  }

  std::string json() const {
    std::string quoted;
    for (char c : first_trouble) {
      if (c == '"' || c == '\\') quoted += '\\';
      quoted += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
    return fmt::format(R"("batches":{},"expected":{},"lost":{},"other":{},"failed":{},"trouble":"{}")", batches,
                       expected, lost, other, failed, quoted);
  }
};

double as_seconds(Span span) { return static_cast<double>(span.count()) / 1e9; }
void reply(const std::string& json) {
  std::fputs((json + "\n").c_str(), stdout);
  std::fflush(stdout);
}

class Runners {
 public:
  Runners(std::uint16_t port, const net::TokenKey& key, int runners, int leases_each, int spares)
      : port_(port), runners_(runners), leases_(leases_each), spares_(spares) {
    admin_ = token(key, "bench", net::Role::admin);
    single_ = token(key, "single", net::Role::runner);
    for (int n = 0; n < runners; ++n) tokens_.push_back(token(key, runner(n), net::Role::runner));
    versions_.resize(static_cast<size_t>(runners) * static_cast<size_t>(leases_));
  }

  void furnish(int cameras);
  void acquire();
  void hold(Span length, int singles_per_second);
  void saturate(Span length, int wires);

 private:
  class Singles;

  static std::string token(const net::TokenKey& key, const std::string& sub, net::Role role) {
    net::Claims claims;
    claims.sub = sub;
    claims.role = role;
    if (role == net::Role::runner) claims.tenant = TenantId::trusted("t-01");
    claims.expires = wall_now() + 6h;
    return key.sign(claims).reveal();
  }
  static std::string runner(int n) { return fmt::format("runner-{}", n); }
  static std::string camera(int n) { return fmt::format("cam-{}", n); }
  std::string body(int n, const std::function<std::string(int camera)>& more) const;
  void learn(int runner, std::string_view body);
  // Asks `count` questions over `wires` connections, each as soon as the one before it was answered.
  void ask_all(int count, int wires, const std::function<std::string(int)>& question,
               const std::function<void(int, const Answer&)>& answered);

  const std::uint16_t port_;
  const int runners_, leases_, spares_;
  std::string admin_, single_;
  std::vector<std::string> tokens_;
  std::vector<std::int64_t> versions_;
  std::vector<std::string> renewals_;  // the request of each runner, ready to send
};

std::string Runners::body(int n, const std::function<std::string(int camera)>& more) const {
  std::string out =
      fmt::format(R"({{"runner_id":"{}","boot_id":"{}","ttl_seconds":{},"items":[)", runner(n), kBoot, kTtlSeconds);
  for (int each = n * leases_; each < (n + 1) * leases_; ++each)
    out += fmt::format(R"({}{{"camera_uuid":"{}",{}}})", each == n * leases_ ? "" : ",", camera(each), more(each));
  return out + "]}";
}

void Runners::ask_all(int count, int wires, const std::function<std::string(int)>& question,
                      const std::function<void(int, const Answer&)>& answered) {
  int next = 0;
  std::vector<int> asked(static_cast<size_t>(wires));
  std::string text;
  std::function<void(size_t)> ask_next;
  Load load([&](size_t wire, const Answer& answer) {
    answered(asked[wire], answer);
    if (answer.status != 0) ask_next(wire);
  });
  ask_next = [&](size_t wire) {
    if (next >= count) return;
    asked[wire] = next;
    text = question(next++);
    load.send(wire, text);
  };
  for (int i = 0; i < wires; ++i) load.connect(port_);
  for (size_t i = 0; i < load.size(); ++i) ask_next(i);
  for (Moment end = moment() + 10min; load.waiting() > 0 && moment() < end;) load.turn(end);
}

void Runners::furnish(int cameras) {
  int added = 0, failed = 0;
  auto judge = [&](int, const Answer& answer) { ++(answer.status == 201 ? added : failed); };
  ask_all(
      1, 1, [&](int) { return post_text("/v1/tenants", admin_, R"({"tenant_id":"t-01"})"); }, judge);
  ask_all(
      1, 1, [&](int) { return post_text("/v1/sites", admin_, R"({"site_id":"s-01","tenant_id":"t-01"})"); }, judge);
  Moment begun = moment();
  auto add = [&](int n) {
    return post_text("/v1/cameras", admin_,
                     fmt::format(R"({{"camera_uuid":"{}","tenant_id":"t-01","site_id":"s-01",)"
                                 R"("rtsp_url":"rtsp://user:pass@192.0.2.10/stream{}"}})",
                                 camera(n), n));
  };
  ask_all(cameras, std::min(cameras, 32), add, judge);
  reply(fmt::format(R"({{"added":{},"failed":{},"seconds":{:.3f}}})", added - 2, failed, as_seconds(moment() - begun)));
}

// The versions that an acquire-batch granted, in the order asked.
void Runners::learn(int n, std::string_view text) {
  constexpr std::string_view kVersion = "\"version\":";
  size_t at = 0;
  for (int i = 0; i < leases_; ++i) {
    at = text.find(kVersion, at);
    if (at == std::string_view::npos) return;
    at += kVersion.size();
    std::from_chars(text.data() + at, text.data() + text.size(), versions_[static_cast<size_t>(n * leases_ + i)]);
  }
}

void Runners::acquire() {
  Tally tally;
  Moment begun = moment();
  auto question = [&](int n) {
    auto key = [](int each) { return fmt::format(R"("key":"k-{}")", each); };
    return post_text("/v1/leases/camera/acquire-batch", tokens_[static_cast<size_t>(n)], body(n, key));
  };
  auto answered = [&](int n, const Answer& answer) {
    tally.judge(answer, "granted", leases_);
    learn(n, answer.body);
  };
  ask_all(runners_, 8, question, answered);
  Span took = moment() - begun;
  renewals_.clear();
  for (int n = 0; n < runners_; ++n) {
    auto version = [&](int each) { return fmt::format(R"("version":{})", versions_[static_cast<size_t>(each)]); };
    renewals_.push_back(post_text("/v1/leases/camera/renew-batch", tokens_[static_cast<size_t>(n)], body(n, version)));
  }
  reply(fmt::format(R"({{{},"seconds":{:.3f}}})", tally.json(), as_seconds(took)));
}

// Single acquires of cameras that nobody holds, each released before the next one on its connection.
class Runners::Singles {
 public:
  Singles(const Runners& of, Load& load, size_t first_wire, int wires)
      : of_(of), load_(load), first_(first_wire), now_(static_cast<size_t>(wires)) {
    for (size_t i = 0; i < now_.size(); ++i) idle_.push_back(i);
  }
  bool mine(size_t wire) const { return wire >= first_; }
  void due(Moment when) {
    waiting_.push_back(when);
    start();
  }
  void answered(size_t wire, const Answer& answer) {
    State& state = now_[wire - first_];
    if (state.acquiring) took_.add(moment() - state.due);
    (answer.status == 200 ? good_ : bad_) += state.acquiring ? 1 : 0;
    if (state.acquiring && answer.status == 200) {
      state.acquiring = false;
      return ask(wire, "release");
    }
    idle_.push_back(wire - first_);
    start();
  }
  std::string json() { return fmt::format(R"("granted":{},"refused":{},"took":{})", good_, bad_, took_.json()); }

 private:
  struct State {
    Moment due;
    bool acquiring = false;
    int camera = 0;
  };
  void start() {
    if (waiting_.empty() || idle_.empty()) return;
    size_t i = idle_.front();
    idle_.pop_front();
    int spare = next_++ % of_.spares_;
    now_[i] = {waiting_.front(), true, of_.runners_ * of_.leases_ + spare};
    waiting_.pop_front();
    ask(first_ + i, "acquire");
  }
  void ask(size_t wire, std::string_view what) {
    std::string text = fmt::format(R"({{"runner_id":"single","camera_uuid":"{}","ttl_seconds":{}}})",
                                   camera(now_[wire - first_].camera), kTtlSeconds);
    load_.send(wire, post_text(fmt::format("/v1/leases/camera/{}", what), of_.single_, text));
  }

  const Runners& of_;
  Load& load_;
  const size_t first_;
  std::vector<State> now_;
  std::deque<size_t> idle_;
  std::deque<Moment> waiting_;
  Latencies took_;
  std::int64_t good_ = 0, bad_ = 0;
  int next_ = 0;
};

// The runners' turns are spread evenly over the period. One whose answer is still out when it is due again asks as soon
// as it has it; the wait counts.
void Runners::hold(Span length, int singles_per_second) {
  constexpr int kSingleWires = 8;
  Tally tally;
  Latencies took;
  std::vector<Moment> due(static_cast<size_t>(runners_));
  std::vector<std::deque<Moment>> behind(static_cast<size_t>(runners_));
  std::int64_t overrun = 0;
  Singles* singles_of = nullptr;
  Load* load_of = nullptr;
  Load load([&](size_t wire, const Answer& answer) {
    if (singles_of->mine(wire)) return singles_of->answered(wire, answer);
    took.add(moment() - due[wire]);
    tally.judge(answer, "renewed", leases_);
    if (behind[wire].empty() || answer.status == 0) return;
    due[wire] = behind[wire].front();
    behind[wire].pop_front();
    load_of->send(wire, renewals_[wire]);
  });
  load_of = &load;
  for (int i = 0; i < runners_; ++i) load.connect(port_);
  Singles singles(*this, load, load.size(), kSingleWires);
  singles_of = &singles;
  for (int i = 0; i < kSingleWires; ++i) load.connect(port_);

  Moment begun = moment();
  Moment end = begun + length;
  std::int64_t batches = 0, acquires = 0;
  auto batch_due = [&] { return begun + batches * kPeriod / runners_; };
  auto single_due = [&] { return singles_per_second > 0 ? begun + acquires * Span(1s) / singles_per_second : end; };
  for (Moment now = begun; now < end; now = moment()) {
    for (; batch_due() <= now; ++batches) {
      auto n = static_cast<size_t>(batches % runners_);
      if (load.wire(n).waiting()) {
        ++overrun;
        behind[n].push_back(batch_due());
        continue;
      }
      due[n] = batch_due();
      load.send(n, renewals_[n]);
    }
    for (; single_due() <= now && single_due() < end; ++acquires) singles.due(single_due());
    load.turn(std::min({batch_due(), single_due(), end}));
  }
  for (Moment limit = end + kPatience; load.waiting() > 0 && moment() < limit;) load.turn(limit);
  reply(fmt::format(R"({{{},"overrun":{},"unanswered":{},"seconds":{:.3f},"took":{},"singles":{{{}}}}})", tally.json(),
                    overrun, load.waiting(), as_seconds(length), took.json(), singles.json()));
}

void Runners::saturate(Span length, int wires) {
  Tally tally;
  Latencies took;
  std::mt19937 draw(1);
  std::vector<Moment> sent(static_cast<size_t>(wires));
  Moment end = moment() + length;
  std::function<void(size_t)> ask;
  Load load([&](size_t wire, const Answer& answer) {
    Moment now = moment();
    if (now < end) {
      took.add(now - sent[wire]);
      tally.judge(answer, "renewed", leases_);
    }
    if (now < end && answer.status != 0) ask(wire);
  });
  ask = [&](size_t wire) {
    sent[wire] = moment();
    load.send(wire, renewals_[draw() % renewals_.size()]);
  };
  for (int i = 0; i < wires; ++i) load.connect(port_);
  end = moment() + length;
  for (size_t i = 0; i < load.size(); ++i) ask(i);
  while (moment() < end) load.turn(end);
  for (Moment limit = end + kPatience; load.waiting() > 0 && moment() < limit;) load.turn(limit);
  reply(fmt::format(R"({{{},"seconds":{:.3f},"rate":{:.1f},"took":{}}})", tally.json(), as_seconds(length),
                    static_cast<double>(tally.batches) / as_seconds(length), took.json()));
}

int serve(int argc, char** argv) {
  if (argc != 6) {
    std::fputs("usage: lease_load PORT SECRET_FILE RUNNERS LEASES_EACH SPARES\n", stderr);
    return 2;
  }
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  auto key = net::TokenKey::load_or_create(argv[2]);
  if (!key) {
    std::fputs((key.error().message + "\n").c_str(), stderr);
    return 1;
  }
  Runners runners(static_cast<std::uint16_t>(std::atoi(argv[1])), *key, std::atoi(argv[3]), std::atoi(argv[4]),
                  std::atoi(argv[5]));
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string command;
    int length = 0, more = 0;
    words >> command >> length >> more;
    if (command == "furnish") runners.furnish(length);
    else if (command == "acquire") runners.acquire();
    else if (command == "hold") runners.hold(std::chrono::seconds(length), more);
    else if (command == "saturate") runners.saturate(std::chrono::seconds(length), more);
    else return 2;
  }
  return 0;
}

}  // namespace

}  // namespace weir::bench

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--print-renew-statement") {
    std::puts(weir::postgres::PostgresStore::renew_statement());
    return 0;
  }
  return weir::bench::serve(argc, argv);
}
