#include "logging.hpp"

#include "files.hpp"

#include "weir/base/log.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace weir::apps {

LogFile log_file(const Settings& settings) { return {.folder = settings.text("log_dir")}; }

Status check_log_file(const LogFile& file) {
  if (file.folder.empty()) return ok();
  TRY(made, make_private_folder(file.folder));
  int opened = ::open(file.path().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
  if (opened < 0)
    return Error{Errc::unavailable, "bad_setting", fmt::format("cannot write {}: {}", file.path(), std::strerror(errno))};
  ::close(opened);
  return ok();
}

Status configure_logging(const Settings& settings, const LogFile& file) {
  Status writable = check_log_file(file);
  if (!writable && writable.error().reason != "bad_setting") return writable;
  log::configure({.level = *log::parse_level(settings.text("log_level")),
                  .readable = ::isatty(2) == 1,
                  .file = file.folder.empty() ? "" : file.path(),
                  .file_bytes_max = file.bytes_max});
  if (!writable) log::warn("log.no_file", writable.error().message);
  return ok();
}

}  // namespace weir::apps
