#include "weir/ports/cameras.hpp"

namespace weir {

CameraRecord edited(const CameraRecord& present, camera::Config next, WallTime at) {
  camera::Config before = present.config;
  before.enabled = next.enabled;
  CameraRecord record = present;
  record.updated_at = at;
  if (camera::write_config(before, camera::Credentials::shown) !=
      camera::write_config(next, camera::Credentials::shown)) {
    // Later than the last one even where the clock was set back: the time names the configuration, and no name is
    // used twice.
    record.configured_at = std::max(at, present.configured_at + Duration(1));
    record.crashes = 0;
  }
  record.config = std::move(next);
  return record;
}

lease::Charge charge_of(const camera::Config& config) { return {config.assignable(), config.served_by()}; }

Result<KeptConfig> keep(const camera::Config& config) {
  std::string text = json::to_text(camera::write_config(config, camera::Credentials::shown));
  TRY(parsed, json::parse_text(text));
  TRY(read, camera::read_config(parsed));
  return KeptConfig{std::move(text), std::move(read)};
}

Result<camera::Config> read_kept(std::string_view text) {
  auto parsed = json::parse_text(text);
  auto config = parsed ? camera::read_config(*parsed) : Result<camera::Config>(parsed.error());
  if (config) return config;
  return Error{Errc::unprocessable, std::string(kBadStoredConfig),
               fmt::format("the stored configuration of this camera cannot be read: {}; remove it and add it again, or "
                           "use the version of Weir that wrote it", config.error().message)};
}

}  // namespace weir
