#include "kept_record.hpp"

#include "nonce_lock.hpp"

#include "weir/base/json.hpp"
#include "weir/base/plain_file.hpp"

#include <fcntl.h>

#include <filesystem>
#include <set>

namespace weir {

// The mark's JSON; found by its own namespace.
template <class V>
void fields(V& v, ProcessMark& m) {
  std::int64_t started = static_cast<std::int64_t>(m.started);
  v.required("pid", m.pid);
  v.required("started", started);
  if constexpr (V::reading) m.started = static_cast<std::uint64_t>(started);
}

}  // namespace weir

namespace weir::posix {

namespace fs = std::filesystem;

template <class V>
void fields(V& v, KeptRecord& r) {
  std::int64_t valid_until_us = r.ends_at.time_since_epoch().count();
  v.required("name", r.name);
  v.required("nonce", r.nonce);
  v.required("boot_id", r.boot);
  v.optional("note", r.note);
  v.optional("lease_socket", r.lease_socket);
  v.required("version", r.version);
  v.required("valid_until_us", valid_until_us);
  v.optional("keeper", r.keeper);
  if constexpr (V::reading) r.ends_at = Instant(Duration(valid_until_us));
}

namespace {

constexpr std::uintmax_t kRecordBytesMax = 64 << 10;
constexpr std::string_view kRecord = ".record", kLock = ".lock";

struct ExitRecord {
  int code = 0;
};
template <class V>
void fields(V& v, ExitRecord& r) {
  v.required("code", r.code);
}

template <class T>
std::optional<T> read_record(const std::string& path) {
  auto text = read_plain_file(path, kRecordBytesMax);
  if (!text) return std::nullopt;
  auto read = json::read_text<T>(*text);
  return read ? std::optional(*std::move(read)) : std::nullopt;
}

bool sync(const std::string& path, int flags) {
  Descriptor file(::open(path.c_str(), flags | O_CLOEXEC));
  return file.get() >= 0 && ::fsync(file.get()) == 0;
}

std::vector<fs::path> files_with(const std::string& folder, std::string_view ending) {
  std::vector<fs::path> found;
  std::error_code failed;
  for (fs::directory_iterator each(folder, failed), end; !failed && each != end; each.increment(failed))
    if (each->path().extension() == ending) found.push_back(each->path());
  return found;
}

}  // namespace

Status KeptFolder::write(const KeptRecord& record, Durable durable) const {
  std::string path = record_path(record.name), fresh = path + ".new";
  std::string text = json::to_text(json::write_value(record)) + "\n";
  {
    Descriptor file(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    auto size = static_cast<ssize_t>(text.size());
    bool written = file.get() >= 0 && ::write(file.get(), text.data(), text.size()) == size;
    if (!written || (durable == Durable::yes && ::fsync(file.get()) != 0)) return cannot("write", fresh);
  }
  if (::rename(fresh.c_str(), path.c_str()) != 0) return cannot("write", path);
  if (durable == Durable::yes && !sync(path_, O_RDONLY | O_DIRECTORY)) return cannot("write", path_);
  return ok();
}

std::optional<KeptRecord> KeptFolder::find(const std::string& name) const {
  auto record = read_record<KeptRecord>(record_path(name));
  return record && record->name == name ? record : std::nullopt;
}

std::vector<KeptRecord> KeptFolder::all() const {
  std::vector<KeptRecord> records;
  for (const fs::path& path : files_with(path_, kRecord))
    if (auto record = find(path.stem().string())) records.push_back(*std::move(record));
  return records;
}

std::optional<int> KeptFolder::exit_code(const std::string& nonce) const {
  auto record = read_record<ExitRecord>(exit_path(nonce));
  return record ? std::optional(record->code) : std::nullopt;
}

void KeptFolder::remove(const std::string& name, const std::string& nonce) const {
  auto record = find(name);
  if (record && record->nonce == nonce) ::unlink(record_path(name).c_str());
  for (const std::string& path : {exit_path(nonce), socket_path(nonce), lock_path(nonce)}) ::unlink(path.c_str());
}

void KeptFolder::sweep() const {
  std::set<std::string> known;
  for (const KeptRecord& record : all()) known.insert(record.nonce);
  for (const fs::path& path : files_with(path_, kLock)) {
    std::string nonce = path.stem().string();
    if (!known.contains(nonce) && !NonceLock(path).held()) remove("", nonce);
  }
}

}  // namespace weir::posix
