#include "instruments.hpp"

namespace weir::control_plane {

namespace {
constexpr std::array<const char*, 3> kOperationNames = {"acquire", "renew", "release"};
}  // namespace

Instruments::Instruments(net::Metrics& metrics)
    : metrics_(metrics),
      owner_changes_(metrics.counter("owner_changes_total", "Leases granted to another owner than the one before.")),
      store_up_(metrics.gauge("weir_store_up", "1 while the store answers, 0 while it does not.")),
      epoch_(metrics.gauge("weir_epoch", "The store's epoch: it rises when commits may have been lost.")),
      events_{&metrics.counter("weir_events_accepted_total", "Events that the bus took."),
              &metrics.counter("weir_events_duplicate_total", "Events that the bus had already."),
              &metrics.counter("weir_events_stale_total", "Events of those who no longer hold their camera.")},
      events_forgotten_(metrics.counter("weir_events_forgotten_total", "Events deleted when their time was over.")),
      announcements_lost_(metrics.counter("weir_announcements_lost_total", "Changes that nobody was told of.")),
      event_listeners_(metrics.gauge("weir_event_subscribers", "Event streams that are open.")),
      event_listeners_cut_(metrics.counter("weir_event_subscribers_cut_total", "Event streams ended as too slow.")),
      runners_silent_(
          metrics.gauge("weir_runners_silent",
                        "Runners whose heartbeats were heard on the event feed within the last hour, and are"
                        " not for 5 s.")),
      event_lag_(metrics.gauge("weir_event_lag_seconds", "Age of the newest event when it was handed on.")) {}

void Instruments::events(const std::array<int, 3>& counts) {
  for (size_t i = 0; i < counts.size(); ++i)
    if (counts[i] > 0) events_[i]->add(counts[i]);
}

void Instruments::lease_results(lease::Operation operation, lease::Outcome outcome, int count) {
  auto row = static_cast<size_t>(operation), column = static_cast<size_t>(outcome);
  net::Counter*& counter = lease_operations_[row][column];
  if (counter == nullptr)
    counter = &metrics_.counter(
        "weir_lease_operations_total", "Lease questions by what was answered.",
        {{"operation", kOperationNames[row]}, {"result", std::string(lease::kOutcomeNames[column].name)}});
  counter->add(count);
}

void Instruments::lease_failed(lease::Operation operation, int count) {
  auto row = static_cast<size_t>(operation);
  net::Counter*& counter = lease_operations_[row][kOutcomes];
  if (counter == nullptr)
    counter = &metrics_.counter("weir_lease_operations_total", "Lease questions by what was answered.",
                                {{"operation", kOperationNames[row]}, {"result", "unanswered"}});
  counter->add(count);
}

Instruments::Route& Instruments::route(std::string_view pattern) {
  if (auto found = routes_.find(pattern); found != routes_.end()) return found->second;
  std::string label = pattern.empty() ? "none" : std::string(pattern);
  net::Histogram& times = metrics_.histogram("weir_http_request_seconds", "Time to answer a request.",
                                             net::Metrics::latency_buckets(), {{"route", label}});
  return routes_.emplace(std::string(pattern), Route{&times, std::move(label), {}}).first->second;
}

void Instruments::request(const net::Finished& finished) {
  Route& place = route(finished.pattern);
  place.seconds->observe(seconds(finished.took));
  for (auto& [method, status, count] : place.answered)
    if (method == finished.method && status == finished.status) return count->add();
  net::Counter& counter = metrics_.counter("weir_http_requests_total", "Requests answered.",
                                           {{"method", std::string(net::to_string(finished.method))},
                                            {"route", place.label},
                                            {"status", std::to_string(finished.status)}});
  counter.add();
  place.answered.push_back({finished.method, finished.status, &counter});
}

}  // namespace weir::control_plane
