#include "camera_keys.hpp"

#include "common/command.hpp"
#include "common/words.hpp"

#include "weir/camera/config.hpp"

#include <algorithm>
#include <ranges>

namespace weir::apps {

namespace {

// A camera of which everything is said, so that every field is seen with its kind of value.
const json::object& full_camera() {
  static const json::object full = [] {
    camera::Config c;
    c.rtsp_url = Secret("rtsp://camera.example/");
    c.substream_url = Secret("rtsp://camera.example/");
    c.processing = camera::Processing::cluster;
    c.allow_labels.emplace();
    c.max_sessions = 1;
    c.frame_size.emplace();
    c.crop.emplace();
    c.snapshot = camera::Snapshot{.url = Secret("http://camera.example/")};
    json::object out = camera::write_config(c, camera::Credentials::shown);
    for (const char* other : {"camera_uuid", "tenant_id", "site_id", "zones"}) out.stable_erase(other);
    return out;
  }();
  return full;
}

// The field a key names, as a full camera has it; none where it names no field.
const json::value* field_of(std::string_view key) {
  const json::value* found = full_camera().if_contains(key.substr(0, key.find('.')));
  if (size_t dot = key.find('.'); found != nullptr && dot != std::string_view::npos)
    found = found->is_object() ? found->get_object().if_contains(key.substr(dot + 1)) : nullptr;
  return found;
}

Error no_such_key(const std::string& key) {
  if (key == "zones") return usage_error("zones are changed one by one: weir zone add, weir zone remove");
  if (key == "camera_uuid" || key == "tenant_id" || key == "site_id")
    return usage_error(fmt::format("{} of a camera cannot change: remove the camera and add it anew", key));
  std::vector<std::string> all = camera_keys(), meant = nearest(key, all);
  return usage_error(fmt::format("a camera has no field \"{}\"{}; there are: {}", key,
                                 meant.empty() ? "" : fmt::format(" (the nearest: {})", fmt::join(meant, ", ")),
                                 fmt::join(all, ", ")));
}

Result<json::value> value_for(const std::string& key, const json::value& kind, const std::string& text) {
  if (text.empty()) return json::value(nullptr);
  if (kind.is_object())
    return usage_error(fmt::format("{0} has fields of its own: {0}.{1}; only {0}= (the default again) stands alone", key,
                                   fmt::join(camera_keys() | std::views::filter([&](const std::string& each) {
                                     return each.starts_with(key + ".");
                                   }) | std::views::transform([&](const std::string& each) { return each.substr(key.size() + 1); }),
                                   fmt::format(", {}.", key))));
  if (kind.is_bool()) {
    if (text != "true" && text != "false") return usage_error(fmt::format("{} must be true or false", key));
    return json::value(text == "true");
  }
  if (kind.is_number()) {
    std::optional<double> number = number_in(text);
    if (!number) return usage_error(fmt::format("{} must be a number", key));
    auto whole = static_cast<std::int64_t>(std::clamp(*number, -9e15, 9e15));
    return static_cast<double>(whole) == *number ? json::value(whole) : json::value(*number);
  }
  if (!kind.is_array()) return json::value(text);
  json::array items;
  for (std::string& word : split_words(text, ",")) items.push_back(json::value(std::move(word)));
  return json::value(std::move(items));
}

}  // namespace

std::vector<std::string> camera_keys() {
  std::vector<std::string> keys;
  for (const auto& member : full_camera()) {
    if (!member.value().is_object()) keys.emplace_back(member.key());
    else
      for (const auto& inner : member.value().get_object())
        keys.push_back(fmt::format("{}.{}", std::string_view(member.key()), std::string_view(inner.key())));
  }
  return keys;
}

bool needs_present(const std::vector<std::string>& words) {
  return std::ranges::any_of(words, [](const std::string& word) { return word.find('.') < word.find('='); });
}

Result<json::object> camera_changes(const json::object& present, const std::vector<std::string>& words) {
  json::object body;
  for (const std::string& word : words) {
    size_t equals = word.find('=');
    if (equals == std::string::npos)
      return usage_error(fmt::format("\"{}\" is not KEY=VALUE, such as max_fps=4", redact_url(word)));
    std::string key = word.substr(0, equals);
    const json::value* kind = field_of(key);
    if (kind == nullptr) return no_such_key(key);
    TRY(value, value_for(key, *kind, word.substr(equals + 1)));
    std::string outer = key.substr(0, key.find('.'));
    if (outer == key) {
      body[key] = std::move(value);
      continue;
    }
    if (!body.contains(outer)) {
      const json::value* whole = present.if_contains(outer);
      body[outer] = whole != nullptr && whole->is_object() ? *whole : json::value(json::object());
    }
    if (!body[outer].is_object()) body[outer] = json::object();  // `model= model.name=x`: the default, and then this
    body[outer].get_object()[key.substr(outer.size() + 1)] = std::move(value);
  }
  return body;
}

}  // namespace weir::apps
