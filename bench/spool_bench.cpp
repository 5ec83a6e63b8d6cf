// spool_bench: how fast events go to the spool and back, and how soon a live one reaches the bus.
//
//   spool_bench [--json] [--quick] [--folder DIR]
//
// Appending is measured with one camera and with 40, flushed in groups as the publisher does. Draining and the time
// from decoded picture to bus are measured through the publisher, with a bus that only counts. The folder lies on the
// disk to be measured; what is written there is removed.
#include "weir/base/json.hpp"
#include "weir/spool/file_spool.hpp"
#include "weir/worker/publisher_thread.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <thread>

namespace weir::bench {

namespace {

namespace fs = std::filesystem;
namespace asio = boost::asio;

const lease::Tenure kTenure{BootId::trusted("bench"), {1}};
const spool::Limits kRoomy{.total_bytes = std::uint64_t{4} << 30, .camera_bytes = std::uint64_t{4} << 30};
constexpr size_t kPayloadBytes = 1000;

CameraId camera(int n) { return CameraId::trusted(fmt::format("cam-{}", n)); }

event::Event event(std::int64_t n) {
  event::Event e{"detections.topic", "detections.t-01.site-A.cam-1", fmt::format("{:024}", n)};
  e.payload = fmt::format(R"({{"event_id":"{}","pad":"{}"}})", e.event_id, std::string(kPayloadBytes - 60, 'x'));
  e.captured = wall_now();
  return e;
}

std::unique_ptr<Spool> opened(const fs::path& folder) {
  auto spool = spool::open_file_spool(folder, kRoomy);
  if (spool) return std::move(*spool);
  std::fprintf(stderr, "spool_bench: %s\n", spool.error().message.c_str());
  std::exit(1);
}

double resident_mb() {
  std::ifstream statm("/proc/self/statm");
  double total = 0, resident = 0;
  statm >> total >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

// Events a second, everything flushed at the end.
double append_rate(const fs::path& folder, int cameras, std::int64_t events) {
  auto spool = opened(folder);
  event::Event one = event(0);
  Instant begin = boot_now(), flush_at = begin + 100ms;
  for (std::int64_t n = 0; n < events; ++n) {
    if (!spool->append(camera(static_cast<int>(n % cameras)), kTenure, one)) std::exit(1);
    Instant now = boot_now();
    if (now < flush_at) continue;
    if (!spool->flush()) std::exit(1);
    flush_at = boot_now() + std::max<Duration>(100ms, 4 * (boot_now() - now));
  }
  if (!spool->flush()) std::exit(1);
  return static_cast<double>(events) / seconds(boot_now() - begin);
}

// Takes everything; checks that a camera's events come in order.
class CountingBus final : public EventBus {
 public:
  CountingBus(Clock& clock, Duration takes) : clock_(clock), takes_(takes) {}
  asio::awaitable<Result<std::vector<Confirmation>>> publish(std::vector<event::Event> events) override {
    if (takes_ > 0s) co_await clock_.wait(takes_);
    for (const event::Event& each : events) {
      std::string& last = last_[each.stamp->camera];
      if (each.event_id <= last) ++disordered;
      last = each.event_id;
    }
    peak_mb = std::max(peak_mb.load(), resident_mb());
    taken += static_cast<std::int64_t>(events.size());
    std::vector<Confirmation> answers(events.size(), Confirmation::accepted);
    co_return answers;
  }
  asio::awaitable<Status> subscribe(Subscription, std::function<bool(const DeliveredEvent&)>) override {
    co_return Error{Errc::unsupported, "publish_only", "this bus only counts"};
  }
  std::atomic<std::int64_t> taken = 0;
  std::atomic<std::int64_t> disordered = 0;
  std::atomic<double> peak_mb = 0;

 private:
  Clock& clock_;
  const Duration takes_;
  std::map<CameraId, std::string> last_;
};

void stop(worker::Publisher& publisher, Duration within) {
  asio::io_context io;
  asio::co_spawn(io, publisher.flush_and_stop(boot_now() + within), asio::detached);
  io.run();
}

json::object drain(const fs::path& folder, std::int64_t events) {
  {
    auto spool = opened(folder);
    for (std::int64_t n = 0; n < events; ++n)
      if (!spool->append(camera(1), kTenure, event(n))) std::exit(1);
  }
  RealClock clock;
  CountingBus* bus = nullptr;
  auto make_bus = [&](asio::io_context&) {
    auto made = std::make_unique<CountingBus>(clock, 0s);
    bus = made.get();
    return made;
  };
  double before_mb = resident_mb();
  Instant begin = boot_now();
  worker::PublisherThread thread(make_bus, opened(folder));
  thread.publisher().set_lease(camera(1), {2}, kTenure, boot_now() + 1h);
  stop(thread.publisher(), 10min);
  double took = seconds(boot_now() - begin);
  return {{"drain_events", bus->taken.load()},
          {"drain_mb", static_cast<double>(events) * kPayloadBytes / 1e6},
          {"drain_events_per_s", static_cast<double>(bus->taken) / took},
          {"drain_disordered", bus->disordered.load()},
          {"drain_missing", events - bus->taken},
          {"drain_rss_growth_mb", bus->peak_mb - before_mb}};
}

// 16 cameras with 6 events a second each, not in step; the bus takes 2 ms a request.
json::object latency(const fs::path& folder, Duration length) {
  constexpr int kCameras = 16;
  RealClock clock;
  std::vector<Duration> handed;
  worker::PublisherHooks hooks{.on_handed = [&](Duration d) { handed.push_back(d); }};
  {
    worker::PublisherThread thread([&](asio::io_context&) { return std::make_unique<CountingBus>(clock, 2ms); },
                                   opened(folder), {}, hooks);
    std::vector<std::thread> cameras;
    for (int c = 0; c < kCameras; ++c)
      cameras.emplace_back([&publisher = thread.publisher(), c, length] {
        publisher.set_lease(camera(c), {2}, kTenure, boot_now() + 1h);
        std::this_thread::sleep_for(c * 10ms);
        for (int n = 0; n < seconds(length) * 6; ++n) {
          event::Event e = event(n);
          publisher.publish(camera(c), std::move(e), boot_now());
          std::this_thread::sleep_for(1s / 6.0);
        }
      });
    for (auto& each : cameras) each.join();
    stop(thread.publisher(), 10s);
  }
  std::sort(handed.begin(), handed.end());
  auto at = [&](double share) { return seconds(handed[static_cast<size_t>(share * (handed.size() - 1))]) * 1e3; };
  return {{"handed_events", handed.size()},
          {"handed_p50_ms", at(0.5)},
          {"handed_p95_ms", at(0.95)},
          {"handed_p99_ms", at(0.99)}};
}

}  // namespace

int run(const std::vector<std::string_view>& words) {
  bool quick = false, as_json = false;
  fs::path base = fs::temp_directory_path();
  for (size_t n = 0; n < words.size(); ++n) {
    if (words[n] == "--quick") quick = true;
    else if (words[n] == "--json") as_json = true;
    else if (words[n] == "--folder" && n + 1 < words.size()) base = words[++n];
    else return std::fprintf(stderr, "usage: spool_bench [--json] [--quick] [--folder DIR]\n"), 2;
  }
  fs::path folder = base / fmt::format("spool_bench.{}", ::getpid());
  json::object measures;
  auto measured = [&](const json::object& more) {
    for (const auto& [name, value] : more) measures[name] = value;
    fs::remove_all(folder);
  };
  std::int64_t appended = quick ? 60'000 : 200'000;
  measured({{"append_events_per_s", append_rate(folder, 1, appended)}});
  measured({{"append_40_cameras_events_per_s", append_rate(folder, 40, appended)}});
  measured(drain(folder, quick ? 200'000 : 1'000'000));
  measured(latency(folder, quick ? 5s : 20s));
  if (as_json) std::puts(json::to_text(measures).c_str());
  else
    for (const auto& [name, value] : measures)
      std::puts(fmt::format("{:32} {}", std::string(name), json::to_text(value)).c_str());
  return 0;
}

}  // namespace weir::bench

int main(int count, char** words) { return weir::bench::run({words + 1, words + count}); }
