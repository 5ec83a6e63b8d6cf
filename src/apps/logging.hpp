// How the programs log. Plain functions; main thread only.
#pragma once

#include "weir/base/settings.hpp"

namespace weir::apps {

// Logs to stderr: readable on a terminal, JSON elsewhere. Where the file in log_dir takes nothing, says so and goes on:
// nothing that is started again by a supervisor stays away because of a disk.
Status configure_logging(const Settings& settings);
// An error where that file takes nothing: for whoever sits before a screen, and can name another folder.
Status check_log_file(const Settings& settings);

}  // namespace weir::apps
