#include "logging.hpp"

#include "files.hpp"

#include "weir/base/log.hpp"

#include <unistd.h>

namespace weir::apps {

Status configure_logging(const Settings& settings) {
  std::string folder = settings.text("log_dir");
  if (!folder.empty()) {
    TRY(made, make_private_folder(folder));
  }
  log::configure({.level = *log::parse_level(settings.text("log_level")), .readable = ::isatty(2) == 1, .dir = folder});
  return ok();
}

}  // namespace weir::apps
