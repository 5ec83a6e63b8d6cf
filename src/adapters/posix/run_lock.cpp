#include "weir/posix/run_lock.hpp"

#include "weir/base/json.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <fstream>

namespace weir::posix {

namespace {

constexpr int kFirstNumber = 10;

Error cannot(std::string_view what, const std::string& path) {
  return {Errc::unavailable, "run_lock", fmt::format("cannot {} {}: {}", what, path, std::strerror(errno))};
}

std::string kernel_boot() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

std::string text_of(const json::object& o, std::string_view name) {
  const json::value* found = o.if_contains(name);
  return found != nullptr && found->is_string() ? std::string(found->get_string()) : std::string();
}

std::optional<Testament> read_testament(int fd, const std::string& identity) {
  std::array<char, 8192> bytes{};
  ssize_t got = ::pread(fd, bytes.data(), bytes.size(), 0);
  auto parsed = json::parse_text(std::string_view(bytes.data(), got > 0 ? static_cast<size_t>(got) : 0));
  if (!parsed || !parsed->is_object()) return std::nullopt;
  const json::object& said = parsed->get_object();
  if (identity.empty() || text_of(said, "identity") != identity) return std::nullopt;
  Testament out{RunnerId::trusted(text_of(said, "runner_id")), BootId::trusted(text_of(said, "boot_id")),
                Secret(text_of(said, "will"))};
  if (out.runner.empty() || out.boot.empty() || out.will.empty()) return std::nullopt;
  return out;
}

}  // namespace

Result<RunLock> RunLock::take(const std::string& path) {
  int opened = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (opened < 0) return cannot("open", path);
  // The one descriptor that children inherit on purpose: out of the way of those that they are given by number.
  int fd = ::fcntl(opened, F_DUPFD, kFirstNumber);
  ::close(opened);
  if (fd < 0) return cannot("open", path);
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    bool held = errno == EWOULDBLOCK;
    ::close(fd);
    if (!held) return cannot("lock", path);
    return Error{Errc::conflict, "already_running",
                 fmt::format("{} is locked: a runner, or a worker of one, still runs there; stop it, or give another "
                             "--state-dir", path)};
  }
  struct stat about {};
  std::string boot = kernel_boot();
  if (::fstat(fd, &about) != 0) boot.clear();
  RunLock lock(fd, boot.empty() ? "" : fmt::format("{} {} {}", boot, about.st_dev, about.st_ino));
  lock.left_behind_ = read_testament(fd, lock.identity_);
  return lock;
}

RunLock::RunLock(RunLock&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), identity_(std::move(other.identity_)), left_behind_(std::move(other.left_behind_)) {}

RunLock::~RunLock() {
  if (fd_ >= 0) ::close(fd_);
}

Status RunLock::store(const std::string& text) {
  bool written = ::ftruncate(fd_, 0) == 0 && ::pwrite(fd_, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()) &&
                 ::fdatasync(fd_) == 0;
  if (!written) return cannot("write", "runner.lock");
  return ok();
}

Status RunLock::write(const Testament& testament) {
  json::object said{{"identity", identity_},
                    {"runner_id", testament.runner.str()},
                    {"boot_id", testament.boot.str()},
                    {"will", testament.will.reveal()}};
  return store(json::to_text(said));
}

Status RunLock::clear() { return store(""); }

}  // namespace weir::posix
