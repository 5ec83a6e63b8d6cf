// What tests keep in files: a folder that goes away, and the text that a file holds. Any thread.
#pragma once

#include "weir/base/result.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace weir::test {

// A folder under /tmp that is removed with this object.
class TempDir {
 public:
  TempDir() { WEIR_ASSERT(::mkdtemp(path_.data()) != nullptr); }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_ = "/tmp/weir-XXXXXX";
};

// "" where there is no such file.
inline std::string text_in_file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

}  // namespace weir::test
