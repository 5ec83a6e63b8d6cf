#include "admin.hpp"
#include "api.hpp"
#include "print.hpp"

#include <charconv>

namespace weir::apps {

namespace {

// One number of the metrics page, where it is there.
std::optional<double> metric(std::string_view page, std::string_view name) {
  for (size_t at = 0; at < page.size();) {
    size_t end = std::min(page.find('\n', at), page.size());
    std::string_view line = page.substr(at, end - at);
    at = end + 1;
    if (!line.starts_with(name) || line.size() <= name.size() || line[name.size()] != ' ') continue;
    double number = 0;
    line.remove_prefix(name.size() + 1);
    if (std::from_chars(line.data(), line.data() + line.size(), number).ec == std::errc{}) return number;
  }
  return std::nullopt;
}

int count(const json::array& items, std::string_view field, const json::value& wanted) {
  int found = 0;
  for (const auto& item : items)
    if (const auto* v = item.is_object() ? item.get_object().if_contains(field) : nullptr; v != nullptr && *v == wanted)
      ++found;
  return found;
}

Result<json::object> look(Api& api) {
  json::object seen{{"address", redact_url(api.url())}};
  TRY(ready, api.raw(net::Method::get, "/readyz"));
  seen["store"] = ready.status == 200 ? "reachable" : "unreachable";
  if (ready.status != 200) return seen;
  TRY(metrics, api.raw(net::Method::get, "/metrics"));
  if (auto epoch = metric(metrics.body, "weir_epoch")) seen["epoch"] = static_cast<std::int64_t>(*epoch);
  TRY(cameras, api.list("/v1/cameras"));
  TRY(leases, api.list("/v1/leases"));
  TRY(runners, api.list("/v1/runners"));
  int live = count(runners, "status", "active");
  seen["cameras_total"] = cameras.size();
  seen["cameras_enabled"] = count(cameras, "enabled", true);
  seen["leases_held"] = count(leases, "status", "active");
  seen["runners_live"] = live;
  seen["runners_silent"] = static_cast<int>(runners.size()) - live;
  return seen;
}

Result<int> status(const Arguments& arguments) {
  TRY(api, Api::connect(arguments));
  TRY(seen, look(api));
  bool reachable = seen.at("store") == "reachable";
  if (arguments.has("json")) {
    print_json(seen);
    return reachable ? 0 : 1;
  }
  std::string out = fmt::format("control plane  {}\nstore          {}\n", cell(seen, "address"), cell(seen, "store"));
  if (reachable)
    out += fmt::format(
        "epoch          {}\n"
        "cameras        {} enabled of {}\n"
        "leases         {} held\n"
        "runners        {} live, {} silent\n",
        cell(seen, "epoch"), cell(seen, "cameras_enabled"), cell(seen, "cameras_total"), cell(seen, "leases_held"),
        cell(seen, "runners_live"), cell(seen, "runners_silent"));
  print(out);
  if (!reachable) complain("the control plane runs, but its store does not answer");
  return reachable ? 0 : 1;
}

std::string effective(const Settings& settings, const SettingSpec& spec) {
  switch (spec.kind) {
    case SettingKind::text: return settings.text(spec.name);
    case SettingKind::secret: return settings.secret(spec.name).empty() ? "" : "***";
    case SettingKind::integer: return fmt::format("{}", settings.integer(spec.name));
    case SettingKind::number: return fmt::format("{}", settings.number(spec.name));
    case SettingKind::flag: return settings.flag(spec.name) ? "true" : "false";
  }
  return {};
}

Result<int> show_settings(const Arguments& arguments) {
  if (arguments.has("reference") && arguments.has("sample"))
    return usage_error("give --reference or --sample, not both; see weir settings --help");
  if (arguments.has("reference") || arguments.has("sample")) {
    print(arguments.has("reference") ? settings_reference() : settings_sample());
    return 0;
  }
  TRY(settings, arguments.settings());
  Table table({"SETTING", "VALUE", "FROM"});
  json::array items;
  for (const SettingSpec& spec : all_settings()) {
    std::string value = effective(settings, spec), origin = settings.origin(spec.name);
    items.push_back(json::object{{"name", spec.name}, {"value", value}, {"origin", origin}});
    table.add({std::string(spec.name), value, origin});
  }
  if (arguments.has("json")) print_json(json::object{{"items", items}});
  else print(table.text());
  return 0;
}

Result<int> version(const Arguments& arguments) {
  if (arguments.has("json")) print_json(json::object{{"version", WEIR_VERSION}});
  else print_line("weir " WEIR_VERSION);
  return 0;
}

}  // namespace

std::vector<Command> status_commands() {
  return {{"status", "Is everything all right? One screen; fails where the server or its store cannot be reached",
           "weir status\nweir status --json", "admin", with_api_options({}), status}};
}

std::vector<Command> about_commands() {
  return {
      {"settings",
       "Show the settings in effect and where each came from",
       "weir settings --config weir.yaml\nweir settings --sample > weir.yaml",
       "all",
       {{"reference", "", "Print the reference page instead"},
        {"sample", "", "Print a settings file with every default instead"},
        {"json", "", "Print JSON"}},
       show_settings},
      {"version", "Print the version", "weir version", "", {{"json", "", "Print JSON"}}, version},
  };
}

}  // namespace weir::apps
