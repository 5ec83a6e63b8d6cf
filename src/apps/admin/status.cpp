#include "admin.hpp"
#include "common/api.hpp"
#include "common/print.hpp"
#include "fleet_view.hpp"
#include "service_view.hpp"

#include "weir/settings/all_settings.hpp"

#include <algorithm>
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

json::array listed(const std::vector<Quiet>& cameras) {
  json::array out;
  for (const Quiet& each : cameras)
    out.push_back(json::object{{"camera_uuid", each.camera},
                               {"runner_id", each.runner.empty() ? json::value(nullptr) : json::value(each.runner)},
                               {"reason", each.reason}});
  return out;
}

json::array listed(const std::vector<Slow>& cameras) {
  json::array out;
  for (const Slow& each : cameras)
    out.push_back(json::object{{"camera_uuid", each.camera},
                               {"runner_id", each.runner},
                               {"looked_fps", each.looked},
                               {"wanted_fps", each.wanted},
                               {"reason", fmt::format("{:.1f} of {:.1f} times a second", each.looked, each.wanted)}});
  return out;
}

json::array listed(const std::vector<Mistake>& mistakes) {
  json::array out;
  for (const Mistake& each : mistakes)
    out.push_back(json::object{
        {"camera_uuid", each.camera}, {"code", each.code}, {"field", each.field}, {"message", each.message}});
  return out;
}

// The verdict on the cameras of runners, with what is wrong elsewhere before it.
std::string joined(const FleetView& fleet, const ServiceView& services) {
  constexpr std::string_view kAllRight = "everything is all right: ";
  std::string cameras = verdict(fleet), troubles = troubles_text(services);
  if (fleet.enabled == 0 && services.held + static_cast<int>(services.clusters.size()) > 0)
    cameras = fmt::format("{}no camera is for runners", kAllRight);
  if (!troubles.empty() && cameras.starts_with(kAllRight)) cameras.erase(0, kAllRight.size());
  return troubles + cameras;
}

// Asked only where a camera is a cluster's.
Result<ServiceView> look_at_services(Api& api, const json::array& cameras) {
  json::array masters;
  if (std::ranges::any_of(cameras, [](const json::value& each) { return cell(each, "processing") == "cluster"; })) {
    TRY(found, api.list("/v1/leases?kind=cluster"));
    masters = std::move(found);
  }
  TRY(streams, api.list("/v1/streams"));
  return service_view(cameras, masters, streams);
}

json::array listed(const std::vector<ClusterShown>& clusters) {
  json::array out;
  for (const ClusterShown& each : clusters)
    out.push_back(json::object{{"cluster", each.name},
                               {"master", each.master.empty() ? json::value(nullptr) : json::value(each.master)},
                               {"cameras", each.cameras}});
  return out;
}

json::array listed(const std::vector<StreamTrouble>& streams) {
  json::array out;
  for (const StreamTrouble& each : streams)
    out.push_back(json::object{{"stream_id", each.stream}, {"problem", each.problem}});
  return out;
}

Result<json::object> look(Api& api) {
  json::object seen{{"address", redact_url(api.url())}};
  TRY(ready, api.raw(net::Method::get, "/readyz"));
  seen["store"] = ready.status == 200 ? "reachable" : "unreachable";
  seen["verdict"] =
      "the control plane runs, but its store does not answer: runners keep their cameras, none can take one";
  if (ready.status != 200) {
    Error refusal = net::response_error(ready);
    if (refusal.reason == "store_unavailable") return seen;
    if (!net::says_nothing(ready)) return refusal;
    return Error{Errc::unavailable, "not_weir",
                 fmt::format("{} answered {}: is this a Weir control plane?", redact_url(api.url()), ready.status)};
  }
  TRY(metrics, api.raw(net::Method::get, "/metrics"));
  if (auto epoch = metric(metrics.body, "weir_epoch")) seen["epoch"] = static_cast<std::int64_t>(*epoch);
  TRY(cameras, api.list("/v1/cameras"));
  TRY(leases, api.list("/v1/leases"));
  TRY(runners, api.list("/v1/runners"));
  json::array sites;
  if (any_waits_for_budget(runners)) {
    TRY(listed_sites, api.list("/v1/sites"));
    sites = std::move(listed_sites);
  }
  FleetView fleet = fleet_view(cameras, leases, runners, sites);
  TRY(services, look_at_services(api, cameras));
  seen["verdict"] = joined(fleet, services);
  seen["clusters"] = listed(services.clusters);
  seen["streams_total"] = services.streams;
  seen["streams_held"] = services.held;
  seen["stream_problems"] = listed(services.troubles);
  seen["cameras_total"] = fleet.cameras;
  seen["cameras_enabled"] = fleet.enabled;
  seen["cameras_streaming"] = fleet.streaming;
  seen["cameras_pending"] = fleet.pending;
  seen["leases_held"] = fleet.leased;
  seen["runners_live"] = fleet.live;
  seen["runners_silent"] = fleet.silent;
  seen["runners_draining"] = fleet.draining;
  seen["runners_cordoned"] = fleet.cordoned;
  seen["not_streaming"] = listed(fleet.quiet);
  seen["not_looked_at"] = listed(fleet.blind);
  seen["looked_at_too_seldom"] = listed(fleet.slow);
  seen["just_begun"] = fleet.young;
  seen["warnings"] = listed(fleet.mistakes);
  return seen;
}

constexpr size_t kShown = 15;

std::string rest_of(const json::array& all) {
  if (all.size() <= kShown) return "";
  return fmt::format("… and {} more; all of them: weir status --json\n", all.size() - kShown);
}

std::string table_of(const json::array& cameras, const char* title) {
  if (cameras.empty()) return "";
  Table table({title, "RUNNER", "WHY"});
  for (size_t i = 0; i < std::min(cameras.size(), kShown); ++i)
    table.add({cell(cameras[i], "camera_uuid"), cell(cameras[i], "runner_id"), cell(cameras[i], "reason")});
  return "\n" + table.text() + rest_of(cameras);
}

std::string warnings_table(const json::array& warnings) {
  if (warnings.empty()) return "";
  Table table({"WARNINGS", "WHAT"});
  for (size_t i = 0; i < std::min(warnings.size(), kShown); ++i)
    table.add({cell(warnings[i], "camera_uuid"), cell(warnings[i], "message")});
  return "\n" + table.text() + rest_of(warnings);
}

std::string services_lines(const json::object& seen) {
  std::string out;
  for (const json::value& each : seen.at("clusters").get_array())
    out += fmt::format("cluster        {}: {} cameras, master {}\n", cell(each, "cluster"), cell(each, "cameras"),
                       cell(each, "master"));
  if (cell(seen, "streams_total") != "0")
    out += fmt::format("streams        {} of {} served\n", cell(seen, "streams_held"), cell(seen, "streams_total"));
  return out;
}

std::string streams_table(const json::array& streams) {
  if (streams.empty()) return "";
  Table table({"STREAM", "PROBLEM"});
  for (size_t i = 0; i < std::min(streams.size(), kShown); ++i)
    table.add({cell(streams[i], "stream_id"), cell(streams[i], "problem")});
  return "\n" + table.text() + rest_of(streams);
}

std::string screen_of(const json::object& seen) {
  std::string out = fmt::format("{}\n\n", harmless(cell(seen, "verdict")));
  out += fmt::format("control plane  {}\nstore          {}\n", cell(seen, "address"), cell(seen, "store"));
  if (!seen.contains("not_streaming")) return out;
  const json::array& quiet = seen.at("not_streaming").get_array();
  out += fmt::format(
      "epoch          {}\n"
      "cameras        {} enabled of {}: {} streaming, {} not, {} of these pending\n"
      "leases         {} held\n"
      "runners        {} live, {} silent, {} draining, {} cordoned\n",
      cell(seen, "epoch"), cell(seen, "cameras_enabled"), cell(seen, "cameras_total"), cell(seen, "cameras_streaming"),
      quiet.size(), cell(seen, "cameras_pending"), cell(seen, "leases_held"), cell(seen, "runners_live"),
      cell(seen, "runners_silent"), cell(seen, "runners_draining"), cell(seen, "runners_cordoned"));
  out += services_lines(seen);
  return out + table_of(quiet, "NOT STREAMING") + table_of(seen.at("not_looked_at").get_array(), "NOT LOOKED AT") +
         table_of(seen.at("looked_at_too_seldom").get_array(), "LOOKED AT TOO SELDOM") +
         warnings_table(seen.at("warnings").get_array()) + streams_table(seen.at("stream_problems").get_array());
}

Result<int> status(const Arguments& arguments) {
  TRY(api, Api::connect(arguments));
  TRY(seen, look(api));
  if (arguments.has("json")) print_json(seen);
  else print(screen_of(seen));
  return seen.at("store") == "reachable" ? 0 : 1;
}

Result<int> show_settings(const Arguments& arguments) {
  if (arguments.has("reference") && arguments.has("sample"))
    return usage_error("give --reference or --sample, not both; see weir settings --help");
  if (arguments.has("reference") || arguments.has("sample")) {
    print(arguments.has("reference") ? settings_reference(all_settings()) : settings_sample(all_settings()));
    return 0;
  }
  TRY(settings, arguments.settings());
  Table table({"SETTING", "VALUE", "FROM"});
  json::array items;
  for (const SettingSpec& spec : all_settings()) {
    std::string value = settings.shown(spec), origin = settings.origin(spec.name);
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
