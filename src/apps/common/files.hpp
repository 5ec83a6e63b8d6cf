// Files that commands read and write whole. Plain functions; any thread.
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/settings.hpp"

#include <string>
#include <string_view>

namespace weir::apps {

inline constexpr std::string_view kFileFailed = "file";  // the reason of all errors about them

// "-" is standard input. Fails on anything larger than `bytes_max`, and names the path.
Result<std::string> read_file(const std::string& path, size_t bytes_max);
// Without the blanks and line ends around it: what a file with one value holds.
std::string trimmed(std::string_view text);
// Another text once the file was written or replaced, "" where there is none.
std::string file_state(const std::string& path);
// Written beside and renamed, so that a reader never sees half of it.
Status write_file(const std::string& path, std::string_view text, unsigned mode);
// Creates the folder (0700) and those above it where they are missing.
Status make_private_folder(const std::string& path);
// Where a runner's workers spool. What is above the default one is made; the folder itself is the spool's.
Result<std::string> spool_folder(const Settings& settings);

}  // namespace weir::apps
