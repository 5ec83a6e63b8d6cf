#include "settings_watch.hpp"

#include "files.hpp"

#include "weir/base/log.hpp"
#include "weir/settings/all_settings.hpp"

#include <algorithm>

namespace weir::apps {

namespace {

constexpr std::chrono::seconds kLookEvery{2};

bool differs(const Settings& a, const Settings& b, const SettingSpec& spec) {
  if (spec.kind == SettingKind::secret) return a.secret(spec.name) != b.secret(spec.name);
  return a.shown(spec) != b.shown(spec);
}

}  // namespace

SettingsWatch::SettingsWatch(boost::asio::io_context& io, const Arguments& arguments, Settings current,
                             std::vector<std::string_view> live, Apply apply)
    : arguments_(arguments),
      started_(current),
      current_(std::move(current)),
      live_(std::move(live)),
      apply_(std::move(apply)),
      seen_(state_of_file()),
      timer_(io) {}

std::string SettingsWatch::state_of_file() const {
  return arguments_.config_file() ? file_state(*arguments_.config_file()) : "";
}

void SettingsWatch::start() {
  if (arguments_.config_file()) look();
}

void SettingsWatch::look() {
  timer_.expires_after(kLookEvery);
  timer_.async_wait([this](const boost::system::error_code& cancelled) {
    if (cancelled || stopped_) return;
    // A file that is gone is being replaced; what was read of it stays.
    if (std::string now = state_of_file(); !now.empty() && now != seen_) read_again();
    look();
  });
}

// A look that was due in this moment is not cancelled any more.
void SettingsWatch::stop() {
  stopped_ = true;
  timer_.cancel();
}

void SettingsWatch::read_again() {
  seen_ = state_of_file();
  auto fresh = arguments_.settings();
  if (!fresh) {
    log::warn("settings.refused", fresh.error().message);
    return;
  }
  std::vector<std::string_view> took_effect, waiting;
  for (const SettingSpec& spec : all_settings()) {
    bool live = spec.name == "log_level" || std::ranges::find(live_, spec.name) != live_.end();
    if (differs(*fresh, live ? current_ : started_, spec))
      (live ? took_effect : waiting).push_back(spec.name);
  }
  if (Status applied = apply_ ? apply_(*fresh) : ok(); !applied) {
    log::warn("settings.refused", applied.error().message);
    return;
  }
  log::Level level = *log::parse_level(fresh->text("log_level"));
  // The change is logged at the more talkative of the two levels: a change to "warn" is still announced.
  if (!log::enabled(log::Level::info)) log::set_level(level);
  log::info("settings.reloaded", took_effect.empty() ? "nothing that takes effect at once has changed" : "")
      .with("took_effect", fmt::format("{}", fmt::join(took_effect, ", ")))
      .with("needs_restart", fmt::format("{}", fmt::join(waiting, ", ")))
      .with("log_level", fresh->text("log_level"));
  log::set_level(level);
  current_ = std::move(*fresh);
}

}  // namespace weir::apps
