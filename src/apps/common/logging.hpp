// How the programs log. Plain functions; main thread only.
#pragma once

#include "weir/base/settings.hpp"

namespace weir::apps {

struct LogFile {
  std::string folder;               // empty: no file
  std::string name = "weir.log";
  std::int64_t bytes_max = 0;       // 0: no bound
  std::string path() const { return folder + "/" + name; }
};
// weir.log in log_dir.
LogFile log_file(const Settings& settings);

// Logs to stderr: readable on a terminal, JSON elsewhere. Where the file takes nothing, says so and goes on: a
// program that a supervisor starts again must run even where a disk is full.
Status configure_logging(const Settings& settings, const LogFile& file);
inline Status configure_logging(const Settings& settings) { return configure_logging(settings, log_file(settings)); }
// An error where that file cannot be written: for a person at a terminal, who can name another folder.
Status check_log_file(const LogFile& file);

}  // namespace weir::apps
