#include "report.hpp"

#include "weir/base/log.hpp"
#include "weir/event/routing.hpp"

namespace weir::orchestrator {

using stream::Change;
using stream::Record;
using stream::Role;

namespace {

template <class E>
std::string word(E value) {
  return std::string(json::write_value(value).as_string());
}

void log_record(const stream::State& state, const Record& what) {
  auto level = what.warning ? log::Level::warn : log::Level::info;
  std::string event = fmt::format("stream.{}", word(what.change));
  log::Entry entry(level, event, what.text);
  std::move(entry).with("streamId", state.id).with("runId", what.run_id).with("sourceId", what.source_id);
  if (what.from) std::move(entry).with("from", word(*what.from));
  if (what.to) std::move(entry).with("to", word(*what.to));
  if (what.role) std::move(entry).with("role", word(*what.role)).with("instanceId", what.instance);
  if (what.exit_code) std::move(entry).with("exitCode", *what.exit_code);
  if (what.delay) std::move(entry).with("delayMs", static_cast<std::int64_t>(seconds(*what.delay) * 1000));
  if (what.missed) std::move(entry).with("missed", true);
}

event::Event event_of(const stream::State& state, std::string_view word, const Record& what, EventOrigin origin) {
  event::Event event{.topic = std::string(event::kStatusTopic),
                     .routing_key = fmt::format("publication.{}.{}.{}.{}", word,
                                                event::routing_word(origin.home.tenant.str()),
                                                event::routing_word(origin.home.site.str()),
                                                event::routing_word(state.id.str())),
                     .event_id = event::make_event_id(origin.now, origin.random)};
  json::object payload{{"type", "publication"},
                       {"event_id", event.event_id},
                       {"ts", to_iso(origin.now)},
                       {"state", word},
                       {"stream_id", state.id.str()},
                       {"tenant_id", origin.home.tenant.str()},
                       {"site_id", origin.home.site.str()},
                       {"runner_id", origin.holder.str()},
                       {"run_id", what.run_id},
                       {"source_id", what.source_id}};
  if (!what.text.empty()) payload["reason"] = what.text;
  event.payload = json::to_text(payload);
  event.captured = origin.now;
  event.kind = event::Kind::status;
  return event;
}

}  // namespace

Report::Report(net::Metrics& metrics)
    : metrics_(metrics),
      active_streams_(metrics.gauge("weir_orchestrator_streams", "Streams whose worker runs.")),
      active_forwarders_(metrics.gauge("weir_orchestrator_forwarders", "Streams that are being forwarded.")) {}

void Report::counts(int streams, int forwarders) {
  active_streams_.set(streams);
  active_forwarders_.set(forwarders);
}

void Report::count(const std::string& stream, const Record& what) {
  net::Metrics::Labels labels{{"stream_id", stream}};
  if (what.role) labels["role"] = word(*what.role);
  if (what.missed)
    metrics_.counter("weir_orchestrator_missed_hooks_total", "Changes of a publisher that no hook told of.").add();
  switch (what.change) {
    case Change::child_started:
      metrics_.counter("weir_orchestrator_child_starts_total", "Starts of workers and forwarders.", labels).add();
      break;
    case Change::child_exited:
      metrics_.counter("weir_orchestrator_child_exits_total", "Ends of workers and forwarders.",
                       labels).add();
      break;
    case Change::restart_scheduled:
      metrics_.counter("weir_orchestrator_child_restarts_total", "Restarts of workers and forwarders.", labels).add();
      if (what.role == Role::forwarder)
        metrics_.counter("egress_forwarder_restarts_total", "Restarts of a stream's forwarder.", {{"stream_id", stream}})
            .add();
      break;
    default: break;
  }
}

void Report::record(const stream::State& state, const Record& what) {
  log_record(state, what);
  count(state.id.str(), what);
  metrics_.gauge("weir_orchestrator_stream_degraded", "1 while no worker of the stream is started any more.",
                 {{"stream_id", state.id.str()}}).set(state.degraded.empty() ? 0 : 1);
}

void Report::forget(const stream::State& state) { metrics_.retire("stream_id", state.id.str()); }

std::optional<event::Event> publication(const stream::State& state, const Record& what, EventOrigin origin) {
  using stream::Phase;
  if (what.change == Change::degraded) return event_of(state, "degraded", what, std::move(origin));
  if (what.change == Change::recovered) return event_of(state, word(state.phase), what, std::move(origin));
  if (what.change != Change::phase || what.to == Phase::idle || what.to == Phase::stopped) return std::nullopt;
  // Between its failures a degraded stream's phase says less than that it is degraded.
  bool degraded = !state.degraded.empty() && what.to != Phase::stopping;
  return event_of(state, degraded ? "degraded" : word(*what.to), what, std::move(origin));
}

event::Event last_publication(const stream::State& state, EventOrigin origin) {
  Record what{.text = "Nothing of the stream runs any more.", .run_id = state.run_id,
              .source_id = state.publisher.source.id};
  return event_of(state, "stopped", what, std::move(origin));
}

}  // namespace weir::orchestrator
