// Foreign parts that tools/parts fetches: footage, models, libraries, servers. Any thread.
#pragma once

#include "where.hpp"

#include <cstdlib>
#include <filesystem>
#include <string>

namespace weir::test {

// "" where it is not there, and the test that needs it is skipped.
inline std::string part(const std::string& path) {
  const char* elsewhere = std::getenv("WEIR_PARTS");
  std::string folder = elsewhere != nullptr ? elsewhere : WEIR_SOURCE_DIR "/build/parts";
  std::string found = folder + "/" + path;
  return std::filesystem::exists(found) ? found : "";
}

}  // namespace weir::test
