// Fd and Folder: descriptors that close themselves, and a folder that one process at a time may have.
//
// The lock is on the folder itself, so it goes with it when it is renamed and ends with the process.
// Blocks on the disk; one thread an object.
#pragma once

#include "weir/base/result.hpp"

#include <string>
#include <utility>
#include <vector>

namespace weir::spool {

class Fd {
 public:
  explicit Fd(int number = -1) : number_(number) {}
  Fd(Fd&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Fd();
  int get() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }

 private:
  int number_;
};

// An error of the system's: class unavailable, reason "disk".
Error disk_error(std::string_view doing, int code);

// Whether the error means that the process lacks something, a descriptor most often, and nothing is wrong with the
// disk.
bool lacks(int code);

// Opens and locks the folder. not_found: there is none (and it was not to be made); conflict: somebody has it.
Result<Fd> lock_folder(const std::string& path, bool make);

inline constexpr const char* kName = "name";  // of the file that says whose folder it is

Result<std::vector<std::string>> names_in(int folder);
std::string read_small(int folder, const std::string& name);
// Replaces the file as a whole or not at all.
Status replace_small(int folder, const std::string& name, std::string_view text);
// 0, or the error's number. A short write is an error like any other.
int write_all(int file, std::string_view bytes);
// Removes the folder and its files, as far as the disk allows it.
void remove_folder(int folder, const std::string& path);

}  // namespace weir::spool
