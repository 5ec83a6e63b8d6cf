// event_load: simulated runners that publish, and one subscriber that counts, driven by lines on stdin.
//
//   event_load PORT SECRET_FILE RUNNERS CAMERAS_EACH
//     furnish                       adds tenant, site and cameras, and takes every lease
//     run RATE SECONDS BATCH        publishes RATE events a second in batches of BATCH; the subscriber must get each
//
// Every event says when it was due; its latency counts from then until the subscriber has its bytes. The publishers'
// texts are as real ones: three detections, a stamp, an id that sorts by time.
#include "load.hpp"

#include "weir/base/clock.hpp"
#include "weir/base/json.hpp"
#include "weir/event/events.hpp"
#include "weir/event/routing.hpp"
#include "weir/net/token.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <deque>
#include <iostream>
#include <sstream>
#include <thread>

namespace weir::bench {

namespace {

using namespace std::chrono_literals;
constexpr Span kPatience = 10s;

void reply(const std::string& json) {
  std::fputs((json + "\n").c_str(), stdout);
  std::fflush(stdout);
}

std::string token(const net::TokenKey& key, const std::string& sub, net::Role role) {
  net::Claims claims;
  claims.sub = sub;
  claims.role = role;
  claims.expires = wall_now() + 6h;
  return key.sign(claims).reveal();
}

// Reads the stream on a thread of its own and notes when each event came, by the number in its id.
class Subscriber {
 public:
  Subscriber(std::uint16_t port, const std::string& bearer, size_t events) : arrived_(events) {
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    std::string request = fmt::format(
        "GET /v1/events?pattern=detections.%23 HTTP/1.1\r\nhost: bench\r\naccept: text/event-stream\r\n"
        "authorization: Bearer {}\r\n\r\n", bearer);
    bool sent = ::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0 &&
                ::send(fd_, request.data(), request.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(request.size());
    char first = 0;
    if (!sent || ::recv(fd_, &first, 1, MSG_PEEK) != 1) std::fputs("the subscriber could not connect\n", stderr);
    thread_ = std::thread([this] { read(); });
  }
  ~Subscriber() {
    ::shutdown(fd_, SHUT_RDWR);
    thread_.join();
    ::close(fd_);
  }
  size_t count() const { return count_; }
  size_t repeated() const { return repeated_; }
  bool got(size_t n) const { return arrived_[n] != Moment{}; }
  Moment arrived(size_t n) const { return arrived_[n]; }

 private:
  // A number may be cut in two by the end of a block or of a chunk: what is left is looked at with the next block.
  void read() {
    constexpr std::string_view kMark = "\"event_id\":\"";
    constexpr size_t kIdBytes = 13 + 16 + 1;
    std::string held;
    std::vector<char> block(256 << 10);
    for (ssize_t got = 0; (got = ::recv(fd_, block.data(), block.size(), 0)) > 0;) {
      Moment now = moment();
      held.append(block.data(), static_cast<size_t>(got));
      size_t at = 0;
      for (;;) {
        size_t mark = held.find(kMark, at);
        if (mark == std::string::npos || mark + kMark.size() + kIdBytes > held.size()) {
          held.erase(0, mark == std::string::npos ? held.size() - std::min(held.size(), kMark.size()) : mark);
          break;
        }
        note(std::strtoull(held.substr(mark + kMark.size() + 13, 16).c_str(), nullptr, 16), now);
        at = mark + kMark.size();
      }
    }
  }
  void note(size_t n, Moment now) {
    if (n >= arrived_.size()) return;
    if (arrived_[n] == Moment{}) {
      arrived_[n] = now;
      ++count_;
    } else {
      ++repeated_;
    }
  }
  int fd_ = -1;
  std::vector<Moment> arrived_;
  std::atomic<size_t> count_{0}, repeated_{0};
  std::thread thread_;
};

class Publishers {
 public:
  Publishers(std::uint16_t port, const net::TokenKey& key, int runners, int cameras_each)
      : port_(port), runners_(runners), cameras_(cameras_each), admin_(token(key, "bench", net::Role::admin)) {
    for (int n = 0; n < runners; ++n) tokens_.push_back(token(key, runner(n), net::Role::runner));
    versions_.resize(static_cast<size_t>(runners * cameras_each));
  }
  void furnish();
  void run(int rate, int seconds, int batch);

 private:
  static std::string runner(int n) { return fmt::format("runner-{}", n); }
  static event::Place place(int camera) {
    return {TenantId::trusted("t-01"), SiteId::trusted("site-A"), CameraId::trusted(fmt::format("cam-{}", camera))};
  }
  // Asks, one after the other; the body of each answer, which must be a good one.
  std::string ask(const std::string& path, const std::string& bearer, const std::string& body);
  std::string batch_text(int runner, size_t first, int count);

  const std::uint16_t port_;
  const int runners_, cameras_;
  const std::string admin_;
  std::vector<std::string> tokens_;
  std::vector<std::int64_t> versions_;
};

std::string Publishers::ask(const std::string& path, const std::string& bearer, const std::string& body) {
  std::string out;
  Load load([&](size_t, const Answer& answer) { out = fmt::format("{} {}", answer.status, answer.body); });
  load.connect(port_);
  load.send(0, post_text(path, bearer, body));
  for (Moment limit = moment() + kPatience; load.waiting() > 0 && moment() < limit;) load.turn(limit);
  if (!out.starts_with("20")) std::fputs((path + ": " + out + "\n").c_str(), stderr);
  return out.size() > 4 ? out.substr(4) : std::string();
}

void Publishers::furnish() {
  ask("/v1/tenants", admin_, R"({"tenant_id":"t-01"})");
  ask("/v1/sites", admin_, R"({"site_id":"site-A","tenant_id":"t-01"})");
  size_t granted = 0;
  for (int n = 0; n < runners_; ++n) {
    std::string items;
    for (int c = n * cameras_; c < (n + 1) * cameras_; ++c) {
      ask("/v1/cameras", admin_, fmt::format(R"({{"camera_uuid":"cam-{}","tenant_id":"t-01","site_id":"site-A",)"
                                             R"("rtsp_url":"rtsp://camera.example/{}"}})", c, c));
      items += fmt::format(R"({}{{"camera_uuid":"cam-{}","key":"k"}})", items.empty() ? "" : ",", c);
    }
    auto answer = json::parse_text(ask("/v1/leases/camera/acquire-batch", tokens_[static_cast<size_t>(n)],
                                       fmt::format(R"({{"runner_id":"{}","boot_id":"b","ttl_seconds":60,"items":[{}]}})",
                                                   runner(n), items)));
    if (!answer) continue;
    for (const json::value& item : answer->at("items").as_array()) {
      versions_[static_cast<size_t>(n * cameras_) + (granted % static_cast<size_t>(cameras_))] = item.at("version").as_int64();
      ++granted;
    }
  }
  reply(fmt::format(R"({{"granted":{}}})", granted));
}

std::string Publishers::batch_text(int n, size_t first, int count) {
  WallTime now = wall_now();
  std::string body = R"({"items":[)";
  for (int i = 0; i < count; ++i) {
    size_t number = first + static_cast<size_t>(i);
    int camera = n * cameras_ + static_cast<int>(number / static_cast<size_t>(runners_)) % cameras_;
    event::Place at = place(camera);
    std::int64_t version = versions_[static_cast<size_t>(camera)];
    event::DetectionEvent event{event::make_event_id(now, fmt::format("{:016x}", number)), now,
                                RunnerId::trusted(runner(n)), "shard-0", at,
                                static_cast<std::int64_t>(number), 5.8};
    event.detections = {{"person", 0.8912, {101.5, 20.25, 180, 300.1}}, {"person", 0.7712, {301.5, 40.25, 380, 310.1}, {1}},
                        {"car", 0.5512, {401.5, 120.25, 580, 300.1}, {1, 2}}};
    event.inference_s = 0.0461;
    event.e2e_s = 0.1453;
    event::Event said = event::stamped(event::to_event(event), {at.camera, {version}});
    fmt::format_to(std::back_inserter(body),
                   R"({}{{"topic":"detections.topic","routing_key":"{}","event_id":"{}","camera_uuid":"{}",)"
                   R"("lease_version":{},"payload":{}}})", i == 0 ? "" : ",", said.routing_key, said.event_id, at.camera,
                   version, said.payload);
  }
  return post_text("/v1/events/batch", tokens_[static_cast<size_t>(n)], body + "]}");
}

void Publishers::run(int rate, int seconds, int batch) {
  size_t total = static_cast<size_t>(rate) * static_cast<size_t>(seconds) / static_cast<size_t>(batch) *
                 static_cast<size_t>(batch);
  Subscriber subscriber(port_, admin_, total);
  std::vector<Moment> due(total);
  size_t accepted = 0, other = 0, failed = 0;
  std::string trouble;
  Latencies confirmed, delivered;
  std::vector<Moment> asked(static_cast<size_t>(runners_));
  std::vector<std::deque<size_t>> behind(static_cast<size_t>(runners_));
  Load* load_of = nullptr;
  auto send = [&](size_t wire, size_t first) {
    asked[wire] = due[first];
    load_of->send(wire, batch_text(static_cast<int>(wire), first, batch));
  };
  Load load([&](size_t wire, const Answer& answer) {
    confirmed.add(moment() - asked[wire]);
    size_t good = 0;
    for (size_t at = answer.body.find("accepted"); at != std::string_view::npos; at = answer.body.find("accepted", at + 1))
      ++good;
    accepted += good;
    if (answer.status != 200) ++failed;
    else other += static_cast<size_t>(batch) - good;
    if (trouble.empty() && good != static_cast<size_t>(batch))
      trouble = fmt::format("{} {}", answer.status, answer.body.substr(0, 200));
    if (behind[wire].empty() || answer.status == 0) return;
    size_t first = behind[wire].front();
    behind[wire].pop_front();
    send(wire, first);
  });
  load_of = &load;
  for (int n = 0; n < runners_; ++n) load.connect(port_);
  Moment begun = moment();
  auto due_at = [&](size_t n) { return begun + Span(1s) * static_cast<std::int64_t>(n) / rate; };
  for (size_t next = 0; next < total;) {
    Moment now = moment();
    for (; next < total && due_at(next) <= now; next += static_cast<size_t>(batch)) {
      for (size_t i = next; i < next + static_cast<size_t>(batch); ++i) due[i] = due_at(next);
      size_t wire = next / static_cast<size_t>(batch) % static_cast<size_t>(runners_);
      if (load.wire(wire).waiting()) behind[wire].push_back(next);
      else send(wire, next);
    }
    load.turn(next < total ? due_at(next) : moment());
  }
  for (Moment limit = moment() + kPatience; load.waiting() > 0 && moment() < limit;) load.turn(limit);
  for (Moment limit = moment() + kPatience; subscriber.count() < accepted && moment() < limit;)
    std::this_thread::sleep_for(10ms);
  for (size_t n = 0; n < total; ++n)
    if (subscriber.got(n)) delivered.add(subscriber.arrived(n) - due[n]);
  for (char& c : trouble)
    if (c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20) c = '\'';
  reply(fmt::format(R"({{"sent":{},"accepted":{},"other":{},"failed":{},"received":{},"repeated":{},)"
                    R"("confirmed":{},"delivered":{},"trouble":"{}"}})", total, accepted, other, failed,
                    subscriber.count(), subscriber.repeated(), confirmed.json(), delivered.json(), trouble));
}

int serve(int argc, char** argv) {
  if (argc != 5) {
    std::fputs("usage: event_load PORT SECRET_FILE RUNNERS CAMERAS_EACH\n", stderr);
    return 2;
  }
  auto key = net::TokenKey::load_or_create(argv[2]);
  if (!key) {
    std::fputs((key.error().message + "\n").c_str(), stderr);
    return 1;
  }
  Publishers publishers(static_cast<std::uint16_t>(std::atoi(argv[1])), *key, std::atoi(argv[3]), std::atoi(argv[4]));
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string command;
    int rate = 0, seconds = 0, batch = 1;
    words >> command >> rate >> seconds >> batch;
    if (command == "furnish") publishers.furnish();
    else if (command == "run") publishers.run(rate, seconds, batch);
    else return 2;
  }
  return 0;
}

}  // namespace

}  // namespace weir::bench

int main(int argc, char** argv) { return weir::bench::serve(argc, argv); }
