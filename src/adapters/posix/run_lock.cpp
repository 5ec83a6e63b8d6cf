#include "weir/posix/run_lock.hpp"

#include "weir/base/json.hpp"
#include "weir/posix/boot_file.hpp"

namespace weir::posix {

namespace {

std::string text_of(const json::object& o, std::string_view name) {
  const json::value* found = o.if_contains(name);
  return found != nullptr && found->is_string() ? std::string(found->get_string()) : std::string();
}

std::optional<Testament> read_testament(const std::string& text, const std::string& identity) {
  auto parsed = json::parse_text(text);
  if (!parsed || !parsed->is_object()) return std::nullopt;
  const json::object& said = parsed->get_object();
  if (identity.empty() || text_of(said, "identity") != identity) return std::nullopt;
  Testament out{RunnerId::trusted(text_of(said, "runner_id")), BootId::trusted(text_of(said, "boot_id")),
                Secret(text_of(said, "will"))};
  if (out.runner.empty() || out.boot.empty() || out.will.empty()) return std::nullopt;
  return out;
}

}  // namespace

Result<RunLock> RunLock::take(const std::string& path) {
  TRY(file, LockedFile::take(path, Heirs::children,
                             fmt::format("{} is locked: a runner, or a worker of one, still runs there; stop it, or give "
                                         "another --state-dir", path)));
  std::string boot = kernel_facts().boot_id, same_file = file.identity();
  std::string identity = boot.empty() || same_file.empty() ? "" : fmt::format("{} {}", boot, same_file);
  return RunLock(std::move(file), std::move(identity));
}

RunLock::RunLock(LockedFile file, std::string identity)
    : file_(std::move(file)), identity_(std::move(identity)), left_behind_(read_testament(file_.text(), identity_)) {}

Status RunLock::write(const Testament& testament) {
  json::object said{{"identity", identity_},
                    {"runner_id", testament.runner.str()},
                    {"boot_id", testament.boot.str()},
                    {"will", testament.will.reveal()}};
  return file_.store(json::to_text(said));
}

Status RunLock::clear() { return file_.store(""); }

}  // namespace weir::posix
