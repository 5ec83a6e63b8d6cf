#include "screen.hpp"

#include "print.hpp"

#include <algorithm>

namespace weir::apps {

namespace {

constexpr Duration kSeenEvery = 5s;

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

// What a person wants to know beside the state: the error and the next try, or what was last seen.
std::string remark(const json::value& camera, WallTime now) {
  if (const json::value* error = find(camera, "error"))
    return fmt::format("{}: {} (next try in {:.0f} s)", text(*error, "code"), text(*error, "detail"),
                       number(*error, "retry_in_ms") / 1000);
  std::string phase = text(camera, "phase");
  if (phase == "waiting") return "another runner has it, or the control plane has not answered yet";
  if (phase == "budget") return "waits for its site's budget of first connections";
  if (phase == "held" || phase == "starting") return "its worker is starting";
  const json::value* last = find(camera, "last_detection");
  if (last == nullptr) return "nothing seen yet";
  return fmt::format("{}: {}", ago(text(*last, "ts"), now), seen_text(list(*last, "detections")));
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

std::string screen_text(const json::value& state, const std::string& url, WallTime now) {
  json::array cameras = list(state, "cameras");
  std::string head = fmt::format("Weir at {}: {} camera{}, {:.0f} delivering, {:.1f} pictures/s looked at, {:.0f} events",
                                 url, cameras.size(), cameras.size() == 1 ? "" : "s", number(state, "delivering"),
                                 number(state, "pipeline_fps"), number(state, "published"));
  if (state.is_null()) return fmt::format("Weir at {}: the runner is starting\n", url);
  if (cameras.empty()) return head + "\nNo cameras yet: `weir camera add --help` shows how to add one.\n";
  Table table({"CAMERA", "STATE", "FPS", "DECODING", "SEEN"});
  for (const json::value& camera : cameras)
    table.add({harmless(text(camera, "camera_uuid")), text(camera, "state").empty() ? "WAITING" : text(camera, "state"), fmt::format("{:.1f}", number(camera, "fps")),
               text(camera, "decoding"), harmless(remark(camera, now))});
  return head + "\n\n" + table.text();
}

std::string ScreenLines::lines(const json::value& state, Instant now) {
  std::string out;
  for (const json::value& camera : list(state, "cameras")) {
    std::string id = text(camera, "camera_uuid"), is = text(camera, "state");
    if (is.empty()) is = "WAITING";
    if (const json::value* error = find(camera, "error")) is += " " + text(*error, "code");
    Said& said = said_[id];
    if (std::exchange(said.state, is) != is) out += fmt::format("{}: {}\n", harmless(id), is);
    const json::value* last = find(camera, "last_detection");
    std::string at = last == nullptr ? "" : text(*last, "ts");
    if (at.empty() || at == said.detected_at || (said.at != Instant{} && now - said.at < kSeenEvery)) continue;
    said.detected_at = at;
    said.at = now;
    out += fmt::format("{}: saw {}\n", harmless(id), seen_text(list(*last, "detections")));
  }
  return out;
}

}  // namespace weir::apps
