#include "log.hpp"

#include "weir/base/log.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

namespace weir::spool {

namespace {

constexpr std::string_view kSuffix = ".seg";
constexpr size_t kWindowBytes = 64 << 10;
const std::string kPosition = "position";

std::string segment_name(std::uint64_t first) { return fmt::format("{:016x}{}", first, kSuffix); }

std::optional<std::uint64_t> segment_first(std::string_view name) {
  std::uint64_t first = 0;
  if (name.size() != 16 + kSuffix.size() || !name.ends_with(kSuffix)) return {};
  auto [end, problem] = std::from_chars(name.data(), name.data() + 16, first, 16);
  if (problem != std::errc() || end != name.data() + 16) return {};
  return first;
}

struct Position {
  std::uint64_t segment, offset, read;
};

}  // namespace

struct Log::Window {
  std::string bytes;
  std::uint64_t from = 0;

  std::string_view at(int file, std::uint64_t offset, size_t length) {
    if (offset < from || offset + length > from + bytes.size()) {
      bytes.resize(std::max(length, kWindowBytes));
      ssize_t got = ::pread(file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
      bytes.resize(got > 0 ? static_cast<size_t>(got) : 0);
      from = offset;
    }
    return std::string_view(bytes).substr(offset - from, length);
  }
};

std::string_view Log::record_at(Window& window, int file, std::uint64_t offset, std::uint64_t end) const {
  if (offset + kHeadBytes > end) return {};
  size_t length = record_bytes(window.at(file, offset, kHeadBytes));
  if (length == 0 || offset + length > end) return {};
  std::string_view record = window.at(file, offset, length);
  return record.size() == length ? record : std::string_view();
}

Result<Log> Log::open(Fd folder, std::string path, size_t segment_bytes) {
  Log log(std::move(folder), std::move(path), segment_bytes);
  TRY(restored, log.restore_segments());
  log.restore_position();
  return log;
}

Status Log::restore_segments() {
  TRY(names, names_in(folder_.get()));
  for (const std::string& name : names) {
    struct stat file {};
    auto first = segment_first(name);
    if (first && ::fstatat(folder_.get(), name.c_str(), &file, AT_SYMLINK_NOFOLLOW) == 0)
      segments_.push_back({*first, static_cast<std::uint64_t>(file.st_size)});
  }
  std::sort(segments_.begin(), segments_.end(), [](auto& a, auto& b) { return a.first < b.first; });
  for (const Segment& segment : segments_) bytes_ += segment.bytes;
  return mend_last();
}

// Reads the last segment through, counts its events, and cuts off what the end of its writer left unfinished.
Status Log::mend_last() {
  if (segments_.empty()) return ok();
  Segment& last = segments_.back();
  next_ = last.first;
  Fd file(::openat(folder_.get(), segment_name(last.first).c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
  if (!file && lacks(errno)) return disk_error("open a segment", errno);
  Window window;
  std::uint64_t whole = 0;
  while (file) {
    auto record = record_at(window, file.get(), whole, last.bytes);
    auto event = decode(record);
    if (!event) {
      // A record that is all there and yet wrong was damaged later; the number of those behind it is not known.
      if (!record.empty() && whole + record.size() < last.bytes) ++damaged_;
      break;
    }
    newest_ = event->captured;
    whole += record.size();
    ++next_;
  }
  if (whole < last.bytes) {
    log::warn("spool.cut", "cut off the unfinished end of a spool")
        .with("file", path_ + "/" + segment_name(last.first))
        .with("bytes", last.bytes - whole);
    if (file && ::ftruncate(file.get(), static_cast<off_t>(whole)) != 0)
      log::warn("spool.cut", "the end of a spool cannot be cut off").with("error", std::strerror(errno));
    bytes_ -= last.bytes - whole;
    last.bytes = whole;
  }
  if (whole == 0) {
    ::unlinkat(folder_.get(), segment_name(last.first).c_str(), 0);
    segments_.pop_back();
  }
  return ok();
}

void Log::restore_position() {
  if (segments_.empty()) {
    // Numbers begin anew; a position left behind would call the next events read.
    ::unlinkat(folder_.get(), kPosition.c_str(), 0);
    next_ = 0;
    return;
  }
  read_ = segments_.front().first;
  std::string text = read_small(folder_.get(), kPosition);
  Position kept{};
  std::uint32_t crc = 0;
  if (text.size() != sizeof kept + sizeof crc) return;
  std::memcpy(&kept, text.data(), sizeof kept);
  std::memcpy(&crc, text.data() + sizeof kept, sizeof crc);
  if (crc != crc32c(std::string_view(text).substr(0, sizeof kept))) return;
  while (!segments_.empty() && segments_.front().first < kept.segment) remove_first();
  if (segments_.empty() || segments_.front().first != kept.segment) return;
  if (kept.offset > segments_.front().bytes || kept.read < kept.segment || kept.read > end_of_first()) return;
  read_ = kept.read;
  read_offset_ = kept.offset;
  if (read_ == end_of_first()) leave_first(read_);
}

void Log::keep_position() {
  if (segments_.empty()) return;
  Position now{segments_.front().first, read_offset_, read_};
  std::string text(reinterpret_cast<const char*>(&now), sizeof now);
  std::uint32_t crc = crc32c(text);
  text.append(reinterpret_cast<const char*>(&crc), sizeof crc);
  // Without it some events are sent twice after a crash, which is harmless: a failure needs no attention.
  Fd file(::openat(folder_.get(), kPosition.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (file && ::pwrite(file.get(), text.data(), text.size(), 0) < 0) return;
}

int Log::start_segment() {
  if (int code = sync(); code != 0) return code;
  writer_ = Fd(::openat(folder_.get(), segment_name(next_).c_str(),
                        O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!writer_) return errno;
  segments_.push_back({next_, 0});
  new_names_ = true;
  return 0;
}

int Log::append(std::string_view record, WallTime captured) {
  if (!writer_ || segments_.back().bytes + record.size() > segment_bytes_)
    if (int code = start_segment(); code != 0) return code;
  Segment& last = segments_.back();
  if (int code = write_all(writer_.get(), record); code != 0) {
    // A half-written record must not stand before the next one; if it cannot be cut off, a new segment is begun.
    if (last.bytes > 0 && ::ftruncate(writer_.get(), static_cast<off_t>(last.bytes)) == 0) return code;
    writer_ = Fd();
    if (last.bytes == 0) {
      ::unlinkat(folder_.get(), segment_name(last.first).c_str(), 0);
      segments_.pop_back();
    }
    return code;
  }
  last.bytes += record.size();
  bytes_ += record.size();
  newest_ = captured;
  unsynced_ = true;
  ++next_;
  return 0;
}

SpoolPage Log::peek(size_t events_max, size_t bytes_max) {
  SpoolPage page;
  Window window;
  while (page.events.empty() && !segments_.empty()) {
    ends_.clear();
    page.first = read_;
    if (!reader_)
      reader_ =
          Fd(::openat(folder_.get(), segment_name(segments_.front().first).c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    page.later = !reader_ && lacks(errno);
    if (page.later) break;
    window = {};
    size_t bytes = 0;
    std::uint64_t offset = read_offset_, wanted = std::min<std::uint64_t>(events_max, end_of_first() - read_);
    while (reader_ && page.events.size() < wanted) {
      auto record = record_at(window, reader_.get(), offset, segments_.front().bytes);
      if (!page.events.empty() && bytes + record.size() > bytes_max) break;
      auto event = decode(record);
      if (!event) break;
      bytes += record.size();
      ends_.push_back(offset += record.size());
      page.events.push_back(std::move(*event));
    }
    if (!page.events.empty() || events_max == 0) break;
    std::uint64_t lost = end_of_first() - read_;
    log::error("spool.damaged", "the rest of a spool segment cannot be read and is skipped")
        .with("file", path_ + "/" + segment_name(segments_.front().first))
        .with("events", lost);
    damaged_ += lost;
    leave_first(end_of_first());
  }
  return page;
}

std::uint64_t Log::advance(std::uint64_t to) {
  if (to <= read_ || ends_.empty()) return 0;  // its segment was forgotten meanwhile
  size_t done = std::min<size_t>(to - read_, ends_.size());
  read_ += done;
  read_offset_ = ends_[done - 1];
  ends_.erase(ends_.begin(), ends_.begin() + static_cast<std::ptrdiff_t>(done));
  if (read_ == end_of_first()) leave_first(read_);
  keep_position();
  return done;
}

std::uint64_t Log::drop_oldest() {
  if (segments_.empty()) return 0;
  std::uint64_t lost = end_of_first() - read_;
  leave_first(end_of_first());
  lost_ += lost;
  return lost;
}

void Log::leave_first(std::uint64_t read) {
  if (segments_.size() == 1) writer_ = Fd();
  remove_first();
  read_ = read;
}

void Log::remove_first() {
  ::unlinkat(folder_.get(), segment_name(segments_.front().first).c_str(), 0);
  bytes_ -= segments_.front().bytes;
  segments_.pop_front();
  reader_ = Fd();
  read_offset_ = 0;
  ends_.clear();
  if (!segments_.empty()) read_ = segments_.front().first;
}

int Log::sync() {
  int code = 0;
  if (unsynced_ && writer_ && ::fdatasync(writer_.get()) != 0) code = errno;
  if (new_names_ && ::fsync(folder_.get()) != 0) code = errno;
  // After a failed flush the kernel may have dropped the pages: a second flush would succeed though they are not on
  // the disk.
  if (code != 0) writer_ = Fd();
  unsynced_ = new_names_ = false;
  return code;
}

}  // namespace weir::spool
