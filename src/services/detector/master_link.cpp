#include "weir/detector/master_link.hpp"

#include "weir/base/log.hpp"

namespace weir::detector {

namespace asio = boost::asio;

namespace {
constexpr Duration kReportEvery = 2s;
constexpr size_t kBacklogMax = 1 << 20;        // bytes that wait for the master, before results are dropped
constexpr std::uint16_t kSucceeded = 4000;     // of the codes that are for applications

void count(net::Metrics& metrics, const char* what, double by = 1) {
  metrics.counter("weir_detector_results_total",
                  "Results for the master: sent; unheard, because nobody was connected; dropped, because the master or "
                  "this process did not keep up",
                  {{"what", what}}).add(by);
}
}  // namespace

MasterLink::MasterLink(asio::io_context& io, Clock& clock, Roster& roster, Sightings& sightings, net::Metrics& metrics,
                       std::function<Usage()> usage)
    : clock_(clock), roster_(roster), sightings_(sightings), metrics_(metrics), measure_(std::move(usage)),
      changed_(io, clock) {
  for (const char* what : {"sent", "unheard", "dropped"}) count(metrics_, what, 0);
}

asio::awaitable<void> MasterLink::converse(net::WebSocket& socket) {
  if (master_ != nullptr) {
    log::info("detector.master_succeeded", "another master has connected; the one before is hung up on");
    master_->begin_close(kSucceeded, "another master has connected");
  }
  master_ = &socket;
  metrics_.gauge("weir_detector_master", "1 while a master is connected").set(1);
  log::info("detector.master_connected");
  report_due_ = true;
  changed_.ring();
  while (auto message = co_await socket.receive()) {
    if (master_ != &socket) co_return;
    hear(message->bytes);
  }
  if (master_ != &socket) co_return;
  master_ = nullptr;
  metrics_.gauge("weir_detector_master", "1 while a master is connected").set(0);
  log::info("detector.master_gone", "nobody is connected; the cameras go on")
      .with("code", socket.end() ? socket.end()->code : 0)
      .with("reason", socket.end() ? socket.end()->text : "");
}

// A worker may be sent texts as binary messages.
void MasterLink::hear(const std::string& text) {
  auto command = cluster::read_command(text);
  metrics_.counter("weir_detector_commands_total", "Commands of the master",
                   {{"result", command ? "obeyed" : "refused"}}).add();
  if (command) roster_.obey(*command);
  else if (auto left_out = complaints_.due(clock_.now()))
    log::warn("detector.command_refused", command.error().message).with("left_out", *left_out);
  report_due_ = true;
  changed_.ring();
}

bool MasterLink::post(const cluster::Message& message) {
  if (master_ == nullptr || master_->queued_bytes() > kBacklogMax) return false;
  return bool(master_->post({json::to_text(cluster::write_message(message)), false}));
}

void MasterLink::report() {
  report_due_ = false;
  if (master_ == nullptr) return;
  cluster::StateReport now;
  now.cpu_percent = usage_.cpu_percent;
  now.memory_percent = usage_.memory_percent;
  now.cameras = roster_.connections();
  post(now);
}

void MasterLink::deliver() {
  for (Sighting& each : sightings_.take()) {
    auto result = roster_.result_of(std::move(each));
    if (!result) continue;
    bool heard = master_ != nullptr;
    bool sent = post(*std::move(result));
    count(metrics_, sent ? "sent" : heard ? "dropped" : "unheard");
  }
  std::uint64_t dropped = sightings_.dropped();
  count(metrics_, "dropped", static_cast<double>(dropped - std::exchange(dropped_before_, dropped)));
}

asio::awaitable<void> MasterLink::run() {
  Instant next{};
  while (!stopping_) {
    Instant now = clock_.now();
    if (now >= next) {
      usage_ = measure_();
      next = now + kReportEvery;
      report_due_ = true;
    }
    if (report_due_) report();
    co_await changed_.wait_until(next);
  }
}

void MasterLink::stop() {
  stopping_ = true;
  changed_.ring();
}

}  // namespace weir::detector
