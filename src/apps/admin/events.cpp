#include "admin.hpp"
#include "common/api.hpp"
#include "common/print.hpp"
#include "up/screen.hpp"

#include <atomic>
#include <csignal>
#include <thread>

namespace weir::apps {

namespace {

std::atomic<bool> g_stop{false};
bool over() { return g_stop || !printing_makes_sense(); }
std::string g_pattern = "#";  // where none is given

std::string text_of(const json::value& object, std::string_view field) {
  return object.is_object() && object.get_object().contains(field) ? cell(object, field) : std::string();
}

// What a person wants to know of an event, in a few words.
std::string short_text(const json::value& payload) {
  if (!payload.is_object()) return "";
  if (const auto* seen = payload.get_object().if_contains("detections")) {
    std::string text = seen_text(*seen);
    return text.empty() ? "nothing" : text;
  }
  if (payload.get_object().contains("boot_id"))
    return fmt::format("{} version {} {}", text_of(payload, "runner_id"), text_of(payload, "version"), text_of(payload, "reason"));
  std::string out;
  for (std::string_view field : {"state", "reason", "code", "detail", "streams_owned", "fps"})
    if (std::string text = text_of(payload, field); !text.empty())
      out += fmt::format("{}{}{}", out.empty() ? "" : " ", field == "fps" || field == "streams_owned" ? std::string(field) + " " : "",
                         text);
  return out.empty() ? json::to_text(payload) : out;
}

std::string line_of(const json::value& event) {
  const json::value* payload = event.is_object() ? event.get_object().if_contains("payload") : nullptr;
  if (payload == nullptr) return harmless(json::to_text(event));
  std::string time = text_of(*payload, "ts");
  if (time.empty()) time = text_of(event, "stored_at");
  return harmless(fmt::format("{}  {}  {}", time.empty() ? "-" : time, text_of(event, "routing_key"),
                              short_text(*payload)));
}

std::string pattern_of(const Arguments& arguments) {
  return arguments.has("<pattern>") ? arguments.text("<pattern>") : g_pattern;
}

std::string target_of(const Arguments& arguments, const std::string& after, std::string_view more) {
  std::string target = "/v1/events";
  add_query(target, "pattern", pattern_of(arguments));
  add_query(target, "after", after);
  return target + std::string(more);
}

Result<int> print_kept(const Arguments& arguments) {
  TRY(api, Api::connect(arguments));
  api.end_when(over);
  std::string after = arguments.text("after");
  bool any = false;
  while (!over()) {
    TRY(page, api.get(target_of(arguments, after.empty() ? "0" : after, "&follow=false&limit=1000")));
    if (!page.is_object() || !page.get_object().contains("items") || !page.at("items").is_array())
      return Error{Errc::internal, "bad_answer", "the control plane did not answer with a list of events"};
    if (page.get_object().contains("gap") && page.at("gap") == true)
      complain("events after the given cursor are no longer kept; these are the oldest");
    for (const json::value& event : page.at("items").get_array())
      arguments.has("json") ? print_json(event) : print_line(line_of(event));
    any = any || !page.at("items").get_array().empty();
    std::string next = text_of(page, "next_cursor");
    if (page.get_object().contains("at_end") && page.at("at_end") == true) break;
    after = std::move(next);
  }
  if (!any && !arguments.has("json") && !over())
    complain(
        fmt::format("no event that is kept matches {}; --follow waits for those that come", pattern_of(arguments)));
  return 0;
}

// One event of the stream, printed; what ends the stream is kept in `ended`.
void print_streamed(const net::StreamedEvent& event, bool raw, std::optional<Error>& ended) {
  auto data = json::parse_text(event.data);
  if (event.event == "gap") {
    complain("events are missing here: they were no longer kept");
  } else if (event.event == "error") {
    ended = Error{Errc::unavailable, data ? text_of(*data, "code") : "", data ? text_of(*data, "message") : event.data};
  } else if (data && raw) {
    data->as_object()["cursor"] = event.id;
    print_json(*data);
  } else if (data) {
    print_line(line_of(*data));
  }
}

// Follows from `after` on until the stream ends; where nothing was given, from now on, and remembers where that was.
Status follow_once(const Arguments& arguments, std::string& after, bool& reached) {
  // The address and the token are found anew each time: a token that is made here lives for minutes, and a restarted
  // `weir up` may be elsewhere.
  TRY(api, Api::connect(arguments));
  api.end_when(over);
  TRY(begin, api.get(target_of(arguments, after.empty() ? "now" : after, "&follow=false&limit=1")));
  if (after.empty()) after = text_of(begin, "next_cursor");
  reached = true;
  std::optional<Error> ended;
  Status followed = api.follow(target_of(arguments, after, ""), [&](const net::StreamedEvent& event) {
    if (!event.progress) print_streamed(event, arguments.has("json"), ended);
    if (!event.id.empty()) after = event.id;
    return !ended && !over();
  });
  if (ended) return *ended;
  return followed;
}

// An address that never answered is a mistake; one that did will come back.
Result<int> follow(const Arguments& arguments) {
  constexpr Duration kPauseMax = 2s;
  std::string after = arguments.text("after");
  bool followed_before = false, waiting = false;
  for (Duration pause = 100ms; !over();) {
    bool reached = false;
    Status ended = follow_once(arguments, after, reached);
    if (over()) break;
    followed_before = followed_before || reached;
    if (!ended && (ended.error().code != Errc::unavailable || !followed_before)) return ended.error();
    if (reached) {
      pause = 100ms;
      waiting = false;
    }
    bool routine = ended || ended.error().reason == "token_expired";
    if (!routine && !std::exchange(waiting, true))
      complain(fmt::format("{}; waiting for the control plane, nothing will be missed. Ctrl-C ends this",
                           ended.error().message));
    for (Duration waited{0}; waited < pause && !over(); waited += 50ms) std::this_thread::sleep_for(50ms);
    pause = std::min<Duration>(pause * 2, kPauseMax);
  }
  return 0;
}

Result<int> events(const Arguments& arguments) {
  for (int signal : {SIGINT, SIGTERM}) std::signal(signal, [](int) { g_stop = true; });
  std::signal(SIGPIPE, SIG_IGN);
  Result<int> ended = arguments.has("follow") ? follow(arguments) : print_kept(arguments);
  bool left = over();  // after Ctrl-C, or when a reader has seen enough, nothing that was under way has failed
  auto unprinted = take_print_failure();
  if (unprinted && unprinted->reason != "closed_pipe") return *unprinted;
  return left ? Result<int>(0) : ended;
}

Result<int> lease_events(const Arguments& arguments) {
  g_pattern = "lease.#";
  return events(arguments);
}

}  // namespace

std::vector<Command> event_commands() {
  return {{"events",
           "Show events: those that are kept, or with --follow those that come",
           "weir events --follow\nweir events --follow 'detections.t-01.#'\nweir events --json 'stream.error.#'",
           "admin",
           with_api_options({{"<pattern>", "PATTERN", "AMQP topic pattern over routing keys: * is one word, # any number"},
                             {"follow", "", "Go on until Ctrl-C; reconnects and misses nothing"},
                             {"after", "CURSOR", "Begin after this event; 0 is the oldest that is kept"}}),
           events},
          {"lease events",
           "Show who took, released or lost which camera",
           "weir lease events --follow",
           "admin",
           with_api_options({{"follow", "", "Go on until Ctrl-C; reconnects and misses nothing"},
                             {"after", "CURSOR", "Begin after this event; 0 is the oldest that is kept"}}),
           lease_events}};
}

}  // namespace weir::apps
