#include "weir/restart/restart_window.hpp"

#include <algorithm>

namespace weir::restart {

Verdict RestartWindow::ended(ExitClass how, Instant now, Duration lived, const WindowPolicy& policy, double draw) {
  if (lived >= policy.calm) in_a_row = refusals = 0;
  cooling_until.reset();
  counts_next = false;
  if (how == ExitClass::input_not_ready || how == ExitClass::lease_lost) {
    refusals = 0;
    next_start = now + (how == ExitClass::input_not_ready ? policy.wait : policy.backoff.delay(in_a_row++, draw));
    return Verdict::again_uncounted;
  }
  bool refused = how == ExitClass::configuration || how == ExitClass::denied;
  refusals = refused ? refusals + 1 : 0;
  if (refusals > 1) {
    given_up = true;
    return Verdict::given_up_early;
  }
  std::erase_if(counted, [&](Instant at) { return at + policy.window <= now; });
  if (std::ssize(counted) >= policy.restarts_max) {
    if (policy.when_full == WhenFull::give_up) {
      given_up = true;
      return Verdict::given_up_limit;
    }
    counted.clear();
    in_a_row = 0;
    counts_next = true;
    cooling_until = next_start = now + policy.cooldown;
    return Verdict::cooling;
  }
  next_start = now + policy.backoff.delay(in_a_row++, draw);
  counts_next = true;
  return Verdict::again;
}

void RestartWindow::started(Instant now) {
  cooling_until.reset();
  if (!std::exchange(counts_next, false)) return;
  counted.push_back(now);
  ++restarts;
}

void RestartWindow::forgive() { *this = {.restarts = restarts}; }

RestartWindow moved(RestartWindow window, Duration by) {
  for (Instant& at : window.counted) at += by;
  if (window.cooling_until) *window.cooling_until += by;
  window.next_start += by;
  return window;
}

namespace {

struct WindowText {
  std::vector<std::int64_t> ages_us;
  int in_a_row = 0, refusals = 0, restarts = 0;
  bool given_up = false, counts_next = false;
  std::optional<std::int64_t> cooling_us;
  std::int64_t start_in_us = 0;
};
constexpr std::int64_t kLongest = Duration(24h * 365).count();
template <class V>
void fields(V& v, WindowText& w) {
  v.optional("restart_ages_us", w.ages_us, json::length(0, 10'000));
  v.optional("in_a_row", w.in_a_row, json::range(0, 1'000'000'000));
  v.optional("refusals", w.refusals, json::range(0, 1'000'000'000));
  v.optional("restarts", w.restarts, json::range(0, 1'000'000'000));
  v.optional("given_up", w.given_up);
  v.optional("counts_next", w.counts_next);
  v.optional("cooling_us", w.cooling_us, json::range<std::int64_t>(0, kLongest));
  v.optional("start_in_us", w.start_in_us, json::range<std::int64_t>(0, kLongest));
  bool sane = std::ranges::all_of(w.ages_us, [](std::int64_t age) { return age >= 0 && age <= kLongest; });
  v.rule("restart_ages_us", sane ? "" : "must hold ages of at most a year");
}

}  // namespace

json::object write_window(const RestartWindow& window, Instant now) {
  auto ahead = [&](Instant at) { return std::max(at - now, Duration(0)).count(); };
  WindowText text{.in_a_row = window.in_a_row, .refusals = window.refusals, .restarts = window.restarts,
                  .given_up = window.given_up, .counts_next = window.counts_next,
                  .start_in_us = ahead(window.next_start)};
  for (Instant at : window.counted) text.ages_us.push_back((now - at).count());
  if (window.cooling(now)) text.cooling_us = ahead(*window.cooling_until);
  return json::write_value(text).as_object();
}

Result<RestartWindow> read_window(const json::value& v, Instant now) {
  TRY(text, json::read<WindowText>(v));
  RestartWindow out{.in_a_row = text.in_a_row, .refusals = text.refusals, .given_up = text.given_up,
                    .counts_next = text.counts_next, .restarts = text.restarts};
  for (std::int64_t age : text.ages_us) out.counted.push_back(now - Duration(age));
  std::ranges::sort(out.counted);
  if (text.cooling_us) out.cooling_until = now + Duration(*text.cooling_us);
  if (text.start_in_us > 0) out.next_start = now + Duration(text.start_in_us);
  return out;
}

}  // namespace weir::restart
