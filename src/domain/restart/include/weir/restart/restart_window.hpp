// RestartWindow: when a child of a published stream is started again, and when no more.
//
// One for each stream and role. A child that ended is started again after a delay that grows while it does not live
// long. Within the window (10 minutes) there are at most `restarts_max` restarts; what happens then depends on the
// role: a worker is given up, a forwarder cools down and gets a fresh window. A child that ends because of its
// configuration, or because it was denied, is tried once more and then given up, whatever its role: the same settings
// would fail the same way. An end because the input was not there, or because the lease was lost, counts nowhere.
//
// A plain value. It is stored as ages, because an Instant means nothing after a reboot; the time between storing and
// reading does not pass for it, so a restart of the supervisor makes the window longer, never shorter. Pure: the time,
// the policy and the draw come in with every call. One thread.
#pragma once

#include "weir/base/backoff.hpp"
#include "weir/restart/exit_class.hpp"

#include <vector>

namespace weir::restart {

enum class WhenFull { give_up, cool_down };

struct WindowPolicy {
  Backoff backoff{.first = 500ms, .cap = 30s};
  Duration calm = 60s;      // after a child that lived this long, the delays start from the beginning
  int restarts_max = 6;     // within the window
  Duration window = 10min;
  Duration cooldown = 60s;
  Duration wait = 2s;       // before the next start of a child whose input was not there
  WhenFull when_full = WhenFull::give_up;
  friend bool operator==(const WindowPolicy&, const WindowPolicy&) = default;
};

enum class Verdict {
  again,            // a restart at `next_start`, which counts
  again_uncounted,
  cooling,          // over the limit: a fresh window from `cooling_until` on
  given_up_limit,   // over the limit: no start until `forgive`
  given_up_early,   // its configuration or a denial stopped it twice in a row: no start until `forgive`
};

struct RestartWindow {
  std::vector<Instant> counted = {};  // restarts within the window, oldest first
  int in_a_row = 0;                   // ends without a calm life between them: they make the delay grow
  int refusals = 0;                   // of these the last ones, where they were for configuration or a denial
  bool given_up = false;
  bool counts_next = false;           // the next start is a restart that counts
  std::optional<Instant> cooling_until = {};
  Instant next_start{};               // not before
  int restarts = 0;                   // that counted, since the last `renew`

  // The child ended unasked, or could not be started, at `now` after `lived`; `draw` is uniform in [0, 1).
  Verdict ended(ExitClass how, Instant now, Duration lived, const WindowPolicy& policy, double draw);
  // The child is started now.
  void started(Instant now);
  // Something changed, so that the next start may fare better: a fresh window, and a start at once.
  void forgive();
  // A new session: as `forgive`, and the count for people begins at 0.
  void renew() { *this = {}; }

  bool may_start(Instant now) const { return !given_up && now >= next_start; }
  bool cooling(Instant now) const { return cooling_until && now < *cooling_until; }
  friend bool operator==(const RestartWindow&, const RestartWindow&) = default;
};

// The same window with every time later by so much: for one that is kept relative to a moment.
RestartWindow moved(RestartWindow window, Duration by);
json::object write_window(const RestartWindow& window, Instant now);
Result<RestartWindow> read_window(const json::value& v, Instant now);

}  // namespace weir::restart
