#include "logging.hpp"

#include "files.hpp"

#include "weir/base/log.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace weir::apps {

Status check_log_file(const Settings& settings) {
  std::string folder = settings.text("log_dir"), path = folder + "/weir.log";
  if (folder.empty()) return ok();
  TRY(made, make_private_folder(folder));
  int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
  if (file < 0)
    return Error{Errc::unavailable, "bad_setting", fmt::format("cannot write {}: {}", path, std::strerror(errno))};
  ::close(file);
  return ok();
}

Status configure_logging(const Settings& settings) {
  Status file = check_log_file(settings);
  if (!file && file.error().reason != "bad_setting") return file;
  log::configure({.level = *log::parse_level(settings.text("log_level")),
                  .readable = ::isatty(2) == 1,
                  .dir = settings.text("log_dir")});
  if (!file) log::warn("log.no_file", file.error().message);
  return ok();
}

}  // namespace weir::apps
