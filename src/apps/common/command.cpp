#include "command.hpp"

#include "files.hpp"
#include "manager_document.hpp"
#include "words.hpp"

#include "weir/base/log.hpp"
#include "weir/settings/all_settings.hpp"

#include <fmt/ranges.h>

#include <cstdlib>

namespace weir::apps {

std::string Arguments::text(std::string_view name) const {
  auto found = given_.find(name);
  return found == given_.end() ? std::string() : found->second;
}

std::vector<std::string> Arguments::list(std::string_view name) const {
  auto found = lists_.find(name);
  return found == lists_.end() ? std::vector<std::string>() : found->second;
}

Result<std::optional<double>> Arguments::number(std::string_view name) const {
  if (!has(name)) return std::optional<double>();
  std::optional<double> parsed = number_in(text(name));
  if (!parsed) return usage_error(fmt::format("--{} must be a number", name));
  return parsed;
}

Result<Settings> Arguments::settings() const {
  Settings::Sources sources{.flags = flags_, .environment = [](const char* name) { return std::getenv(name); }};
  if (config_file_) {
    TRY(text, read_file(*config_file_, 1 << 20));
    auto document = read_manager_document(text);
    if (document && !document->unused.empty())
      log::info("settings.unused",
                fmt::format("{}: accepted and not used here: {}", *config_file_, fmt::join(document->unused, ", ")));
    sources.yaml = document ? std::move(document->settings) : std::move(text);
    sources.yaml_name = *config_file_;
  }
  return Settings::load(all_settings(), sources);
}

std::string_view default_of(const Command& command, const SettingSpec& spec) {
  for (const auto& [name, value] : command.defaults)
    if (name == spec.name) return value;
  return spec.fallback;
}

Error usage_error(std::string message) { return Error{Errc::invalid, "usage", std::move(message)}; }

int exit_code(const Error& error) {
  bool usage = error.reason == "usage" || error.reason == "bad_setting" || error.reason == "unknown_setting" ||
               error.reason == "bad_settings_file";
  return usage ? 2 : 1;
}

}  // namespace weir::apps
