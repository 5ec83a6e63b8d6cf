#include "stream_wishes.hpp"

#include "common/command.hpp"
#include "common/words.hpp"

#include "weir/stream/settings.hpp"

namespace weir::apps {

namespace {

constexpr std::string_view kPreference = "pref.";

Error no_such_wish(const std::string& key) {
  const std::vector<std::string> all = {"forward", "destination", "mode", "max_fps"};
  std::vector<std::string> meant = nearest(key, all);
  return usage_error(fmt::format("a stream has no wish \"{}\"{}; there are: {}, pref.NAME", key,
                                 meant.empty() ? "" : fmt::format(" (the nearest: {})", fmt::join(meant, ", ")),
                                 fmt::join(all, ", ")));
}

Result<json::value> wish_value(const std::string& key, const std::string& text) {
  if (key == "forward") {
    bool on = text == "true" || text == "on", off = text == "false" || text == "off";
    return on || off ? Result<json::value>(json::value(on)) : usage_error("forward must be true or false");
  }
  if (key == "max_fps") {
    std::optional<double> number = number_in(text);
    return number ? Result<json::value>(json::value(*number)) : usage_error("max_fps must be a number");
  }
  return json::value(text);
}

Status change(json::object& wishes, const std::string& key, const std::string& text) {
  if (text.empty()) {
    wishes.stable_erase(key);
    return ok();
  }
  TRY(value, wish_value(key, text));
  wishes[key] = std::move(value);
  return ok();
}

void change_preference(json::object& wishes, const std::string& name, const std::string& text) {
  json::value& all = wishes["preferences"];
  if (!all.is_object()) all = json::object();
  if (text.empty()) all.get_object().stable_erase(name);
  else all.get_object()[name] = text;
  if (all.get_object().empty()) wishes.stable_erase("preferences");
}

std::string text_in(const json::object& object, std::string_view name) {
  const json::value* found = object.if_contains(name);
  return found != nullptr && found->is_string() ? std::string(found->get_string()) : std::string();
}

}  // namespace

Result<json::object> changed_wishes(json::object present, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0)
      return usage_error("every change must be KEY=VALUE, such as forward=true; see weir stream set --help");
    std::string key = word.substr(0, equals), text = word.substr(equals + 1);
    if (key.starts_with(kPreference) && key.size() > kPreference.size()) {
      change_preference(present, key.substr(kPreference.size()), text);
      continue;
    }
    if (key != "forward" && key != "destination" && key != "mode" && key != "max_fps") return no_such_wish(key);
    TRY(changed, change(present, key, text));
  }
  return present;
}

json::value without_stream_key(json::value stream) {
  json::object* wishes = nullptr;
  if (stream.is_object())
    if (json::value* found = stream.get_object().if_contains("wishes")) wishes = found->if_object();
  json::value* destination = wishes != nullptr ? wishes->if_contains("destination") : nullptr;
  if (destination != nullptr && destination->is_string())
    *destination = stream::show_destination(Secret(std::string(destination->get_string())));
  return stream;
}

std::string stream_problem(const json::value& stream) {
  if (!stream.is_object()) return "";
  const json::object& said = stream.get_object();
  if (text_in(said, "state") == "unattended") return "nobody serves it: its orchestrator fell silent or lost its lease";
  const json::value* holder = said.if_contains("holder");
  if (holder == nullptr || holder->is_null()) return "";  // what went wrong before is over
  for (const char* why : {"degraded", "settings_problem"})
    if (std::string problem = text_in(said, why); !problem.empty()) return problem;
  for (auto [name, why] : {std::pair("lease", "blocked"), {"worker", "problem"}, {"forward", "problem"}}) {
    const json::value* part = said.if_contains(name);
    if (part == nullptr || !part->is_object()) continue;
    // A process that runs again is no problem any more.
    if (std::string problem = text_in(part->get_object(), why); !problem.empty() && text_in(part->get_object(), "state") != "running")
      return problem;
  }
  return "";
}

}  // namespace weir::apps
