// The files of an embedded store: the lock that keeps a second process out, and the mode that keeps others from
// reading. Private to this folder. A FolderLock belongs to one thread.
#pragma once

#include "weir/base/result.hpp"

#include <string>
#include <utility>

namespace weir::sqlite {

// Held for the life of the store. The kernel lets go of it when the process dies, however it dies.
class FolderLock {
 public:
  static Result<FolderLock> take(const std::string& db_path);
  FolderLock() = default;
  FolderLock(FolderLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FolderLock& operator=(FolderLock&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FolderLock();

 private:
  explicit FolderLock(int fd) : fd_(fd) {}
  int fd_ = -1;
};

// Makes the file where it is missing. It holds camera credentials; so do those that SQLite puts beside it, which get
// its mode when they are made.
Status make_private(const std::string& path);

}  // namespace weir::sqlite
