#include "admin.hpp"
#include "common/api.hpp"
#include "common/print.hpp"
#include "common/words.hpp"
#include "fleet_view.hpp"

#include <cmath>

namespace weir::apps {

namespace {

using net::Method;

bool is_pinned(const json::value& node) { return cell(node, "capacity_pinned") == "yes"; }

std::string capacity_text(const json::value& node) {
  return cell(node, "capacity_streams") + (is_pinned(node) ? " pinned" : "");
}

// How many of the runner's cameras are looked at less often than wanted, by its last heartbeat.
std::string cameras_behind(const json::value& node) {
  const json::value* heartbeat = node.is_object() ? node.get_object().if_contains("heartbeat") : nullptr;
  return heartbeat == nullptr ? "-" : cell(*heartbeat, "cameras_behind");
}

Result<int> node_list(const Arguments& arguments) {
  TRY(api, Api::connect(arguments));
  TRY(items, api.list("/v1/runners"));
  if (arguments.has("json")) {
    print_json(json::object{{"items", items}});
    return 0;
  }
  if (items.empty()) {
    print_line("no nodes yet; a runner appears here when it registers");
    return 0;
  }
  Table table({"NODE", "STATUS", "CORDONED", "DRAIN", "LEASES", "CAPACITY", "BEHIND", "HOST", "VERSION", "LAST HEARTBEAT"});
  for (const auto& item : items)
    table.add({cell(item, "runner_id"), cell(item, "status"), cell(item, "cordoned"), cell(item, "drain_mode"),
               cell(item, "leases_held"), capacity_text(item), cameras_behind(item), cell(item, "host"),
               cell(item, "deployment_version"), cell(item, "last_heartbeat")});
  print(table.text());
  return 0;
}

Result<int> show(const Arguments& arguments, const json::value& answer) {
  if (arguments.has("json") || !answer.is_object()) print_json(answer);
  else print(field_lines(answer.get_object()));
  return 0;
}

Result<int> node_show(const Arguments& arguments) {
  TRY(api, Api::connect(arguments));
  TRY(answer, api.get(route("/v1/runners", arguments.text("<node>"))));
  return show(arguments, answer);
}

// Why a node that was just freed of one order still takes no cameras, and what to type; "" where it takes them.
std::string still_held_back(const json::value& node) {
  std::string id = cell(node, "runner_id");
  if (cell(node, "drain_mode") != "none")
    return fmt::format("{0} still drains ({1}) and takes no new cameras; end that with: "
                       "weir node drain {0} --mode none",
                       id, cell(node, "drain_mode"));
  if (cell(node, "cordoned") == "yes")
    return fmt::format("{0} is still cordoned and takes no new cameras; end that with: weir node uncordon {0}", id);
  return "";
}

Result<int> change(const Arguments& arguments, const json::object& body, std::string_view sentence,
                   bool frees = false) {
  TRY(api, Api::connect(arguments));
  TRY(answer, api.send(Method::patch, route("/v1/runners", arguments.text("<node>")), body));
  std::string held_back = frees ? still_held_back(answer) : "";
  if (arguments.has("json")) print_json(answer);
  else if (!held_back.empty()) print_line(harmless(held_back));
  else print_line(harmless(fmt::format(fmt::runtime(sentence), arguments.text("<node>"))));
  return 0;
}

Result<int> node_cordon(const Arguments& arguments) {
  return change(arguments, {{"cordoned", true}}, "{} takes no new cameras");
}

Result<int> node_uncordon(const Arguments& arguments) {
  return change(arguments, {{"cordoned", false}}, "{} takes new cameras again", true);
}

Result<int> drain(const Arguments& arguments, const std::string& mode) {
  TRY(api, Api::connect(arguments));
  TRY(node, api.send(Method::patch, route("/v1/runners", arguments.text("<node>")), {{"drain_mode", mode}}));
  if (arguments.has("json")) print_json(node);
  else print_line(harmless(drain_sentence(node)));
  auto runners = api.list("/v1/runners");  // without it the order was given all the same
  std::string warning = runners ? drain_warning(node, *runners) : "";
  if (!warning.empty()) complain(warning);
  return 0;
}

Result<int> node_drain(const Arguments& arguments) {
  std::string mode = arguments.has("mode") ? arguments.text("mode") : "soft";
  if (mode == "soft" || mode == "hard") return drain(arguments, mode);
  if (mode == "none")
    return change(arguments, {{"drain_mode", "none"}}, "{} no longer drains and takes new cameras again", true);
  return usage_error("--mode must be one of: soft, hard, none");
}

// "1.3 of 6.0/s", with a mark where that is too seldom.
std::string looked_at(const json::value& stream) {
  if (cell(stream, "looked_fps") == "-") return "-";
  const json::object& said = stream.get_object();
  const json::value* error = said.if_contains("error");
  bool slow = error != nullptr && cell(*error, "code") == "OVERLOADED";
  return fmt::format("{:.1f} of {:.1f}/s{}", said.at("looked_fps").to_number<double>(),
                     said.at("wanted_fps").to_number<double>(), slow ? " OVERLOADED" : "");
}

Result<int> node_capacity(const Arguments& arguments) {
  std::string given = arguments.text("<capacity>"), id = arguments.text("<node>");
  json::object body{{"capacity_streams", nullptr}};
  if (given != "auto") {
    std::optional<double> number = number_in(given);
    if (!number || *number != std::floor(*number) || std::abs(*number) > 1e9)
      return usage_error("the capacity must be a whole number of cameras, or auto: what the runner says of itself");
    body["capacity_streams"] = static_cast<std::int64_t>(*number);
  }
  TRY(api, Api::connect(arguments));
  TRY(answer, api.send(Method::patch, route("/v1/runners", id), body));
  return done(arguments, answer,
              is_pinned(answer) ? fmt::format("{0} takes up to {1} cameras, whatever it says of itself; end that with: "
                                              "weir node capacity {0} auto", id, cell(answer, "capacity_streams"))
                                : fmt::format("{} takes as many cameras as it says of itself: {}", id,
                                              cell(answer, "capacity_streams")));
}

Result<int> node_remove(const Arguments& arguments) {
  std::string id = arguments.text("<node>");
  TRY(api, Api::connect(arguments));
  TRY(node, api.get(route("/v1/runners", id)));
  auto answer = api.send(Method::del, route("/v1/runners", id));
  if (!answer && answer.error().reason == "runner_not_empty") {
    Error held = answer.error();
    held.message = fmt::format("{0} still has {1} camera{2}: move them first with: weir node drain {0}", id,
                               cell(node, "leases_held"), cell(node, "leases_held") == "1" ? "" : "s");
    return held;
  }
  if (!answer) return answer.error();
  if (cell(node, "status") == "active")
    complain(fmt::format("{} is alive and registers again within seconds, unless it is stopped on its host", id));
  return done(arguments, *answer, fmt::format("removed node {}", id));
}

Result<int> lease_list(const Arguments& arguments) {
  TRY(api, Api::connect(arguments));
  std::string target = "/v1/leases";
  add_query(target, "runner_id", arguments.text("runner"));
  TRY(items, api.list(target));
  if (arguments.has("json")) {
    print_json(json::object{{"items", items}});
    return 0;
  }
  if (items.empty()) {
    print_line(arguments.has("runner") ? "this runner holds no lease"
                                       : "no lease is held; a runner takes one for each enabled camera");
    return 0;
  }
  Table table({"CAMERA", "RUNNER", "STATUS", "STREAM", "LOOKED AT", "VERSION", "EXPIRES"});
  for (const auto& item : items) {
    const json::value* stream = item.is_object() ? item.get_object().if_contains("stream") : nullptr;
    table.add({cell(item, "camera_uuid"), cell(item, "runner_id"), cell(item, "status"),
               stream == nullptr ? "-" : cell(*stream, "state"), stream == nullptr ? "-" : looked_at(*stream),
               cell(item, "version"), cell(item, "expires_at")});
  }
  print(table.text());
  return 0;
}

Result<int> lease_show(const Arguments& arguments) {
  TRY(api, Api::connect(arguments));
  TRY(answer, api.get(route("/v1/leases/camera", arguments.text("<camera>"))));
  return show(arguments, answer);
}

Result<int> lease_revoke(const Arguments& arguments) {
  TRY(api, Api::connect(arguments));
  std::string camera = arguments.text("<camera>");
  TRY(before, api.get(route("/v1/leases/camera", camera)));
  TRY(answer, api.send(Method::post, route("/v1/leases/camera", camera, "/revoke")));
  if (arguments.has("json")) print_json(answer);
  else if (cell(answer, "version") == cell(before, "version"))
    print_line(harmless(fmt::format("nobody holds {}: there was nothing to revoke", camera)));
  else print_line(harmless(fmt::format("revoked the lease of {}", camera)));
  return 0;
}

}  // namespace

std::vector<Command> node_commands() {
  const Option node{"<node>", "ID", "The runner's id", true};
  return {
      {"node list", "List the runners", "weir node list", "admin", with_api_options({}), node_list},
      {"node show", "Show a runner", "weir node show runner-1", "admin", with_api_options({node}), node_show},
      {"node cordon", "Give a runner no new cameras", "weir node cordon runner-1", "admin", with_api_options({node}),
       node_cordon},
      {"node uncordon", "Give a runner new cameras again", "weir node uncordon runner-1", "admin",
       with_api_options({node}), node_uncordon},
      {"node drain", "Move a runner's cameras elsewhere", "weir node drain runner-1 --mode soft", "admin",
       with_api_options({node, {"mode", "MODE", "soft: in batches (default); hard: all at once; none: stop draining"}}),
       node_drain},
      {"node capacity", "Say how many cameras a runner takes, or leave it to the runner",
       "weir node capacity runner-1 24\nweir node capacity runner-1 auto", "admin",
       with_api_options({node, {"<capacity>", "N|auto", "How many cameras, from 1 on; auto: what the runner says of itself", true}}),
       node_capacity},
      {"node remove", "Remove a runner that holds nothing from the list; one that still runs registers again",
       "weir node remove runner-1   # after `weir node drain runner-1`, and after it was stopped on its host", "admin",
       with_api_options({node}), node_remove},
  };
}

std::vector<Command> lease_commands() {
  const Option camera{"<camera>", "ID", "The camera's id", true};
  return {
      {"lease list", "List who owns which camera", "weir lease list --runner runner-1", "admin",
       with_api_options({{"runner", "ID", "Of this runner only"}}), lease_list},
      {"lease show", "Show who owns a camera", "weir lease show cam-1", "admin", with_api_options({camera}),
       lease_show},
      {"lease revoke", "Take a camera away from its owner; another runner takes it, if one can",
       "weir lease revoke cam-1", "admin", with_api_options({camera}), lease_revoke},
  };
}

}  // namespace weir::apps
