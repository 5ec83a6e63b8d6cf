// cluster_load: detection workers, their results and a listener for benchmarks of the detector cluster, driven by lines on
// stdin, answered by lines of JSON on stdout.
//
//   cluster_load PLANE_PORT SECRET_FILE WORKERS
//     furnish DISPLAYS CAMERAS         adds a model with a file, a playlist, cameras and displays to the control plane
//     counts                           how many workers are connected, and what they run in all
//     forget                           the workers run nothing any more
//     state PORT COUNT                 asks a process of the cluster for its state so often, one after the other
//     changes COUNT                    adds a display and waits until a worker is told so, so often
//     detections RATE SECONDS WHERE    every result that the workers send must come to one listener; WHERE is that of Ear
//
// It says first where its workers are: {"workers":"127.0.0.1:43121"}.
#include "cluster_ear.hpp"
#include "cluster_workers.hpp"

#include "weir/net/token.hpp"

#include <fmt/format.h>

#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <random>
#include <sstream>

namespace weir::bench {

namespace {

using namespace std::chrono_literals;
constexpr Span kPatience = 10s;
constexpr int kWires = 32;

void reply(const std::string& json) {
  std::fputs((json + "\n").c_str(), stdout);
  std::fflush(stdout);
}

std::string token(const net::TokenKey& key) {
  net::Claims claims;
  claims.sub = "bench";
  claims.role = net::Role::admin;
  claims.expires = wall_now() + 6h;
  return key.sign(claims).reveal();
}

class ClusterLoad {
 public:
  ClusterLoad(std::uint16_t plane, const net::TokenKey& key, int workers)
      : plane_(plane), token_(token(key)), workers_(workers) {
    reply(fmt::format(R"({{"workers":"{}"}})", workers_.address()));
  }
  void furnish(int displays, int cameras);
  void counts() {
    auto now = workers_.counts();
    reply(fmt::format(R"({{"connected":{},"subscriptions":{}}})", now.connected, now.subscriptions));
  }
  void forget() {
    workers_.forget();
    counts();
  }
  void state(std::uint16_t port, int count);
  void changes(int count);
  void detections(int rate, int seconds, const std::string& where);

 private:
  static std::string display_text(const std::string& id, int camera) {
    return fmt::format(R"({{"display_id":"{}","tenant_id":"t-01","camera_uuid":"cam-{}","playlist_id":"lunch"}})", id, camera);
  }
  // Posts over many connections; how many were not answered with 2xx.
  int post_all(int count, const std::string& path, const std::function<std::string(int)>& body);
  Answer ask(Load& load, std::uint16_t port, const std::string& text);

  const std::uint16_t plane_;
  const std::string token_;
  SimulatedWorkers workers_;
  int cameras_ = 1, changes_ = 0;
};

int ClusterLoad::post_all(int count, const std::string& path, const std::function<std::string(int)>& body) {
  int next = 0, failed = 0;
  std::function<void(size_t)> ask_next;
  Load load([&](size_t wire, const Answer& answer) {
    if (answer.status / 100 != 2 && failed++ == 0)
      std::fputs(fmt::format("{}: {} {}\n", path, answer.status, answer.body.substr(0, 300)).c_str(), stderr);
    if (answer.status != 0) ask_next(wire);
  });
  ask_next = [&](size_t wire) {
    if (next < count) load.send(wire, post_text(path, token_, body(next++)));
  };
  for (int i = 0; i < std::min(kWires, count); ++i) load.connect(plane_);
  for (size_t i = 0; i < load.size(); ++i) ask_next(i);
  for (Moment end = moment() + 10min; load.waiting() > 0 && moment() < end;) load.turn(end);
  return failed + load.waiting() + (count - next);
}

void ClusterLoad::furnish(int displays, int cameras) {
  Moment begun = moment();
  cameras_ = cameras;
  int failed = post_all(1, "/v1/tenants", [](int) { return R"({"tenant_id":"t-01"})"; });
  failed += post_all(1, "/v1/sites", [](int) { return R"({"site_id":"s-01","tenant_id":"t-01"})"; });
  failed += post_all(1, "/v1/models", [](int) { return R"({"model_id":7,"tenant_id":"t-01","name":"vehicles"})"; });
  Load load([&](size_t, const Answer& answer) { failed += answer.status / 100 == 2 ? 0 : 1; });
  load.connect(plane_);
  load.send(0, fmt::format("PUT /v1/models/7/file HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {}\r\n"
                           "Content-Type: application/octet-stream\r\nContent-Length: 8\r\n\r\nno model", token_));
  for (Moment end = moment() + kPatience; load.waiting() > 0 && moment() < end;) load.turn(end);
  failed += post_all(1, "/v1/playlists", [](int) { return R"({"playlist_id":"lunch","tenant_id":"t-01","model_id":7})"; });
  failed += post_all(cameras, "/v1/cameras", [](int n) {
    return fmt::format(R"({{"camera_uuid":"cam-{}","tenant_id":"t-01","site_id":"s-01","processing":"cluster",)"
                       R"("rtsp_url":"rtsp://u:p@camera-{}.example/stream"}})", n, n);
  });
  failed += post_all(displays, "/v1/displays",
                     [&](int n) { return display_text(fmt::format("display-{:05}", n), n % cameras_); });
  reply(fmt::format(R"({{"failed":{},"seconds":{:.2f}}})", failed, static_cast<double>((moment() - begun).count()) / 1e9));
}

Answer ClusterLoad::ask(Load& load, std::uint16_t port, const std::string& text) {
  if (load.size() == 0) load.connect(port);
  load.send(0, text);
  for (Moment end = moment() + kPatience; load.waiting() > 0 && moment() < end;) load.turn(end);
  return {load.wire(0).broken() || load.waiting() > 0 ? 0 : 200, {}};
}

void ClusterLoad::state(std::uint16_t port, int count) {
  Latencies took;
  size_t bytes = 0;
  int failed = 0;
  Load load([&](size_t, const Answer& answer) {
    bytes = answer.body.size();
    failed += answer.status == 200 ? 0 : 1;
  });
  std::string text = fmt::format("GET /v1/cluster/state HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {}\r\n\r\n", token_);
  std::mt19937 draw(1);
  for (int n = 0; n < count; ++n) {
    std::this_thread::sleep_for(20ms + std::chrono::milliseconds(draw() % 60));  // not in step with the workers' reports
    Moment begun = moment();
    if (ask(load, port, text).status == 0) return reply(R"({"failed":-1})");
    took.add(moment() - begun);
  }
  reply(fmt::format(R"({{"failed":{},"bytes":{},"took":{}}})", failed, bytes, took.json()));
}

void ClusterLoad::changes(int count) {
  Latencies from_sent, from_answered;
  std::mt19937 draw(1);
  int lost = 0;
  for (int n = 0; n < count; ++n) {
    std::this_thread::sleep_for(300ms + std::chrono::milliseconds(draw() % 200));
    int camera = changes_ % cameras_;
    std::string id = fmt::format("change-{:05}", changes_++);
    Moment sent = moment();
    Load load([](size_t, const Answer&) {});
    ask(load, plane_, post_text("/v1/displays", token_, display_text(id, camera)));
    Moment answered = moment();
    auto came = workers_.given(fmt::format("{};cam-{}", id, camera), kPatience);
    if (!came) ++lost;
    else from_sent.add(*came - sent), from_answered.add(*came - answered);
  }
  reply(fmt::format(R"({{"lost":{},"sent":{},"answered":{}}})", lost, from_sent.json(), from_answered.json()));
}

// The first two seconds are no part of it: everything that is made when first used is made then.
void ClusterLoad::detections(int rate, int seconds, const std::string& where) {
  size_t early = static_cast<size_t>(rate) * 2, count = static_cast<size_t>(rate) * static_cast<size_t>(seconds);
  Ear ear(where, token_, early + count);
  if (!ear.listens()) return reply(R"({"sent":0})");
  workers_.send(rate, early, 0);
  std::vector<Moment> due = workers_.send(rate, count, early);
  for (Moment limit = moment() + kPatience; ear.count() < early + due.size() && moment() < limit;)
    std::this_thread::sleep_for(10ms);
  Latencies took;
  size_t received = 0;
  for (size_t n = 0; n < due.size(); ++n)
    if (ear.got(early + n)) took.add(ear.arrived(early + n) - due[n]), ++received;
  reply(fmt::format(R"({{"sent":{},"received":{},"repeated":{},"took":{}}})", due.size(), received, ear.repeated(),
                    took.json()));
}

int serve(int argc, char** argv) {
  if (argc != 4) {
    std::fputs("usage: cluster_load PLANE_PORT SECRET_FILE WORKERS\n", stderr);
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
  ClusterLoad load(static_cast<std::uint16_t>(std::atoi(argv[1])), *key, std::atoi(argv[3]));
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string command, where;
    int first = 0, second = 0;
    words >> command >> first >> second >> where;
    if (command == "furnish") load.furnish(first, second);
    else if (command == "counts") load.counts();
    else if (command == "forget") load.forget();
    else if (command == "state") load.state(static_cast<std::uint16_t>(first), second);
    else if (command == "changes") load.changes(first);
    else if (command == "detections") load.detections(first, second, where);
    else return 2;
  }
  ::_exit(0);  // connections that are open need no orderly end
}

}  // namespace

}  // namespace weir::bench

int main(int argc, char** argv) { return weir::bench::serve(argc, argv); }
