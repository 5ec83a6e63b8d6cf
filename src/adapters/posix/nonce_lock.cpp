#include "nonce_lock.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cerrno>
#include <charconv>
#include <filesystem>

namespace weir::posix {

namespace fs = std::filesystem;

Result<Descriptor> NonceLock::make(const std::string& path) {
  Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  Descriptor given = lifted(file);
  if (given.get() < 0 || ::flock(given.get(), LOCK_EX | LOCK_NB) != 0) return cannot("make and lock", path);
  return given;
}

// A shared lock excludes nobody else who looks.
bool NonceLock::held() const {
  Descriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  return file.get() >= 0 && ::flock(file.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

bool NonceLock::held_by(int pid) const {
  struct stat wanted {}, open {};
  if (::stat(path_.c_str(), &wanted) != 0) return false;
  std::error_code failed;
  fs::directory_iterator each(fmt::format("/proc/{}/fd", pid), failed), end;
  for (; !failed && each != end; each.increment(failed)) {
    bool there = ::stat(each->path().c_str(), &open) == 0;
    if (there && open.st_dev == wanted.st_dev && open.st_ino == wanted.st_ino) return true;
  }
  return false;
}

void NonceLock::signal_holders(int number) const {
  std::error_code failed;
  for (fs::directory_iterator each("/proc", failed), end; !failed && each != end; each.increment(failed)) {
    std::string name = each->path().filename().string();
    int pid = 0;
    auto [rest, wrong] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (wrong != std::errc() || *rest != '\0' || pid == ::getpid() || !held_by(pid)) continue;
    // First the descriptor, then another look: as long as that process has not ended, nobody else has its number.
    Descriptor process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    if (process.get() >= 0 && held_by(pid)) ::syscall(SYS_pidfd_send_signal, process.get(), number, nullptr, 0);
  }
}

}  // namespace weir::posix
