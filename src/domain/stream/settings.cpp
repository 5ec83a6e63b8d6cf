#include "weir/stream/settings.hpp"

#include "weir/forward/destination.hpp"

#include <algorithm>
#include <charconv>

namespace weir::stream {

namespace {

constexpr size_t kPreferencesMax = 32, kNameMax = 64, kValueMax = 1024;
constexpr double kFpsMin = 0.1, kFpsMax = 60;

// Query fields with a publisher's credentials for MediaMTX, or for a proxy before it. They are never handed on.
constexpr std::array<std::string_view, 8> kCredentialNames = {"user", "pass",  "password", "username",
                                                              "jwt",  "token", "key",      "auth"};

std::string name_problem(std::string_view name) {
  bool plain = std::ranges::all_of(name, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.';
  });
  return plain && !name.empty() && name.size() <= kNameMax
             ? ""
             : fmt::format("names must have 1 to {} letters, digits, '_', '-' and '.'", kNameMax);
}
std::string value_problem(std::string_view value) {
  bool printable = std::ranges::none_of(value, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  return printable && value.size() <= kValueMax
             ? ""
             : fmt::format("must have at most {} characters and no control characters", kValueMax);
}
std::string preferences_problem(const Preferences& preferences) {
  if (preferences.size() > kPreferencesMax) return fmt::format("must have at most {} entries", kPreferencesMax);
  for (const auto& [name, value] : preferences) {
    if (std::string problem = name_problem(name); !problem.empty()) return problem;
    if (std::string problem = value_problem(value); !problem.empty()) return fmt::format("{} {}", name, problem);
  }
  return "";
}

// The sentences of read_destination begin with the name of the forwarder's own setting; ours follow "destination".
std::string destination_problem(const Secret& destination) {
  auto read = forward::read_destination(destination);
  if (read) return "";
  constexpr std::string_view kTheirs = "DEST_RTMP_URL ", kPart = "DEST_RTMP_URL's ";
  std::string_view said = read.error().message;
  if (said.starts_with(kTheirs)) return std::string(said.substr(kTheirs.size()));
  if (said.starts_with(kPart)) return fmt::format("has a wrong form: its {}", said.substr(kPart.size()));
  return fmt::format("cannot be used: {}", said);
}
std::string destination_check(const Secret& destination) {
  if (destination.reveal().ends_with("/***")) return "holds *** in place of its stream key: give the real one";
  // An empty destination removes the one that the streams file or the publisher named.
  return destination.empty() ? "" : destination_problem(destination);
}

struct WishesText {
  std::optional<bool> forward;
  std::optional<Secret> destination;
  std::optional<Mode> mode;
  std::optional<double> max_fps;
  json::object preferences;
};
template <class V>
void fields(V& v, WishesText& w) {
  v.optional("forward", w.forward);
  v.optional("destination", w.destination, destination_check);
  v.optional("mode", w.mode);
  v.optional("max_fps", w.max_fps, json::range(kFpsMin, kFpsMax));
  v.optional("preferences", w.preferences);
}

// A file's `count: 3` and `captions: true` are meant as text.
std::optional<std::string> text_of(const json::value& v) {
  if (v.is_string()) return std::string(v.get_string());
  if (v.is_double()) return fmt::format("{}", v.get_double());
  if (v.is_bool() || v.is_number()) return json::to_text(v);
  return std::nullopt;
}

std::optional<bool> read_switch(std::string_view text) {
  for (std::string_view yes : {"true", "1", "on", "yes"})
    if (text == yes) return true;
  for (std::string_view no : {"false", "0", "off", "no"})
    if (text == no) return false;
  return std::nullopt;
}

// Reads one name of a query; returns what is wrong, or "".
std::string take(Wishes& out, const std::string& name, const Secret& value, bool destination_allowed) {
  const std::string& text = value.reveal();
  if (name == "forward") {
    out.forward = read_switch(text);
    return out.forward ? "" : "forward must be true or false";
  }
  if (name == "destination") {
    if (!destination_allowed) return "";
    out.destination = value;
    std::string problem = destination_problem(value);
    return problem.empty() ? "" : fmt::format("destination {}", problem);
  }
  if (name == "mode") {
    for (const auto& [mode, word] : kModeNames)
      if (text == word) out.mode = mode;
    return out.mode ? "" : "mode must be annotate or passthrough";
  }
  if (name == "max_fps") {
    double fps = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), fps);
    if (error == std::errc() && end == text.data() + text.size() && fps >= kFpsMin && fps <= kFpsMax) out.max_fps = fps;
    return out.max_fps ? "" : fmt::format("max_fps must be between {} and {}", kFpsMin, kFpsMax);
  }
  if (std::ranges::find(kCredentialNames, name) != kCredentialNames.end()) return "";
  out.preferences[name] = text;
  return "";
}

Wishes wrong(std::string problem) { return {.problem = std::move(problem)}; }

}  // namespace

Result<Wishes> read_wishes(const json::value& v) {
  TRY(text, json::read<WishesText>(v, json::Unknown::reject));
  Wishes out{text.forward, std::move(text.destination), text.mode, text.max_fps};
  std::vector<json::Problem> problems;
  for (const auto& [name, value] : text.preferences) {
    if (auto preference = text_of(value))
      out.preferences[std::string(name)] = std::move(*preference);
    else
      problems.push_back({fmt::format("preferences.{}", std::string_view(name).substr(0, kNameMax)), "must be a text"});
  }
  if (std::string problem = preferences_problem(out.preferences); !problem.empty())
    problems.push_back({"preferences", std::move(problem)});
  if (!problems.empty()) return json::problems_error(problems);
  return out;
}

json::object write_wishes(const Wishes& wishes, Credentials credentials) {
  json::object preferences, out;
  for (const auto& [name, value] : wishes.preferences) preferences[name] = value;
  if (wishes.forward) out["forward"] = *wishes.forward;
  if (wishes.destination)
    out["destination"] = credentials == Credentials::shown ? wishes.destination->reveal()
                                                           : show_destination(*wishes.destination);
  if (wishes.mode) out["mode"] = json::write_value(*wishes.mode);
  if (wishes.max_fps) out["max_fps"] = *wishes.max_fps;
  if (!preferences.empty()) out["preferences"] = std::move(preferences);
  return out;
}

Result<std::map<StreamId, Wishes>> read_streams_file(const json::value& document) {
  if (!document.is_object())
    return Error{Errc::invalid, "bad_field", "the streams file must be a table of stream ids and their settings"};
  std::map<StreamId, Wishes> out;
  for (const auto& [name, entry] : document.get_object()) {
    auto id = read_stream_id(name);
    if (!id)
      return Error{Errc::invalid, "bad_field",
                   fmt::format("the streams file names a stream \"{}\": {}", std::string_view(name).substr(0, kNameMax),
                               id.error().message)};
    auto wishes = entry.is_null() ? Result<Wishes>(Wishes{}) : read_wishes(entry);
    out.emplace(*id, wishes ? *wishes : wrong(wishes.error().message));
  }
  return out;
}

Wishes wishes_of(const Query& query, bool destination_allowed) {
  Wishes out;
  for (const auto& [name, value] : query)
    if (std::string problem = take(out, name, value, destination_allowed); !problem.empty()) return wrong(problem);
  if (std::string problem = preferences_problem(out.preferences); !problem.empty())
    return wrong(fmt::format("preferences: {}", problem));
  return out;
}

Settings merge(const Wishes& from_operator, const Wishes& from_file, const Wishes& from_query) {
  auto unsafe = [](std::string_view whose, const Wishes& wishes) {
    return Settings{.problem = fmt::format("{} cannot be used: {}. The worker runs with defaults and nothing is "
                                           "forwarded until this is corrected.", whose, wishes.problem)};
  };
  if (!from_operator.problem.empty()) return unsafe("What the control plane says of this stream", from_operator);
  if (!from_file.problem.empty()) return unsafe("This stream's entry in the streams file", from_file);

  Settings out;
  bool wrong_query = !from_query.problem.empty();
  if (wrong_query)
    out.problem = fmt::format("The publisher's query string is ignored: {}.", from_query.problem);
  for (const Wishes* wishes : {&from_query, &from_file, &from_operator}) {
    if (wishes == &from_query && wrong_query) continue;
    if (wishes->forward) out.forward = *wishes->forward;
    if (wishes->destination) out.destination = *wishes->destination;
    if (wishes->mode) out.worker.mode = *wishes->mode;
    if (wishes->max_fps) out.worker.max_fps = *wishes->max_fps;
    for (const auto& [name, value] : wishes->preferences) out.worker.preferences[name] = value;
  }
  std::string problem = out.destination.empty() ? "" : destination_problem(out.destination);
  if (!problem.empty()) {
    out.destination = {};
    out.problem = fmt::format("The destination {}; nothing is forwarded until this is corrected.", problem);
  } else if (out.forward && out.destination.empty()) {
    out.problem = "Forwarding is switched on, but no destination is set; nothing is forwarded.";
  }
  out.forward = out.forward && !out.destination.empty();
  return out;
}

std::string show_destination(const Secret& destination) {
  if (destination.empty()) return "";
  auto to = forward::read_destination(destination);
  if (!to) return "***";
  bool v6 = to->host.find(':') != std::string::npos;
  std::string port = to->port == (to->tls ? 443 : 1935) ? "" : fmt::format(":{}", to->port);
  return fmt::format("{}://{}{}{}{}/{}/***", to->tls ? "rtmps" : "rtmp", v6 ? "[" : "", to->host, v6 ? "]" : "", port,
                     to->app);
}

}  // namespace weir::stream
