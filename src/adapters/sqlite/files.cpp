#include "files.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace weir::sqlite {

Result<FolderLock> FolderLock::take(const std::string& db_path) {
  std::string path = db_path + ".lock";
  int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return Error{Errc::unavailable, "state_dir", fmt::format("cannot open {}: {}", path, strerror(errno))};
  FolderLock lock(fd);
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    char pid[32] = {};
    ssize_t got = ::pread(fd, pid, sizeof pid - 1, 0);
    std::string who = got > 0 ? fmt::format(" (process {})", std::string_view(pid, static_cast<size_t>(got))) : "";
    return Error{Errc::conflict, "store_locked", fmt::format("{} is in use by another control plane{}", db_path, who)};
  }
  std::string pid = std::to_string(::getpid());
  if (::ftruncate(fd, 0) != 0 || ::pwrite(fd, pid.data(), pid.size(), 0) < 0)
    return Error{Errc::unavailable, "state_dir", fmt::format("cannot write {}: {}", path, strerror(errno))};
  return lock;
}

FolderLock::~FolderLock() {
  if (fd_ >= 0) ::close(fd_);
}

Status make_private(const std::string& path) {
  int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  bool made = fd >= 0 && ::fchmod(fd, 0600) == 0;
  std::string why = strerror(errno);
  if (fd >= 0) ::close(fd);
  if (made) return ok();
  return Error{Errc::unavailable, "store_unavailable", fmt::format("cannot open {}: {}", path, why)};
}

}  // namespace weir::sqlite
