#include "detector_folders.hpp"

#include <filesystem>

namespace weir::apps {

namespace fs = std::filesystem;

namespace {
std::string chosen(const Settings& settings, std::string_view name, const fs::path& beside) {
  std::string set = settings.text(name);
  return set.empty() ? beside.string() : set;
}
}  // namespace

// PREFIX/bin/weir-worker has its models in PREFIX/share/weir/models and its libraries in PREFIX/lib/weir.
DetectorFolders detector_folders(const Settings& settings) {
  std::error_code unknown;
  fs::path prefix = fs::read_symlink("/proc/self/exe", unknown).parent_path().parent_path();
  return {chosen(settings, "models_dir", prefix / "share/weir/models"),
          chosen(settings, "library_dir", prefix / "lib/weir")};
}

}  // namespace weir::apps
