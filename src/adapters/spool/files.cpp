#include "files.hpp"

#include <fmt/format.h>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace weir::spool {

// Unlocked first: a child that was forked a moment ago may have the descriptor too, and the lock would live on with it.
Fd::~Fd() {
  if (number_ < 0) return;
  ::flock(number_, LOCK_UN);
  ::close(number_);
}

Error disk_error(std::string_view doing, int code) {
  return {Errc::unavailable, "disk", fmt::format("the spool cannot {}: {}", doing, std::strerror(code))};
}

bool lacks(int code) { return code == EMFILE || code == ENFILE || code == ENOMEM; }

Result<Fd> lock_folder(const std::string& path, bool make) {
  for (;;) {
    if (make && ::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return disk_error("make a folder", errno);
    Fd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!folder && errno == ENOENT && make) continue;
    if (!folder && errno == ENOENT) return Error{Errc::not_found, "no_spool", "nothing is spooled there"};
    if (!folder) return disk_error("open a folder", errno);
    if (::flock(folder.get(), LOCK_EX | LOCK_NB) != 0)
      return Error{Errc::conflict, "spool_in_use", "another process writes this spool"};
    // Between opening and locking, the one who had it may have removed or renamed it.
    struct stat locked {
    }, there{};
    if (::fstat(folder.get(), &locked) == 0 && ::stat(path.c_str(), &there) == 0 && locked.st_ino == there.st_ino)
      return folder;
  }
}

Result<std::vector<std::string>> names_in(int folder) {
  std::vector<std::string> names;
  // A descriptor of its own: the position in the listing belongs to the open file.
  int own = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* listing = own >= 0 ? ::fdopendir(own) : nullptr;
  if (listing == nullptr) {
    Error error = disk_error("list a folder", errno);
    if (own >= 0) ::close(own);
    return error;
  }
  while (const dirent* entry = ::readdir(listing))
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  ::closedir(listing);
  return names;
}

std::string read_small(int folder, const std::string& name) {
  Fd file(::openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  std::string text(4096, '\0');
  ssize_t got = file ? ::read(file.get(), text.data(), text.size()) : 0;
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return text;
}

Status replace_small(int folder, const std::string& name, std::string_view text) {
  std::string fresh = name + ".new";
  Fd file(::openat(folder, fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return disk_error("make a file", errno);
  if (int code = write_all(file.get(), text); code != 0) return disk_error("write a file", code);
  if (::renameat(folder, fresh.c_str(), folder, name.c_str()) != 0) return disk_error("rename a file", errno);
  return ok();
}

int write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t wrote = ::write(file, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return wrote < 0 ? errno : EIO;
    bytes.remove_prefix(static_cast<size_t>(wrote));
  }
  return 0;
}

void remove_folder(int folder, const std::string& path) {
  // The name goes last: what is left by a process that is killed in the middle can still be found and removed.
  auto names = names_in(folder);
  if (!names) return;
  for (const std::string& name : *names)
    if (name != kName) ::unlinkat(folder, name.c_str(), 0);
  ::unlinkat(folder, kName, 0);
  ::rmdir(path.c_str());
}

}  // namespace weir::spool
