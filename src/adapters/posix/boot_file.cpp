#include "weir/posix/boot_file.hpp"

#include "weir/base/json.hpp"
#include "weir/base/random.hpp"

#include <filesystem>
#include <fstream>

namespace weir::posix {

namespace {

struct Stored {
  std::string identity;
  BootId boot_id;
};
template <class V>
void fields(V& v, Stored& s) {
  v.required("identity", s.identity);
  v.required("boot_id", s.boot_id);
}

}  // namespace

KernelFacts kernel_facts() {
  KernelFacts facts;
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::getline(file, facts.boot_id);
  std::error_code unknown;
  facts.pid_namespace = std::filesystem::read_symlink("/proc/self/ns/pid", unknown).string();
  return facts;
}

Result<BootFile> BootFile::take(const std::string& path, const KernelFacts& facts) {
  TRY(file, LockedFile::take(path, Heirs::nobody,
                             fmt::format("{} is locked: another process runs in this state folder; stop it, or give "
                                         "another --state-dir", path)));
  bool known = !facts.boot_id.empty() && !facts.pid_namespace.empty() && !file.identity().empty();
  std::string identity = fmt::format("{} {} {}", facts.boot_id, facts.pid_namespace, file.identity());
  auto stored = json::read_text<Stored>(file.text());
  if (known && stored && stored->identity == identity) return BootFile(std::move(file), stored->boot_id, true);
  Stored fresh{identity, BootId::trusted(random_hex(16))};
  TRY(written, file.store(json::to_text(json::write_value(fresh))));
  return BootFile(std::move(file), fresh.boot_id, false);
}

}  // namespace weir::posix
