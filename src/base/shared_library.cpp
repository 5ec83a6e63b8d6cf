#include "weir/base/shared_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

namespace weir {

namespace {
Error failure(std::string sentence) { return {Errc::unavailable, "library", std::move(sentence)}; }
}  // namespace

Result<void*> load_library(const std::string& path) {
  if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  const char* why = dlerror();
  return failure(fmt::format("the library {} cannot be loaded: {}", path, why != nullptr ? why : "unknown"));
}

Result<void*> find_symbol(void* library, const char* name) {
  if (void* found = dlsym(library, name)) return found;
  return failure(fmt::format("the library lacks {}: it is of another kind or version", name));
}

}  // namespace weir
