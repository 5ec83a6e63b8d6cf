#include "weir/posix/locked_file.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace weir::posix {

namespace {

constexpr int kFirstNumber = 10;

Error failure(std::string_view what, const std::string& path) {
  return {Errc::unavailable, "run_lock", fmt::format("cannot {} {}: {}", what, path, std::strerror(errno))};
}

}  // namespace

Result<LockedFile> LockedFile::take(const std::string& path, Heirs heirs, std::string taken) {
  int opened = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (opened < 0) return failure("open", path);
  // Children inherit it on purpose or not at all: it is out of the way of those that they are given by number.
  int fd = ::fcntl(opened, heirs == Heirs::children ? F_DUPFD : F_DUPFD_CLOEXEC, kFirstNumber);
  ::close(opened);
  if (fd < 0) return failure("open", path);
  LockedFile file(fd, path);
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return file;
  if (errno != EWOULDBLOCK) return failure("lock", path);
  return Error{Errc::conflict, "already_running", std::move(taken)};
}

LockedFile::LockedFile(LockedFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)) {}

LockedFile::~LockedFile() {
  if (fd_ >= 0) ::close(fd_);
}

std::string LockedFile::identity() const {
  struct stat about {};
  return ::fstat(fd_, &about) == 0 ? fmt::format("{} {}", about.st_dev, about.st_ino) : "";
}

std::string LockedFile::text() const {
  std::array<char, 8192> bytes{};
  ssize_t got = ::pread(fd_, bytes.data(), bytes.size(), 0);
  return {bytes.data(), got > 0 ? static_cast<size_t>(got) : 0};
}

Status LockedFile::store(const std::string& text) {
  bool written = ::ftruncate(fd_, 0) == 0 &&
                 ::pwrite(fd_, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()) &&
                 ::fdatasync(fd_) == 0;
  if (!written) return failure("write", path_);
  return ok();
}

}  // namespace weir::posix
