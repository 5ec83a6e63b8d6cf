// A shared library that is loaded while the program runs, for what not every machine has.
//
// It stays loaded for the rest of the process's life: inference libraries do not survive being unloaded. Failures are
// sentences for a person. Blocks while the loader reads the disk; any thread.
#pragma once

#include "weir/base/result.hpp"

#include <string>

namespace weir {

// `path` may also be a name that the loader finds.
Result<void*> load_library(const std::string& path);
Result<void*> find_symbol(void* library, const char* name);

}  // namespace weir
