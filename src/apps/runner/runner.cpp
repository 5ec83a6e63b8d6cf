#include "runner.hpp"

#include "common/files.hpp"
#include "common/logging.hpp"
#include "common/print.hpp"
#include "runner_manager.hpp"
#include "runner_parent.hpp"

#include "weir/base/log.hpp"
#include "weir/settings/all_settings.hpp"

#include <algorithm>
#include <filesystem>

namespace weir::apps {

namespace {

// The manager reads these again, at its start and later, and its standard input is another one.
Status can_be_read_again(std::string_view option, const std::string& path) {
  constexpr std::string_view inputs[] = {"-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"};
  std::error_code unknown;
  bool passing = std::filesystem::exists(path, unknown) && !std::filesystem::is_regular_file(path, unknown);
  if (passing || std::ranges::find(inputs, path) != std::end(inputs))
    return usage_error(fmt::format("--{} {} is read again while the runner runs: give a file", option, path));
  return ok();
}

Result<int> runner(const Arguments& arguments) {
  TRY(config_stays, can_be_read_again("config", arguments.config_file().value_or("")));
  TRY(token_stays, can_be_read_again("token-file", arguments.text("token-file")));
  TRY(settings, arguments.settings());
  TRY(logging, configure_logging(settings));
  std::string state_dir = settings.text("state_dir");
  TRY(made, make_private_folder(state_dir));
  TRY(options, runner_options(settings, arguments.has("token-file") ? arguments.text("token-file") : ""));
  options.lifeline = arguments.has("lifeline");
  log::set_common("runner_id", options.runner.str());
  if (arguments.has("manager")) return run_manager(arguments, settings, std::move(options));
  return run_parent(settings, options);
}

}  // namespace

std::vector<std::string> passed_on(const Settings& from, std::string_view used_by) {
  std::vector<std::string> out;
  for (const SettingSpec& spec : all_settings()) {
    std::string users = fmt::format(" {} ", spec.used_by);
    // The environment is inherited; secrets never stand in arguments.
    std::string origin = from.origin(spec.name);
    bool given = origin.starts_with("flag") || origin.starts_with("file");
    if (!given || spec.kind == SettingKind::secret || users.find(fmt::format(" {} ", used_by)) == std::string::npos) continue;
    out.push_back(setting_flag(spec.name));
    out.push_back(from.shown(spec));
  }
  return out;
}

std::vector<Command> runner_commands() {
  return {{"runner",
           "Start a runner: it takes cameras and keeps one worker on each",
           "weir runner --control-plane-url http://10.0.0.2:8080   # API_KEY=wk_… in its environment\n"
           "weir runner --runner-id edge-1 --capacity-streams 24 --state-dir /var/lib/weir",
           "runner",
           {{"token-file", "FILE", "A runner's token, instead of an API key; it is exchanged for fresh ones"},
            {"lifeline", "", "End when standard input ends, with the process that started it"},
            {"manager", "", "Internal: run as the manager below a `weir runner`"}},
           runner}};
}

}  // namespace weir::apps
