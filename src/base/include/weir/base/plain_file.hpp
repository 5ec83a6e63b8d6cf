// A plain file, read whole: not a folder, not a pipe that never ends, and not larger than the reader is ready for.
// Failures name the path. Blocks for as long as the disk does; any thread.
#pragma once

#include "weir/base/result.hpp"

#include <cstdint>
#include <string>

namespace weir {

// An empty file is a failure, too.
Result<std::string> read_plain_file(const std::string& path, std::uintmax_t bytes_max);

}  // namespace weir
