// Resident: by how much this process's memory has grown, as the kernel counts it. One at a time.
#pragma once

#include "temp_files.hpp"

#include <fstream>
#include <string>

namespace weir::test {

class Resident {
 public:
  Resident() {
    std::ofstream("/proc/self/clear_refs") << "5";  // the peak is counted anew
    before_ = kilobytes("VmRSS:");
  }
  // The peak since the beginning, not only what is still held.
  double grown_megabytes() const { return static_cast<double>(kilobytes("VmHWM:") - before_) / 1024; }

 private:
  static long kilobytes(const std::string& field) {
    std::string status = text_in_file("/proc/self/status");
    size_t at = status.find(field);
    WEIR_ASSERT(at != std::string::npos);
    return std::stol(status.substr(at + field.size()));
  }
  long before_ = 0;
};

}  // namespace weir::test
