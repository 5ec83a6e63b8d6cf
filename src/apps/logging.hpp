// How the programs log. Plain function; main thread only.
#pragma once

#include "weir/base/settings.hpp"

namespace weir::apps {

// Logs to stderr: readable on a terminal, JSON elsewhere.
Status configure_logging(const Settings& settings);

}  // namespace weir::apps
