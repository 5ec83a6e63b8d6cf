#include "weir/camsim/profile.hpp"

namespace weir::camsim {

Result<Profile> parse_profile(std::string_view text, const Profile& base) {
  json::object all = json::write_value(base).as_object();
  while (!text.empty()) {
    std::string_view pair = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), pair.size() + 1));
    size_t equals = pair.find('=');
    if (equals == std::string_view::npos)
      return Error{Errc::invalid, "bad_profile", fmt::format("profile: \"{}\" must look like name=value", pair)};
    // A number or boolean is what JSON says it is; anything else is a name.
    auto value = json::parse_text(pair.substr(equals + 1));
    all[pair.substr(0, equals)] = value ? *value : json::value(pair.substr(equals + 1));
  }
  return json::read<Profile>(all, json::Unknown::reject);
}

std::string to_text(const Profile& profile) {
  std::string out;
  json::value all = json::write_value(profile);
  for (const auto& [name, value] : all.as_object()) {
    std::string text = value.is_string() ? std::string(value.get_string()) : json::to_text(value);
    out += fmt::format("{}{}={}", out.empty() ? "" : ",", std::string_view(name), text);
  }
  return out;
}

}  // namespace weir::camsim
