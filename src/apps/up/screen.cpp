#include "screen.hpp"

#include "common/print.hpp"

#include <algorithm>
#include <span>

namespace weir::apps {

namespace {

constexpr Duration kSumEvery = 60s;

const json::value* find(const json::value& object, std::string_view name) {
  return object.is_object() ? object.get_object().if_contains(name) : nullptr;
}
std::string text(const json::value& object, std::string_view name) {
  const json::value* found = find(object, name);
  return found != nullptr && found->is_string() ? std::string(found->get_string()) : "";
}
double number(const json::value& object, std::string_view name) {
  const json::value* found = find(object, name);
  return found != nullptr && found->is_number() ? found->to_number<double>() : 0;
}
json::array list(const json::value& object, std::string_view name) {
  const json::value* found = find(object, name);
  return found != nullptr && found->is_array() ? found->get_array() : json::array();
}

std::string ago(const std::string& iso, WallTime now) {
  auto then = from_iso(iso);
  if (!then) return "-";
  double s = std::max(0.0, seconds(now - *then));
  return s < 1.5 ? "now" : s < 90 ? fmt::format("{:.0f} s ago", s) : fmt::format("{:.0f} min ago", s / 60);
}

std::string state_of(const json::value& camera) {
  std::string state = text(camera, "state");
  return state.empty() ? "WAITING" : state;
}
bool delivers(const json::value& camera) {
  const json::value* behind = find(camera, "behind");
  return text(camera, "state") == "STREAMING" && find(camera, "error") == nullptr && (behind == nullptr || *behind != true);
}

// Pictures looked at and wanted, a second.
std::string looked_text(const json::value& camera) {
  if (find(camera, "looked_fps") == nullptr) return "-";
  return fmt::format("{:.1f}/{:.1f}", number(camera, "looked_fps"), number(camera, "wanted_fps"));
}

// What a person wants to know beside the state: the error and the next try, or what was last seen.
std::string remark(const json::value& camera, WallTime now) {
  if (const json::value* error = find(camera, "error"))
    return fmt::format("{}: {} (next try in {:.0f} s)", text(*error, "code"), text(*error, "detail"),
                       number(*error, "retry_in_ms") / 1000);
  std::string phase = text(camera, "phase");
  if (phase == "waiting") return "another runner has it, or the control plane has not answered yet";
  if (phase == "budget") return "waits for its site's budget of first connections";
  if (phase == "held" || phase == "starting") return "its worker is starting";
  if (find(camera, "behind") != nullptr && *find(camera, "behind") == true)
    return fmt::format("looked at {:.1f} of {:.1f} times a second: this machine has too much to do",
                       number(camera, "looked_fps"), number(camera, "wanted_fps"));
  const json::value* last = find(camera, "last_detection");
  if (last == nullptr) return "nothing seen yet";
  return fmt::format("{}: {}", ago(text(*last, "ts"), now), seen_text(list(*last, "detections")));
}

// Of one subscription: "active at ws://…", or "pending: no worker has room".
std::string placed_text(const json::value& placed) {
  std::string status = text(placed, "status"), worker = text(placed, "worker"), reason = text(placed, "reason");
  if (status == "active") return fmt::format("active at {}", worker);
  return reason.empty() ? status : fmt::format("{}: {}", status, reason);
}
const json::object& placements(const json::value& state) {
  static const json::object none;
  const json::value* found = find(state, "subscriptions");
  return found != nullptr && found->is_object() ? found->get_object() : none;
}

}  // namespace

std::string seen_text(const json::value& detections) {
  std::map<std::string, std::pair<double, int>> best;
  if (detections.is_array())
    for (const json::value& each : detections.get_array()) {
      auto& [score, count] = best[text(each, "class")];
      score = std::max(score, number(each, "conf"));
      ++count;
    }
  std::vector<std::pair<std::string, std::pair<double, int>>> order(best.begin(), best.end());
  std::ranges::stable_sort(order, [](const auto& a, const auto& b) { return a.second.first > b.second.first; });
  std::string out;
  for (const auto& [label, seen] : order)
    out += fmt::format("{}{}{} {:.2f}", out.empty() ? "" : ", ", seen.second > 1 ? fmt::format("{} ", seen.second) : "",
                       harmless(label), seen.first);
  return out;
}

std::string screen_text(const json::value& state, const std::string& url, WallTime now, size_t rows,
                        std::string_view absence) {
  if (state.is_null()) return fmt::format("Weir at {}: {}\n", url, absence);
  json::array cameras = list(state, "cameras");
  std::string head = fmt::format("Weir at {}: {} camera{}, {:.0f} delivering, {:.1f} pictures/s looked at, {:.0f} events",
                                 url, cameras.size(), cameras.size() == 1 ? "" : "s", number(state, "delivering"),
                                 number(state, "pipeline_fps"), number(state, "published"));
  if (double behind = number(state, "behind"); behind > 0) head += fmt::format(", {:.0f} looked at too seldom", behind);
  const json::value* listed = find(state, "listed");
  if (cameras.empty() && listed != nullptr && *listed == false)
    return fmt::format("Weir at {}: the runner has not got its list of cameras yet\n", url);
  if (cameras.empty()) return head + "\nNo cameras yet: `weir camera add --help` shows how to add one.\n";
  std::vector<const json::value*> order;
  for (const json::value& camera : cameras) order.push_back(&camera);
  constexpr size_t kHeadRows = 3;
  size_t room = std::max(rows, kHeadRows + 2) - kHeadRows, shown = order.size();
  if (order.size() > room) {
    std::ranges::stable_sort(order, {}, [](const json::value* camera) { return delivers(*camera); });
    shown = room - 1;
  }
  Table table({"CAMERA", "STATE", "FPS", "LOOKED", "DECODING", "SEEN"});
  for (const json::value* camera : std::span(order).first(shown))
    table.add({harmless(text(*camera, "camera_uuid")), state_of(*camera), fmt::format("{:.1f}", number(*camera, "fps")),
               looked_text(*camera), text(*camera, "decoding"), harmless(remark(*camera, now))});
  std::string more = fmt::format("… and {} more: weir camera list\n", order.size() - shown);
  return head + "\n\n" + table.text() + (shown < order.size() ? more : "");
}

std::string cluster_text(const json::value& state, size_t rows, std::string_view absence) {
  if (state.is_null()) return fmt::format("\nDetector cluster: {}\n", absence);
  const json::object& all = placements(state);
  json::array workers = list(state, "workers");
  auto online = std::ranges::count_if(workers, [](const json::value& worker) {
    const json::value* is = find(worker, "online");
    return is != nullptr && *is == true;
  });
  std::string out = fmt::format("\nDetector cluster: {} of {:.0f} workers online, {} subscription{}\n", online,
                                number(state, "totalWorkers"), all.size(), all.size() == 1 ? "" : "s");
  if (all.empty()) return out;
  std::vector<const json::object::value_type*> order;
  for (const auto& each : all) order.push_back(&each);
  auto runs = [](const auto* each) { return text(each->value(), "status") == "active"; };
  std::ranges::sort(order, {}, [&](const auto* each) { return std::pair(runs(each), each->key()); });
  constexpr size_t kHeadRows = 3;
  size_t room = std::max(rows, kHeadRows + 2) - kHeadRows;
  size_t shown = order.size() > room ? room - 1 : order.size();
  Table table({"SUBSCRIPTION", "STATUS"});
  for (const auto* each : std::span(order).first(shown))
    table.add({harmless(std::string(each->key())), harmless(placed_text(each->value()))});
  return out + table.text() + (shown < order.size() ? fmt::format("… and {} more\n", order.size() - shown) : "");
}

std::string ClusterLines::lines(const json::value& state) {
  std::string out;
  for (const auto& [id, placed] : placements(state)) {
    std::string now = placed_text(placed);
    if (std::exchange(said_[id], now) != now) out += harmless(fmt::format("{}: {}", std::string_view(id), now)) + "\n";
  }
  return out;
}

std::vector<std::string> news_of(const json::value& state, std::string& heard) {
  std::vector<std::string> out;
  std::string before = heard;
  for (const json::value& each : list(state, "happened")) {
    std::string ts = text(each, "ts"), camera = text(each, "camera_uuid");
    if (ts <= before || ts.size() < 19) continue;
    heard = std::max(heard, ts);
    out.push_back(harmless(fmt::format("{} {}: {}{}", ts.substr(11, 8), text(each, "event"), text(each, "text"),
                                       camera.empty() ? "" : fmt::format(" ({})", camera))));
  }
  return out;
}

std::string ScreenLines::lines(const json::value& state, Instant now) {
  std::string out;
  if (state.is_null()) return out;
  json::array cameras = list(state, "cameras");
  for (const json::value& camera : cameras) {
    std::string id = text(camera, "camera_uuid"), is = state_of(camera);
    if (const json::value* error = find(camera, "error")) is += " " + text(*error, "code");
    if (const json::value* behind = find(camera, "behind"); behind != nullptr && *behind == true) is += " OVERLOADED";
    Said& said = said_[id];
    if (std::exchange(said.state, is) != is) {
      out += fmt::format("{}: {}\n", harmless(id), is);
      said.seen = false;
    }
    const json::value* last = find(camera, "last_detection");
    std::string at = last == nullptr ? "" : text(*last, "ts");
    bool fresh = !at.empty() && std::exchange(said.detected_at, at) != at;
    if (fresh && !std::exchange(said.seen, true))
      out += fmt::format("{}: saw {}\n", harmless(id), seen_text(list(*last, "detections")));
  }
  // A worker that is replaced begins to count anew.
  double published = number(state, "published");
  events_ += std::max(0.0, published - std::exchange(published_, published));
  if (summed_up_ == Instant{}) summed_up_ = now;
  if (now - summed_up_ < kSumEvery) return out;
  summed_up_ = now;
  return out + fmt::format("{} camera{}, {:.0f} delivering, {:.0f} events in the last minute\n", cameras.size(),
                           cameras.size() == 1 ? "" : "s", number(state, "delivering"), std::exchange(events_, 0));
}

}  // namespace weir::apps
