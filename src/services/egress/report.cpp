#include "weir/egress/report.hpp"

#include "weir/base/log.hpp"

namespace weir::egress {

namespace {
constexpr size_t kMessageMax = 300;
const std::vector<double> kLatencyMs = {5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 20000};

std::string shortened(const std::string& text) {
  if (text.size() <= kMessageMax) return text;
  size_t end = kMessageMax;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // whole characters
  return text.substr(0, end) + "…";
}

double ms(Duration d) { return static_cast<double>(std::chrono::duration_cast<std::chrono::milliseconds>(d).count()); }

net::Metrics::Labels with(net::Metrics::Labels labels, const std::string& name, std::string_view value) {
  labels[name] = value;
  return labels;
}
}  // namespace

Report::Report(net::Metrics& metrics, const Identity& identity, const Voice& voice)
    : metrics_(metrics),
      voice_(voice),
      run_{{"streamId", identity.stream}, {"runId", identity.run}},
      instance_{{"streamId", identity.stream}, {"runId", identity.run}, {"instanceId", identity.instance}},
      forwarding_(metrics.gauge(metric("forwarding"), "1 while the destination acknowledges what it is sent",
                                instance_)),
      bytes_out_(metrics.counter(metric("bytes_out_total"),
                                 "Bytes of media that the destination's machine has acknowledged", run_)),
      dropped_(metrics.counter(std::string(voice.dropped_metric),
                               "Packets that were left out because the destination was too slow", run_)) {
  metrics.gauge(metric("up"), "1 while the process runs", instance_).set(1);
  metrics.counter(metric("restarts_total"), "Instances that this run had before this one", run_)
      .add(static_cast<double>(identity.restarts));
  metrics.add_process_metrics();
}

std::string Report::event(std::string_view name) const { return fmt::format("{}.{}", voice_.events, name); }
std::string Report::metric(std::string_view name) const { return fmt::format("{}{}", voice_.metrics, name); }

void Report::input_connecting(int attempt) {
  log::info(event("input.connecting"), fmt::format("{} asks the hub for the stream", voice_.self))
      .with("attempt", attempt);
}

void Report::input_connected(const CopyFacts& facts, Duration took) {
  metrics_.histogram(metric("connect_latency_ms"), "How long connecting took", kLatencyMs,
                     with(run_, "stage", voice_.input_stage)).observe(ms(took));
  log::info(event("input.connected"), "the hub sends the stream")
      .with("videoCodec", facts.video)
      .with("audioCodec", facts.audio)
      .with("width", facts.width)
      .with("height", facts.height)
      .with("peer", facts.peer)
      .with("latencyMs", ms(took));
}

void Report::output_connecting(int attempt) {
  log::info(event("output.connecting"), fmt::format("{} asks the destination for consent", voice_.self))
      .with("attempt", attempt);
}

void Report::output_connected(Duration took) {
  bytes_ = 0;
  metrics_.histogram(metric("connect_latency_ms"), "How long connecting took", kLatencyMs,
                     with(run_, "stage", voice_.output_stage)).observe(ms(took));
  log::info(event("output.connected"), "the destination agreed").with("latencyMs", ms(took));
}

void Report::flow(forward::Flow::State state, std::uint64_t media_bytes, Instant now) {
  bool flows = state == forward::Flow::State::flowing;
  forwarding_.set(flows ? 1 : 0);
  flows_ = flows;
  if (flows) since_flow_ = forward::Kind::none;
  if (media_bytes > bytes_) bytes_out_.add(static_cast<double>(media_bytes - bytes_));
  bytes_ = std::max(bytes_, media_bytes);
  if (!flows || started_) return;
  started_ = now;
  log::info(event("forwarding.started"), "the destination acknowledges the stream");
}

void Report::stopped(std::string_view reason, Instant now) {
  forwarding_.set(0);
  flows_ = false;
  if (!started_) return;
  log::info(event("forwarding.stopped"), "the stream does not flow any more")
      .with("reason", reason)
      .with("durationMs", ms(now - *started_))
      .with("bytes", bytes_);
  started_.reset();
}

void Report::failed(const forward::Failure& why) {
  auto gauge = [&](forward::Kind kind) -> net::Gauge& {
    return metrics_.gauge(metric("last_error"), "1 at the kind of the last error",
                          with(run_, "error_kind", to_string(kind)));
  };
  if (last_.kind != forward::Kind::none) gauge(last_.kind).set(0);
  gauge(why.kind).set(1);
  last_ = why;
  since_flow_ = why.kind;
}

void Report::retry(const forward::Scheduled& scheduled) {
  const forward::KindRow& row = row_of(scheduled.why.kind);
  metrics_.counter(metric("retry_total"), "Retries that were scheduled",
                   with(run_, "error_kind", row.name)).add();
  log::warn(event("retry.scheduled"), std::string(row.advice))
      .with("attempt", scheduled.attempt)
      .with("delayMs", ms(scheduled.delay))
      .with("error.kind", row.name)
      .with("error.message", shortened(scheduled.why.message));
}

void Report::dropped(std::uint64_t packets, Instant now) {
  if (packets < dropped_before_) dropped_before_ = 0;  // another connection of the input counts from the beginning
  if (packets == dropped_before_) return;
  dropped_.add(static_cast<double>(packets - dropped_before_));
  dropped_before_ = packets;
  if (drops_.due(now))
    log::warn(event("dropped"), "the destination is too slow for this stream: pictures are left out")
        .with("packets", packets);
}

void Report::held(Duration at_most) {
  log::warn(event("held"), "the right to send is over; the connection was reset, and this process ends unless a "
                           "supervisor extends it in time").with("endsInMs", ms(at_most));
}

void Report::exit(const forward::End& end, const forward::Failure& last) {
  bool good = end.code == forward::kExitClean;
  std::string name = event("exit");
  log::Entry line(good ? log::Level::info : log::Level::error, name,
                  good || last.kind == forward::Kind::none ? fmt::format("{} ends", voice_.self)
                                                           : std::string(row_of(last.kind).advice));
  auto&& filled = std::move(line).with("exitCode", end.code).with("reason", end.reason);
  if (good || last.kind == forward::Kind::none) return;
  std::move(filled).with("error.kind", to_string(last.kind)).with("error.message", shortened(last.message));
}

}  // namespace weir::egress
