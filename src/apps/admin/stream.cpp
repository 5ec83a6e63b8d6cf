#include "admin.hpp"
#include "common/api.hpp"
#include "common/files.hpp"
#include "common/print.hpp"
#include "stream_wishes.hpp"

namespace weir::apps {

namespace {

using net::Method;

constexpr std::string_view kStreams = "/v1/streams";
constexpr size_t kDestinationBytesMax = 64 << 10;

// A field of a part of the stream: "-" where the part or the field is absent.
std::string part(const json::value& stream, std::string_view name, std::string_view field) {
  const json::value* found = stream.is_object() ? stream.get_object().if_contains(name) : nullptr;
  return found == nullptr ? "-" : cell(*found, field);
}

bool is_held(const json::value& stream) { return cell(stream, "holder") != "-"; }

Result<int> stream_list(const Arguments& arguments) {
  TRY(api, Api::connect(arguments));
  TRY(found, api.list(std::string(kStreams)));
  json::array items;
  for (const json::value& item : found) items.push_back(without_stream_key(item));
  if (arguments.has("json")) return done(arguments, json::object{{"items", items}}, "");
  if (items.empty())
    return done(arguments, {},
                "no streams yet; one appears here when somebody publishes live/ID/in, or wishes something for it with: "
                "weir stream set ID forward=true --destination-file FILE");
  Table table({"STREAM", "STATE", "SINCE", "WORKER", "FORWARD", "HOLDER", "PROBLEM"});
  for (const json::value& item : items) {
    bool held = is_held(item);
    table.add({cell(item, "stream_id"), cell(item, "state"), held ? cell(item, "since") : "-",
               held ? part(item, "worker", "state") : "-", held ? part(item, "forward", "state") : "-",
               cell(item, "holder"), stream_problem(item)});
  }
  print(table.text());
  return 0;
}

Result<int> stream_show(const Arguments& arguments) {
  TRY(api, Api::connect(arguments));
  TRY(answer, api.get(route(kStreams, arguments.text("<stream>"))));
  json::value shown = without_stream_key(answer);
  if (arguments.has("json") || !shown.is_object()) return done(arguments, shown, "");
  print(field_lines(shown.get_object()));
  return 0;
}

// ---- orders ----

// Whom an order went to.
std::string addressee(const json::value& answer) {
  return is_held(answer) ? cell(answer, "holder") : "every orchestrator";
}

// A stream that ended by itself in the meantime is no failure.
Result<int> stop_all(const Arguments& arguments) {
  TRY(api, Api::connect(arguments));
  TRY(found, api.list(std::string(kStreams)));
  json::array stopped;
  int failed = 0;
  for (const json::value& item : found) {
    if (!is_held(item)) continue;
    std::string id = cell(item, "stream_id");
    auto answer = api.send(Method::post, route(kStreams, id, "/stop"));
    if (answer) stopped.push_back(*answer);
    if (answer || answer.error().reason == "stream_not_held" || answer.error().code == Errc::not_found) continue;
    ++failed;
    complain(fmt::format("{} was not stopped: {}", id, answer.error().message));
  }
  size_t count = stopped.size();
  (void)done(arguments, json::object{{"items", std::move(stopped)}, {"failed", failed}},
             count == 0 ? "no stream is held by an orchestrator: nothing was stopped"
                        : fmt::format("ordered the stop of {} stream{}", count, count == 1 ? "" : "s"));
  return failed == 0 ? 0 : 1;
}

Result<int> stream_stop(const Arguments& arguments) {
  std::string id = arguments.text("<stream>");
  if (arguments.has("all") != id.empty())
    return usage_error("name one stream, or --all for all of them; see weir stream stop --help");
  if (arguments.has("all")) return stop_all(arguments);
  TRY(api, Api::connect(arguments));
  TRY(answer, api.send(Method::post, route(kStreams, id, "/stop")));
  return done(arguments, answer,
              fmt::format("ordered {1} to stop {0}; it starts again when it is published anew, or with: weir stream "
                          "restart {0}", id, addressee(answer)));
}

Result<int> stream_restart(const Arguments& arguments) {
  TRY(api, Api::connect(arguments));
  std::string id = arguments.text("<stream>");
  TRY(answer, api.send(Method::post, route(kStreams, id, "/restart")));
  std::string_view sentence = is_held(answer) ? "ordered {} to restart {}"
                                              : "ordered {} to start {} again, if it is published there";
  return done(arguments, answer, fmt::format(fmt::runtime(sentence), addressee(answer), id));
}

Result<int> stream_forward(const Arguments& arguments) {
  std::string id = arguments.text("<stream>"), word = arguments.text("<switch>");
  json::object body{{"on", nullptr}};
  if (word == "on" || word == "off") body["on"] = word == "on";
  else if (word != "auto") return usage_error("say on, off, or auto: as the stream's settings have it");
  TRY(api, Api::connect(arguments));
  TRY(answer, api.send(Method::post, route(kStreams, id, "/forward"), body));
  std::string_view sentence = word == "on"    ? "ordered {} to forward {}"
                              : word == "off" ? "ordered {} not to forward {}"
                                              : "ordered {} to forward {} as its settings say";
  return done(arguments, answer, fmt::format(fmt::runtime(sentence), addressee(answer), id));
}

// ---- wishes ----

// The wishes that there are, as they can be put again.
Result<json::object> present_wishes(Api& api, const std::string& id) {
  auto answer = api.get(route(kStreams, id));
  if (!answer && answer.error().reason == "stream_not_found") return json::object();
  if (!answer) return answer.error();
  const json::value* wishes = answer->is_object() ? answer->get_object().if_contains("wishes") : nullptr;
  return wishes != nullptr && wishes->is_object() ? wishes->get_object() : json::object();
}

Result<std::vector<std::string>> given_words(const Arguments& arguments) {
  std::vector<std::string> words = arguments.list("<changes>");
  bool shown = std::ranges::any_of(words, [](const std::string& word) { return word.starts_with("destination=r"); });
  if (shown && arguments.has("destination-file"))
    return usage_error("give the destination once, as a word or with --destination-file; see weir stream set --help");
  if (shown)
    complain("note: other users of this machine can see a command's arguments; --destination-file keeps the stream key "
             "private");
  if (arguments.has("destination-file")) {
    TRY(text, read_file(arguments.text("destination-file"), kDestinationBytesMax));
    words.push_back("destination=" + trimmed(text));
  }
  if (words.empty()) return usage_error("give what to wish, as KEY=VALUE; see weir stream set --help");
  return words;
}

Result<int> stream_set(const Arguments& arguments) {
  std::string id = arguments.text("<stream>");
  TRY(words, given_words(arguments));
  TRY(form, changed_wishes({}, words));  // mistakes in the words are reported before anybody is asked
  TRY(api, Api::connect(arguments));
  TRY(present, present_wishes(api, id));
  TRY(body, changed_wishes(std::move(present), words));
  if (arguments.has("tenant")) body["tenant_id"] = arguments.text("tenant");
  if (arguments.has("site")) body["site_id"] = arguments.text("site");
  TRY(answer, api.send(Method::put, route(kStreams, id), body));
  return done(arguments, without_stream_key(answer),
              is_held(answer) ? fmt::format("changed the wishes for {}; {} is told", id, addressee(answer))
                              : fmt::format("changed the wishes for {}; they count when it is published", id));
}

Result<int> stream_remove(const Arguments& arguments) {
  std::string id = arguments.text("<stream>");
  TRY(api, Api::connect(arguments));
  auto answer = api.send(Method::del, route(kStreams, id));
  if (!answer && answer.error().reason == "stream_not_empty") {
    Error held = answer.error();
    held.message = fmt::format("an orchestrator still holds {0}: stop it first with: weir stream stop {0}", id);
    return held;
  }
  if (!answer) return answer.error();
  return done(arguments, *answer, fmt::format("removed stream {} and its wishes", id));
}

}  // namespace

std::vector<Command> stream_commands() {
  const Option stream{"<stream>", "ID", "The stream's id: it is published as live/ID/in", true};
  return {
      {"stream list", "List the published streams and what becomes of them", "weir stream list", "admin",
       with_api_options({}), stream_list},
      {"stream show", "Show a stream, without its destination's key", "weir stream show concert", "admin",
       with_api_options({stream}), stream_show},
      {"stream stop", "Stop a stream's worker and its forwarding",
       "weir stream stop concert\nweir stream stop --all", "admin",
       with_api_options({{"<stream>", "ID", "The stream's id"}, {"all", "", "All streams that are held now"}}),
       stream_stop},
      {"stream restart", "Start a stream anew, also one that was stopped or has been given up",
       "weir stream restart concert", "admin", with_api_options({stream}), stream_restart},
      {"stream forward", "Switch a stream's forwarding on or off, whatever its settings say",
       "weir stream forward concert off\nweir stream forward concert auto   # as its settings have it", "admin",
       with_api_options({stream,
                         {"<switch>", "on|off|auto", "Whether it is forwarded; auto: as its settings say", true}}),
       stream_forward},
      {"stream set", "Wish how a stream is processed and where it is forwarded to, before or while it is published",
       "weir stream set concert forward=true --destination-file concert.url\n"
       "weir stream set concert mode=passthrough max_fps= pref.lang=es   # nothing after = takes the wish back",
       "admin",
       with_api_options({stream,
                         {"<changes>", "KEY=VALUE", "forward, destination, mode, max_fps, or pref.NAME; and its value",
                          false, true},
                         {"destination-file", "FILE", "A file that holds the RTMP URL; - is standard input"},
                         {"tenant", "ID", "Whose stream it is, where it is new; by default the token's"},
                         {"site", "ID", "Where it is published, where it is new"}}),
       stream_set},
      {"stream remove", "Remove a stream that nobody holds, with its wishes", "weir stream remove concert", "admin",
       with_api_options({stream}), stream_remove},
  };
}

}  // namespace weir::apps
