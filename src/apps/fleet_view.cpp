#include "fleet_view.hpp"

#include "print.hpp"

#include <algorithm>
#include <array>
#include <map>

namespace weir::apps {

namespace {

// Workers sum their cameras up every few seconds; who says nothing for longer than this has stopped speaking.
constexpr double kSilentAfterS = 30;

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

// Why nobody takes a camera, as far as the runners tell.
std::string why_pending(const json::value& camera, const json::array& runners) {
  int live = 0, may = 0, take = 0, room = 0;
  std::string silent;
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
  }
  if (runners.empty()) return "no runner has registered";
  if (live == 0) return "no runner is alive";
  if (may == 0)
    return fmt::format("no live runner may take cameras of site {}{}", text(camera, "site_id"),
                       silent.empty() ? "" : fmt::format(": {} may, but is silent", silent));
  std::string_view who = may == live ? "runner" : "runner that may take it";
  if (take == 0) return fmt::format("every live {} drains or is cordoned", who);
  if (room == 0) return fmt::format("every {} is full", who);
  return "waits for a runner";
}

std::string error_of(const json::value& stream) {
  const json::value* error = stream.get_object().if_contains("error");
  return error == nullptr ? "" : fmt::format("{}: {}", cell(*error, "code"), cell(*error, "detail"));
}
bool is_blind(const json::value& stream) { return error_of(stream).starts_with("MODEL_ERROR"); }

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

std::string counted(int n, std::string_view what) { return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s"); }

// The commonest reasons first; details of one camera stand below.
std::string reasons_of(const std::vector<Quiet>& cameras) {
  std::map<std::string, int> reasons;
  for (const Quiet& quiet : cameras) {
    bool silent = quiet.reason.find("has said nothing about it for") != std::string::npos;
    ++reasons[silent ? "silent" : quiet.reason.substr(0, quiet.reason.find(':'))];
  }
  std::vector<std::pair<int, std::string>> order;
  for (const auto& [reason, count] : reasons) order.emplace_back(-count, reason);
  std::ranges::sort(order);
  std::string why;
  for (const auto& [count, reason] : order)
    why += order.size() == 1 ? reason : fmt::format("{}{} {}", why.empty() ? "" : ", ", -count, reason);
  return why;
}

}  // namespace

FleetView fleet_view(const json::array& cameras, const json::array& leases, const json::array& runners) {
  FleetView fleet;
  for (const json::value& runner : runners) {
    ++(is_live(runner) ? fleet.live : fleet.silent);
    fleet.cordoned += is_cordoned(runner) ? 1 : 0;
    fleet.draining += drains(runner) ? 1 : 0;
  }
  std::map<std::string, const json::value*> held;
  for (const json::value& lease : leases)
    if (is(lease, "status", "active")) held[cell(lease, "camera_uuid")] = &lease;
  fleet.cameras = static_cast<int>(cameras.size());
  for (const json::value& camera : cameras) {
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
    if (!reason.empty()) {
      fleet.quiet.push_back({id, runner, reason});
      continue;
    }
    ++fleet.streaming;
    const json::value& stream = lease->second->at("stream");
    if (is_blind(stream)) fleet.blind.push_back({id, runner, error_of(stream)});
  }
  return fleet;
}

std::string drain_sentence(const json::value& runner) {
  std::string id = text(runner, "runner_id");
  if (!is_live(runner)) return fmt::format("{} is silent: the order waits until it is back", id);
  if (is(runner, "drain_mode", "hard")) return fmt::format("{} lets go of all its cameras at once", id);
  return fmt::format("{0} hands its cameras over, batch by batch; what is left: weir lease list --runner {0}", id);
}

// Counted as the control plane does for a runner that drains: only who may take whatever leaves it.
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
  if (fleet.quiet.empty() && fleet.blind.empty()) return "everything is all right: " + all;
  int quiet = static_cast<int>(fleet.quiet.size()), blind = static_cast<int>(fleet.blind.size());
  std::string unseen = blind == 0 ? ""
                                  : fmt::format("; nobody looks at {}: {}", counted(blind, "stream"), reasons_of(fleet.blind));
  if (quiet == 0) return all + unseen;
  return fmt::format("{} of {} {} not stream: {}{}", quiet, counted(fleet.enabled, "camera"), quiet == 1 ? "does" : "do",
                     reasons_of(fleet.quiet), unseen);
}

}  // namespace weir::apps
