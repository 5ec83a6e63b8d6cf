#include "common/plane_config.hpp"

#include "common/api.hpp"
#include "common/files.hpp"

namespace weir::apps {

Result<http_plane::Config> plane_config(const Settings& settings, const RunnerId& id, const std::string& token_file) {
  http_plane::Config config{.url = settings.text("control_plane_url"), .runner = id,
                            .api_key = settings.secret("api_key"), .token_file = token_file,
                            .ca_file = settings.text("control_plane_ca_file")};
  if (!token_file.empty()) {
    TRY(token, read_file(token_file, 16 << 10));
    config.token = Secret(trimmed(token));
  } else if (config.api_key.empty()) {
    TRY(key, net::TokenKey::load_or_create(secret_file(settings)));
    config.key = key;
  }
  return config;
}

}  // namespace weir::apps
