// FileSpool: the spool as folders of segment files under one folder that is the user's alone.
//
// Several processes may share the folder: each log is locked by the one that writes it. The bounds are those of one
// process. Names in the file system are hashes, because a camera's id is any text; the file `name` in each log tells
// what it is.
// What was appended survives the end of the process at once and a power failure after the next `flush`, which comes by
// itself after `group_bytes`. Blocks on the disk. One thread.
#pragma once

#include "weir/ports/spool.hpp"

#include <memory>

namespace weir::spool {

// The defaults hold 300 s of 40 cameras with 6 events/s of 1 KB three times over.
struct Limits {
  std::uint64_t total_bytes = std::uint64_t{256} << 20;
  std::uint64_t camera_bytes = std::uint64_t{32} << 20;
  size_t segment_bytes = size_t{1} << 20;  // the least that is forgotten at once; smaller forgets finer, in more files
  size_t group_bytes = size_t{4} << 20;    // flushed without being asked after this much; smaller costs more waits
  friend bool operator==(const Limits&, const Limits&) = default;
};

// Makes the folder where it is missing.
Result<std::unique_ptr<Spool>> open_file_spool(std::string folder, Limits limits);

}  // namespace weir::spool
