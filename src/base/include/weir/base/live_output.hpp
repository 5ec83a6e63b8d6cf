// LiveOutput: output of a program that must never wait for the reader of that output.
//
// A terminal stopped by Ctrl-S, a pager, a dead ssh session or a hung journal takes no more; a plain write would then
// wait for as long as that lasts, and leases with it. Here a text is taken as a whole, or dropped as a whole and
// counted; the next one that is taken is preceded by a note of how many lines are missing. The descriptor stays as it
// is: O_NONBLOCK would be shared with the shell and every other process that writes there. One thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace weir {

class LiveOutput {
 public:
  using Note = std::function<std::string(std::uint64_t lines)>;
  // Without `note` nothing is said about what was dropped. The descriptor is the caller's.
  explicit LiveOutput(int fd, Note note = {}) : fd_(fd), note_(std::move(note)) {}

  // `text` is whole lines. True where it was taken: it is written, or begun, and then its rest goes before anything
  // else. What the next text replaces anyway, such as a drawing, need not be counted. An empty text only writes what
  // is still due: the rest of the last text, and the note.
  bool write(std::string_view text, bool counted = true);

 private:
  int fd_;
  Note note_;
  std::string rest_ = {};
  std::uint64_t dropped_ = 0;
};

}  // namespace weir
