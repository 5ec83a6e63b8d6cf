#include "fleet_view.hpp"

#include "common/print.hpp"
#include "common/words.hpp"
#include "warnings.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

namespace weir::apps {

namespace {

// Workers sum their cameras up every five seconds; a worker that reports nothing for longer than this has stopped.
constexpr double kSilentAfterS = 15;
constexpr double kYoungS = 10;

bool is(const json::value& object, std::string_view field, const json::value& wanted) {
  const json::value* found = object.is_object() ? object.get_object().if_contains(field) : nullptr;
  return found != nullptr && *found == wanted;
}

double number(const json::value& object, std::string_view field) {
  const json::value* found = object.is_object() ? object.get_object().if_contains(field) : nullptr;
  return found != nullptr && found->is_number() ? found->to_number<double>() : 0;
}

std::string text(const json::value& object, std::string_view field) {
  const json::value* found = object.is_object() ? object.get_object().if_contains(field) : nullptr;
  return found != nullptr && found->is_string() ? std::string(found->get_string()) : "";
}

// A runner that is bound to a tenant or a site takes cameras from there alone.
bool may_take(const json::value& runner, const json::value& camera) {
  return std::ranges::all_of(std::array{"tenant_id", "site_id"}, [&](const char* field) {
    std::string bound = text(runner, field);
    return bound.empty() || bound == text(camera, field);
  });
}
bool is_live(const json::value& runner) { return is(runner, "status", "active"); }
bool is_cordoned(const json::value& runner) { return is(runner, "cordoned", true); }
bool drains(const json::value& runner) { return !is(runner, "drain_mode", "none"); }
double room_of(const json::value& runner) {
  return std::max(0.0, number(runner, "capacity_streams") - number(runner, "leases_held"));
}


json::value heartbeat_of(const json::value& runner) {
  const json::value* found = runner.is_object() ? runner.get_object().if_contains("heartbeat") : nullptr;
  return found == nullptr ? json::value() : *found;
}
json::array waiting_of(const json::value& runner) {
  json::value heartbeat = heartbeat_of(runner);
  const json::value* found = heartbeat.is_object() ? heartbeat.get_object().if_contains("waiting") : nullptr;
  return found != nullptr && found->is_array() && is_live(runner) ? found->get_array() : json::array();
}

// Why nobody takes a camera, as far as the runners tell.
std::string why_pending(const json::value& camera, const json::array& runners) {
  int live = 0, may = 0, take = 0, room = 0, unwilling = 0;
  double capacity = 0;
  std::string silent, reason, full;
  for (const json::value& runner : runners) {
    live += is_live(runner) ? 1 : 0;
    if (!may_take(runner, camera)) continue;
    if (!is_live(runner)) {
      if (silent.empty()) silent = text(runner, "runner_id");
      continue;
    }
    ++may;
    if (is_cordoned(runner) || drains(runner)) continue;
    ++take;
    room += room_of(runner) > 0 ? 1 : 0;
    if (std::string why = text(heartbeat_of(runner), "why_not_acquiring"); room_of(runner) > 0 && !why.empty()) {
      constexpr int kNamed = 3;
      if (++unwilling <= kNamed) reason += fmt::format("{}{}: {}", reason.empty() ? "" : "; ", text(runner, "runner_id"), why);
      else if (unwilling == kNamed + 1) reason += "; …";
    }
    capacity += number(runner, "capacity_streams");
    if (full.empty()) full = text(runner, "runner_id");
  }
  if (runners.empty()) return "no runner has registered";
  if (live == 0) return "no runner is alive";
  if (may == 0)
    return fmt::format("no live runner may take cameras of site {}{}", text(camera, "site_id"),
                       silent.empty() ? "" : fmt::format(": {} may, but is silent", silent));
  std::string_view who = may == live ? "runner" : "runner that may take it";
  if (take == 0) return fmt::format("every live {} drains or is cordoned", who);
  // What comes after the colon stands below the verdict, once a camera.
  if (room == 0)
    return fmt::format("every {0} is full: {1} for {2}; start another one, or let {3} take more: weir node capacity {3} N",
                       who, take == 1 ? "it has room" : fmt::format("the {} have room", take),
                       counted(static_cast<int>(capacity), "camera"), full);
  if (unwilling == room) return fmt::format("no {} takes further cameras: {}", who, reason);
  return "waits for a runner";
}

std::string error_of(const json::value& stream) {
  const json::value* error = stream.get_object().if_contains("error");
  return error == nullptr ? "" : fmt::format("{}: {}", cell(*error, "code"), cell(*error, "detail"));
}
bool is_blind(const json::value& stream) { return error_of(stream).starts_with("MODEL_ERROR"); }
// A worker needs ten seconds to be sure that a camera is behind. A person who asks before that is shown the present
// rates.
bool is_slow(const json::value& stream) {
  double looked = number(stream, "looked_fps"), wanted = number(stream, "wanted_fps");
  bool now = !is_blind(stream) && looked < 0.75 * wanted && wanted - looked >= 0.5;
  return now || error_of(stream).starts_with("OVERLOADED");
}

// The stream has just begun, and how often it is looked at is not known yet. A program that is not Weir's worker
// never reports that.
bool is_young(const json::value& stream) {
  const json::object& said = stream.get_object();
  return !said.contains("looked_fps") && said.contains("for_s") && !is_blind(stream) && number(stream, "for_s") < kYoungS;
}

// What the runners say of cameras that they have and that do not stream, by camera. The cameras of a site get its tokens
// one after the other, so the last of them waits for as many as there are.
std::map<std::string, std::string> held_up(const json::array& cameras, const json::array& runners,
                                           const json::array& sites) {
  std::map<std::string, std::string> site_of, out;
  std::map<std::string, const json::value*> budget_of;
  for (const json::value& camera : cameras) site_of[text(camera, "camera_uuid")] = text(camera, "site_id");
  for (const json::value& site : sites) budget_of[text(site, "site_id")] = &site;
  std::map<std::string, double> before;  // cameras of a site that wait too
  for (const json::value& runner : runners)
    for (const json::value& each : waiting_of(runner)) {
      std::string id = text(each, "camera_uuid"), site = site_of[id];
      if (text(each, "reason") != "budget") {
        out[id] = fmt::format("its worker has not answered for {:.0f} s and is being replaced", number(each, "for_s"));
        continue;
      }
      auto budget = budget_of.find(site);
      double tokens = ++before[site], rate = budget == budget_of.end() ? 0 : number(*budget->second, "refill_rate") / 60;
      if (budget != budget_of.end()) tokens = std::max(0.0, tokens - number(*budget->second, "tokens"));
      out[id] = "waits for its site's budget, " + (rate > 0 ? fmt::format("about {:.0f} s", std::ceil(tokens / rate))
                                                           : fmt::format("which gives none: weir site budget {}", site));
    }
  return out;
}

// "" where it streams.
std::string why_quiet(const json::value& lease) {
  const json::value* stream = lease.get_object().if_contains("stream");
  if (stream == nullptr || !stream->is_object()) return "its runner has not said anything about it yet";
  double silence = number(*stream, "age_s");
  if (silence > kSilentAfterS) return fmt::format("its runner has said nothing about it for {:.0f} s", silence);
  if (is(*stream, "state", "STREAMING")) return "";
  if (std::string error = error_of(*stream); !error.empty()) return error;
  return is(*stream, "state", "CONNECTING") ? "connecting" : "disconnected";
}

void note_mistakes(const json::value& camera, std::vector<Mistake>& mistakes) {
  for (const json::value& warning : warnings_in(camera))
    mistakes.push_back(
        {text(camera, "camera_uuid"), text(warning, "code"), text(warning, "field"), text(warning, "message")});
}

// Without what differs from camera to camera.
std::string in_short(const std::string& reason) {
  if (reason.find("has said nothing about it for") != std::string::npos) return "silent";
  if (reason.starts_with("its worker has not answered")) return "their worker does not answer";
  if (reason.starts_with("waits for its site's budget")) return "waiting for their site's budget";
  if (reason.find("takes further cameras:") != std::string::npos) return reason;
  return reason.substr(0, reason.find(':'));
}

// "12 cameras are looked at less often than wanted: 1.3 of 6 a second", of those the worst.
std::string slow_text(const std::vector<Slow>& slow) {
  if (slow.empty()) return "";
  const Slow& worst = *std::ranges::min_element(slow, {}, [](const Slow& s) { return s.looked / std::max(s.wanted, 0.01); });
  return fmt::format("{} {} looked at less often than wanted: {:.1f} of {:.1f} a second{}",
                     counted(static_cast<int>(slow.size()), "camera"), slow.size() == 1 ? "is" : "are", worst.looked,
                     worst.wanted, slow.size() == 1 ? "" : " the worst");
}

// The commonest reasons first; details of one camera stand below.
std::string reasons_of(const std::vector<Quiet>& cameras) {
  std::map<std::string, int> reasons;
  for (const Quiet& quiet : cameras) {
    ++reasons[in_short(quiet.reason)];
  }
  std::vector<std::pair<int, std::string>> order;
  for (const auto& [reason, count] : reasons) order.emplace_back(-count, reason);
  std::ranges::sort(order);
  std::string why;
  for (const auto& [count, reason] : order)
    why += order.size() == 1 ? reason : fmt::format("{}{} {}", why.empty() ? "" : ", ", -count, reason);
  return why;
}

// "; 2 cameras have mistakes in their configuration", or "". A camera's mistakes stand one after the other.
std::string mistakes_text(const FleetView& fleet) {
  int cameras = 0;
  for (size_t i = 0; i < fleet.mistakes.size(); ++i)
    cameras += i == 0 || fleet.mistakes[i].camera != fleet.mistakes[i - 1].camera ? 1 : 0;
  if (cameras == 0) return "";
  return fmt::format("; {} {} in {} configuration", counted(cameras, "camera"),
                     cameras == 1 ? "has a mistake" : "have mistakes", cameras == 1 ? "its" : "their");
}

}  // namespace

bool any_waits_for_budget(const json::array& runners) {
  return std::ranges::any_of(runners, [](const json::value& runner) {
    return std::ranges::any_of(waiting_of(runner), [](const json::value& each) { return is(each, "reason", "budget"); });
  });
}

FleetView fleet_view(const json::array& cameras, const json::array& leases, const json::array& runners,
                     const json::array& sites) {
  FleetView fleet;
  std::map<std::string, std::string> held_up_by = held_up(cameras, runners, sites);
  for (const json::value& runner : runners) {
    ++(is_live(runner) ? fleet.live : fleet.silent);
    fleet.cordoned += is_cordoned(runner) ? 1 : 0;
    fleet.draining += drains(runner) ? 1 : 0;
  }
  std::map<std::string, const json::value*> held;
  for (const json::value& lease : leases)
    if (is(lease, "status", "active") || is(lease, "status", "pending")) held[cell(lease, "camera_uuid")] = &lease;
  fleet.cameras = static_cast<int>(cameras.size());
  for (const json::value& camera : cameras) {
    if (is(camera, "enabled", true)) note_mistakes(camera, fleet.mistakes);
    if (!is(camera, "enabled", true) || is(camera, "processing", "cluster")) continue;
    ++fleet.enabled;
    std::string id = cell(camera, "camera_uuid");
    auto lease = held.find(id);
    if (lease == held.end()) {
      ++fleet.pending;
      fleet.quiet.push_back({id, "", why_pending(camera, runners)});
      continue;
    }
    ++fleet.leased;
    std::string reason = why_quiet(*lease->second), runner = cell(*lease->second, "runner_id");
    if (auto known = held_up_by.find(id); known != held_up_by.end()) reason = known->second;
    if (!reason.empty()) {
      fleet.quiet.push_back({id, runner, reason});
      continue;
    }
    ++fleet.streaming;
    const json::value& stream = lease->second->at("stream");
    if (is_blind(stream)) fleet.blind.push_back({id, runner, error_of(stream)});
    fleet.young += is_young(stream) ? 1 : 0;
    if (is_slow(stream)) fleet.slow.push_back({id, runner, number(stream, "looked_fps"), number(stream, "wanted_fps")});
  }
  return fleet;
}

std::string drain_sentence(const json::value& runner) {
  std::string id = text(runner, "runner_id");
  if (!is_live(runner)) return fmt::format("{} is silent: the order waits until it is back", id);
  if (is(runner, "drain_mode", "hard")) return fmt::format("{} lets go of all its cameras at once", id);
  return fmt::format("{0} hands its cameras over, batch by batch; what is left: weir lease list --runner {0}", id);
}

// Counted as the control plane does for a runner that drains: only runners that may take every camera that leaves it.
std::string drain_warning(const json::value& runner, const json::array& runners) {
  double room = 0, held = number(runner, "leases_held");
  for (const json::value& other : runners) {
    bool takes = is_live(other) && !is_cordoned(other) && !drains(other) && may_take(other, runner);
    if (takes && text(other, "runner_id") != text(runner, "runner_id")) room += room_of(other);
  }
  if (room >= held || !is_live(runner)) return "";
  return fmt::format("the others have room for {:.0f} of its {}", room, counted(static_cast<int>(held), "camera"));
}

std::string verdict(const FleetView& fleet) {
  if (fleet.enabled == 0) return "nothing to do: no camera is enabled";
  std::string all = fleet.enabled == 1 ? "the one enabled camera streams"
                                       : fmt::format("all {} enabled cameras stream", fleet.enabled);
  std::string mistakes = mistakes_text(fleet);
  if (fleet.quiet.empty() && fleet.blind.empty() && fleet.slow.empty() && fleet.young == 0 && mistakes.empty())
    return "everything is all right: " + all;
  int quiet = static_cast<int>(fleet.quiet.size()), blind = static_cast<int>(fleet.blind.size());
  std::string unseen = blind == 0 ? ""
                                  : fmt::format("; nobody looks at {}: {}", counted(blind, "stream"), reasons_of(fleet.blind));
  if (std::string slow = slow_text(fleet.slow); !slow.empty()) unseen += "; " + slow;
  if (fleet.young > 0)
    unseen += fmt::format("; {} just begun, and how often {} looked at is known in a few seconds",
                          counted(fleet.young, "camera") + (fleet.young == 1 ? " has" : " have"),
                          fleet.young == 1 ? "it is" : "they are");
  if (quiet == 0) return all + unseen + mistakes;
  return fmt::format("{} of {} {} not stream: {}{}{}", quiet, counted(fleet.enabled, "camera"),
                     quiet == 1 ? "does" : "do", reasons_of(fleet.quiet), unseen, mistakes);
}

}  // namespace weir::apps
