#include "weir/spool/file_spool.hpp"

#include "log.hpp"

#include "weir/base/json.hpp"
#include "weir/base/log.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>

namespace weir::spool {

namespace {

// FNV-1a. A collision of two cameras is noticed by the name in the log.
std::uint64_t hash(std::string_view text) {
  std::uint64_t h = 0xcbf29ce484222325;
  for (unsigned char c : text) h = (h ^ c) * 0x100000001b3;
  return h;
}
std::string folder_prefix(const CameraId& camera) { return fmt::format("{:016x}-", hash(camera.str())); }
std::string folder_name(const CameraId& camera, const lease::Tenure& tenure) {
  return folder_prefix(camera) + fmt::format("{:016x}", hash(fmt::format("{}/{}", tenure.grant.n, tenure.boot.str())));
}

// The ids are kept as text: they were valid when they were written and are not checked again.
struct Name {
  std::string camera, boot;
  std::int64_t grant = 0;
};
template <class V>
void fields(V& v, Name& name) {
  v.required("camera_uuid", name.camera);
  v.required("boot_id", name.boot);
  v.required("grant_version", name.grant);
}
std::optional<Name> name_of(int folder) {
  auto name = json::read_text<Name>(read_small(folder, kName));
  if (!name) return {};
  return *name;
}
std::string camera_of(const Log& log) {
  auto name = name_of(log.folder());
  return name ? name->camera : std::string();
}
void say_lost(const Log& log) {
  if (log.lost() == 0) return;
  log::warn("spool.lost", "events were lost because the spool was full")
      .with("camera_uuid", camera_of(log))
      .with("events", log.lost());
}
Status write_name(int folder, const CameraId& camera, const lease::Tenure& tenure) {
  Name name{camera.str(), tenure.boot.str(), tenure.grant.n};
  return replace_small(folder, kName, json::to_text(json::write_value(name)));
}

class FileSpool final : public Spool {
 public:
  FileSpool(std::string root, Fd root_fd, Limits limits)
      : root_(std::move(root)), root_fd_(std::move(root_fd)), limits_(limits) {}
  ~FileSpool() override { static_cast<void>(flush()); }

  Result<SpoolBacklog> open(const CameraId& camera, const lease::Tenure& tenure) override;
  bool append(const CameraId& camera, const lease::Tenure& tenure, const event::Event& event) override;
  SpoolPage peek(const CameraId& camera, const lease::Tenure& tenure, size_t events_max, size_t bytes_max) override;
  void advance(const CameraId& camera, const lease::Tenure& tenure, std::uint64_t to) override;
  void close(const CameraId& camera, const lease::Tenure& tenure) override;
  Status flush() override;
  Status adopt(const CameraId& camera, const lease::Tenure& from, const lease::Tenure& to) override;
  std::uint64_t drop(const CameraId& camera, const lease::Tenure& tenure) override;
  std::uint64_t drop_others(const CameraId& camera, const lease::Tenure& keep) override;
  std::vector<SpoolContent> list() const override;
  SpoolCounts counts() const override { return counts_; }

 private:
  using Logs = std::map<std::string, Log>;  // by the folder's name

  // The log, opened where it was not; made where `make`.
  Result<Logs::iterator> find(const CameraId& camera, const lease::Tenure& tenure, bool make);
  Result<Logs::iterator> find(const std::string& folder, bool make);
  void make_room(Log& log, size_t bytes);
  void forget_oldest(Log& log);
  std::uint64_t drop(const std::string& folder);
  void remove(Logs::iterator at);
  bool refuse(const Error& error);
  // Keeps the counts in step with what `change` does to the log.
  template <class Change>
  void change(Log& log, Change change);
  std::string path(const std::string& folder) const { return root_ + "/" + folder; }

  const std::string root_;
  const Fd root_fd_;
  const Limits limits_;
  Logs logs_;
  SpoolCounts counts_;
  size_t unsynced_bytes_ = 0;
  bool new_folders_ = false;
};

template <class Change>
void FileSpool::change(Log& log, Change change) {
  counts_.bytes -= log.bytes();
  change();
  counts_.bytes += log.bytes();
  counts_.damaged += log.take_damaged();
}

Result<FileSpool::Logs::iterator> FileSpool::find(const std::string& folder, bool make) {
  if (auto at = logs_.find(folder); at != logs_.end()) return at;
  TRY(locked, lock_folder(path(folder), make));
  TRY(log, Log::open(std::move(locked), path(folder), limits_.segment_bytes));
  counts_.bytes += log.bytes();
  counts_.damaged += log.take_damaged();
  return logs_.emplace(folder, std::move(log)).first;
}

Result<FileSpool::Logs::iterator> FileSpool::find(const CameraId& camera, const lease::Tenure& tenure, bool make) {
  std::string folder = folder_name(camera, tenure);
  if (auto at = logs_.find(folder); at != logs_.end()) return at;
  TRY(at, find(folder, make));
  auto name = name_of(at->second.folder());
  if (name && name->camera != camera.str()) {
    counts_.bytes -= at->second.bytes();
    logs_.erase(at);
    return Error{Errc::conflict, "spool_name_taken", "another camera's spool has the same name"};
  }
  // None, or that of the tenure before when an adoption was cut off between its two steps.
  if (!name || name->boot != tenure.boot.str() || name->grant != tenure.grant.n)
    if (Status named = write_name(at->second.folder(), camera, tenure); !named) {
      if (at->second.waiting() == 0) remove(at);
      return named.error();
    }
  new_folders_ = true;
  return at;
}

void FileSpool::remove(Logs::iterator at) {
  say_lost(at->second);
  counts_.bytes -= at->second.bytes();
  at->second.remove();
  logs_.erase(at);
  // Where no log is open, no event is being lost any more.
  if (logs_.empty()) counts_.disk_trouble = false;
}

Result<SpoolBacklog> FileSpool::open(const CameraId& camera, const lease::Tenure& tenure) {
  auto at = find(camera, tenure, false);
  if (!at && at.error().code == Errc::not_found) return SpoolBacklog{};
  if (!at) return at.error();
  Log& log = (*at)->second;
  if (log.waiting() > 0) return SpoolBacklog{log.waiting(), log.newest()};
  remove(*at);
  return SpoolBacklog{};
}

bool FileSpool::refuse(const Error& error) {
  ++counts_.refused;
  if (!std::exchange(counts_.disk_trouble, true))
    log::error("spool.refused", "events that cannot be spooled will be lost").with("error", error.message);
  return false;
}

bool FileSpool::append(const CameraId& camera, const lease::Tenure& tenure, const event::Event& event) {
  std::string record = encode(event);
  if (record.empty() || record.size() > std::min<std::uint64_t>(limits_.camera_bytes, limits_.total_bytes))
    return refuse({Errc::too_large, "event_too_large", "an event is larger than the spool takes"});
  auto at = find(camera, tenure, true);
  if (!at) return refuse(at.error());
  Log& log = (*at)->second;
  make_room(log, record.size());
  int code = 0;
  change(log, [&] { code = log.append(record, event.captured); });
  if (code != 0) {
    if (log.waiting() == 0) remove(*at);
    return refuse(disk_error("write", code));
  }
  ++counts_.appended;
  if (std::exchange(counts_.disk_trouble, false)) log::info("spool.recovered", "events can be spooled again");
  unsynced_bytes_ += record.size();
  if (unsynced_bytes_ >= limits_.group_bytes) static_cast<void>(flush());
  return true;
}

void FileSpool::forget_oldest(Log& log) {
  bool full_before = log.lost() > 0;
  change(log, [&] { counts_.overflowed += log.drop_oldest(); });
  if (!full_before && log.lost() > 0)
    log::warn("spool.full", "the spool is full: the oldest events are lost until it has room again")
        .with("camera_uuid", camera_of(log));
}

void FileSpool::make_room(Log& log, size_t bytes) {
  while (log.bytes() > 0 && log.bytes() + bytes > limits_.camera_bytes) forget_oldest(log);
  while (counts_.bytes > 0 && counts_.bytes + bytes > limits_.total_bytes) {
    auto largest = std::max_element(logs_.begin(), logs_.end(),
                                    [](auto& a, auto& b) { return a.second.bytes() < b.second.bytes(); });
    forget_oldest(largest->second);
  }
}

SpoolPage FileSpool::peek(const CameraId& camera, const lease::Tenure& tenure, size_t events_max, size_t bytes_max) {
  SpoolPage page;
  auto at = logs_.find(folder_name(camera, tenure));
  if (at == logs_.end()) return page;
  change(at->second, [&] { page = at->second.peek(events_max, bytes_max); });
  if (at->second.waiting() == 0) remove(at);
  return page;
}

void FileSpool::advance(const CameraId& camera, const lease::Tenure& tenure, std::uint64_t to) {
  auto at = logs_.find(folder_name(camera, tenure));
  if (at == logs_.end()) return;
  change(at->second, [&] { counts_.drained += at->second.advance(to); });
  if (at->second.waiting() == 0) remove(at);
}

void FileSpool::close(const CameraId& camera, const lease::Tenure& tenure) {
  auto at = logs_.find(folder_name(camera, tenure));
  if (at == logs_.end()) return;
  if (int code = at->second.sync(); code != 0) refuse(disk_error("flush", code));
  say_lost(at->second);
  counts_.bytes -= at->second.bytes();
  logs_.erase(at);
}

Status FileSpool::flush() {
  Status flushed = ok();
  for (auto& [folder, log] : logs_)
    if (int code = log.sync(); code != 0) flushed = disk_error("flush", code);
  if (std::exchange(new_folders_, false) && ::fsync(root_fd_.get()) != 0) flushed = disk_error("flush", errno);
  unsynced_bytes_ = 0;
  if (!flushed) refuse(flushed.error());
  return flushed;
}

Status FileSpool::adopt(const CameraId& camera, const lease::Tenure& from, const lease::Tenure& to) {
  std::string old_folder = folder_name(camera, from), new_folder = folder_name(camera, to);
  if (old_folder == new_folder) return ok();
  bool was_open = logs_.contains(old_folder);
  auto at = find(camera, from, false);
  if (!at && at.error().code == Errc::not_found) return ok();
  if (!at) return at.error();
  // The rename is the step that counts: it replaces an empty folder, never one in which something lies.
  if (logs_.contains(new_folder) || ::rename(path(old_folder).c_str(), path(new_folder).c_str()) != 0) {
    int code = logs_.contains(new_folder) ? ENOTEMPTY : errno;
    if (!was_open) close(camera, from);
    if (code != ENOTEMPTY && code != EEXIST) return disk_error("rename a folder", code);
    return Error{Errc::conflict, "spool_not_empty", "the new tenure has spooled already"};
  }
  auto node = logs_.extract(*at);
  node.key() = new_folder;
  node.mapped().renamed(path(new_folder));
  Log& log = logs_.insert(std::move(node)).position->second;
  new_folders_ = true;
  return write_name(log.folder(), camera, to);
}

std::uint64_t FileSpool::drop(const std::string& folder) {
  auto at = find(folder, false);
  if (!at) return 0;
  std::uint64_t events = (*at)->second.waiting();
  remove(*at);
  if (::faccessat(root_fd_.get(), folder.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0) return 0;  // a disk that takes nothing
  counts_.dropped += events;
  return events;
}

std::uint64_t FileSpool::drop(const CameraId& camera, const lease::Tenure& tenure) {
  return drop(folder_name(camera, tenure));
}

std::uint64_t FileSpool::drop_others(const CameraId& camera, const lease::Tenure& keep) {
  std::string prefix = folder_prefix(camera), kept = folder_name(camera, keep);
  std::uint64_t events = 0;
  if (auto folders = names_in(root_fd_.get()))
    for (const std::string& folder : *folders)
      if (folder.starts_with(prefix) && folder != kept) events += drop(folder);
  return events;
}

std::vector<SpoolContent> FileSpool::list() const {
  std::vector<SpoolContent> contents;
  auto folders = names_in(root_fd_.get());
  if (!folders) return contents;
  for (const std::string& name : *folders) {
    Fd folder(::openat(root_fd_.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    auto known = folder ? name_of(folder.get()) : std::nullopt;
    if (!known) continue;
    SpoolContent content{CameraId::trusted(known->camera), {BootId::trusted(known->boot), {known->grant}}};
    auto files = names_in(folder.get());
    if (!files) continue;
    for (const std::string& file : *files) {
      struct stat found {};
      if (file.ends_with(".seg") && ::fstatat(folder.get(), file.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0)
        content.bytes += static_cast<std::uint64_t>(found.st_size);
    }
    contents.push_back(std::move(content));
  }
  return contents;
}

}  // namespace

Result<std::unique_ptr<Spool>> open_file_spool(std::string folder, Limits limits) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return disk_error("make its folder", errno);
  Fd root(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root) return disk_error("open its folder", errno);
  if (::fchmod(root.get(), 0700) != 0) return disk_error("keep its folder private", errno);
  return std::unique_ptr<Spool>(std::make_unique<FileSpool>(std::move(folder), std::move(root), limits));
}

}  // namespace weir::spool
