#include "exit_record.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>

namespace weir::keeper {

bool write_exit_record(const Task& task, int code, Micros when) {
  char path[PATH_MAX], fresh[PATH_MAX], text[96];
  int length = std::snprintf(fresh, sizeof fresh, "%s/%s.exit.new", task.folder, task.nonce);
  if (length < 0 || static_cast<size_t>(length) >= sizeof fresh) {
    errno = ENAMETOOLONG;
    return false;
  }
  std::snprintf(path, sizeof path, "%.*s", length - 4, fresh);
  int size = std::snprintf(text, sizeof text, "{\"code\":%d,\"ended_us\":%lld}\n", code,
                           static_cast<long long>(when.count()));
  int file = ::open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return false;
  bool written = ::write(file, text, static_cast<size_t>(size)) == size && ::fsync(file) == 0;
  ::close(file);
  if (!written || ::rename(fresh, path) != 0) return false;
  int folder = ::open(task.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return false;
  ::fsync(folder);
  ::close(folder);
  return true;
}

}  // namespace weir::keeper
