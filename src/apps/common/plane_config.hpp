// How a service of this program speaks with its control plane: with the token of a file, else an API key, else a token
// that it signs itself with the installation's key, where it shares the machine. Plain function; any thread.
#pragma once

#include "weir/base/settings.hpp"
#include "weir/http_plane/plane_talk.hpp"

namespace weir::apps {

// `token_file`: "" where none was named.
Result<http_plane::Config> plane_config(const Settings& settings, const RunnerId& id, const std::string& token_file);

}  // namespace weir::apps
