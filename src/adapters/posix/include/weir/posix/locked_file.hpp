// LockedFile: a file that one process at a time has, and the text in it.
//
// The lock belongs to the open file. Where children may inherit it, it is free only when all of them are gone; where
// none may, it is free when this process is. The identity tells the file from a copy of it. Main thread only.
#pragma once

#include "weir/base/result.hpp"

#include <string>

namespace weir::posix {

enum class Heirs { children, nobody };

class LockedFile {
 public:
  // An error of class `conflict` with the message `taken` while another process holds it.
  static Result<LockedFile> take(const std::string& path, Heirs heirs, std::string taken);
  LockedFile(LockedFile&& other) noexcept;
  LockedFile& operator=(LockedFile&&) = delete;
  ~LockedFile();

  // Device and inode; "" where the kernel does not tell.
  std::string identity() const;
  std::string text() const;
  // The text is on the disk when this returns. Not atomic: a machine that fails meanwhile leaves a part of it.
  Status store(const std::string& text);

 private:
  LockedFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  int fd_;
  std::string path_;
};

}  // namespace weir::posix
