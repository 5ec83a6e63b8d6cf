#include "disk.hpp"

#include "weir/spool/file_spool.hpp"

#include <cstdlib>
#include <filesystem>
#include <stdexcept>

namespace weir::sim {

namespace fs = std::filesystem;

Disk::Disk() {
  fs::path under = fs::is_directory("/dev/shm") ? fs::path("/dev/shm") : fs::temp_directory_path();
  folder_ = under / "weir-sim-XXXXXX";
  if (::mkdtemp(folder_.data()) == nullptr) throw std::runtime_error("no folder can be made in " + under.string());
}

Disk::~Disk() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

std::unique_ptr<Spool> Disk::spool() const {
  auto opened = spool::open_file_spool(folder_, {});
  if (!opened) throw std::runtime_error(opened.error().message);
  return std::move(*opened);
}

}  // namespace weir::sim
