// Instruments: what the control plane counts. Names and labels stand here and nowhere else.
//
// Each instrument is asked for once and kept; counting on the hot path is an index into an array. Labels are bounded:
// a route's pattern, never a path. Loop thread only.
#pragma once

#include "weir/lease/decide.hpp"
#include "weir/net/metrics.hpp"
#include "weir/net/server.hpp"

#include <array>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

namespace weir::control_plane {

class Instruments {
 public:
  explicit Instruments(net::Metrics& metrics);

  void lease_results(lease::Operation operation, lease::Outcome outcome, int count);
  void lease_failed(lease::Operation operation, int count);
  void owner_changed(int count) { owner_changes_.add(count); }
  void store_up(bool up) { store_up_.set(up ? 1 : 0); }
  void epoch(std::int64_t epoch) { epoch_.set(static_cast<double>(epoch)); }
  void request(const net::Finished& finished);
  // Counts the events of a batch: accepted, duplicate, stale.
  void events(const std::array<int, 3>& counts);
  void events_forgotten(std::int64_t count) { events_forgotten_.add(static_cast<double>(count)); }
  void announcements_lost(int count) { announcements_lost_.add(count); }
  void event_listeners(int count) { event_listeners_.set(count); }
  void runners_silent(int count) { runners_silent_.set(count); }
  void event_listener_cut() { event_listeners_cut_.add(); }
  void event_lag(Duration lag) { event_lag_.set(std::max(0.0, seconds(lag))); }

 private:
  static constexpr size_t kOutcomes = lease::kOutcomeNames.size();
  struct Route {
    net::Histogram* seconds;
    std::string label;
    struct Answered {
      net::Method method;
      int status;
      net::Counter* count;
    };
    std::vector<Answered> answered;  // a handful
  };
  struct TextHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  Route& route(std::string_view pattern);

  net::Metrics& metrics_;
  net::Counter& owner_changes_;
  net::Gauge& store_up_;
  net::Gauge& epoch_;
  std::array<net::Counter*, 3> events_;
  net::Counter& events_forgotten_;
  net::Counter& announcements_lost_;
  net::Gauge& event_listeners_;
  net::Counter& event_listeners_cut_;
  net::Gauge& runners_silent_;
  net::Gauge& event_lag_;
  std::array<std::array<net::Counter*, kOutcomes + 1>, 3> lease_operations_{};  // the last column: no answer
  std::unordered_map<std::string, Route, TextHash, std::equal_to<>> routes_;
};

}  // namespace weir::control_plane
