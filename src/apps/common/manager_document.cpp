#include "manager_document.hpp"

#include "weir/base/json.hpp"

#include <algorithm>
#include <array>

namespace weir::apps {

namespace {
constexpr std::pair<std::string_view, std::string_view> kRenamed[] = {
    {"lease_ttl_seconds", "lease_ttl_s"}, {"lease_retry_interval_seconds", "lease_retry_interval_s"}};
// A runner takes its cameras from the control plane, and says every second that it lives.
constexpr std::array<std::string_view, 8> kUnused = {
    "manager_mode", "heartbeat_interval_seconds", "shard_id", "max_fps", "sources", "amqp", "cp", "telemetry"};

bool is_document(const json::object& given) {
  return given.contains("manager_mode") || given.contains("lease_ttl_seconds") || given.contains("sources");
}

const json::value* inside(const json::object& given, std::string_view object, std::string_view name) {
  const json::value* found = given.if_contains(object);
  return found != nullptr && found->is_object() ? found->get_object().if_contains(name) : nullptr;
}
}  // namespace

std::optional<ManagerDocument> read_manager_document(std::string_view text) {
  if (!text.substr(std::min(text.find_first_not_of(" \t\r\n"), text.size())).starts_with('{')) return {};
  auto parsed = json::parse_text(text);
  if (!parsed || !parsed->is_object() || !is_document(parsed->get_object())) return {};
  const json::object& given = parsed->get_object();
  json::object settings;
  ManagerDocument out;
  for (const auto& member : given) {
    std::string_view name(member.key().data(), member.key().size());
    auto renamed = std::ranges::find(kRenamed, name, &std::pair<std::string_view, std::string_view>::first);
    if (renamed != std::end(kRenamed)) settings[renamed->second] = member.value();
    else if (std::ranges::find(kUnused, name) == kUnused.end()) settings[name] = member.value();
    else out.unused.emplace_back(name);
  }
  auto stand_in = [&](std::string_view setting, const json::value* value, std::string_view for_name) {
    if (value == nullptr || settings.contains(setting)) return;
    settings[setting] = *value;
    std::erase(out.unused, for_name);
  };
  stand_in("control_plane_url", inside(given, "cp", "base_url"), "cp");
  stand_in("status_summary_interval_s", inside(given, "telemetry", "report_interval_seconds"), "telemetry");
  out.settings = json::to_text(settings);
  return out;
}

}  // namespace weir::apps
