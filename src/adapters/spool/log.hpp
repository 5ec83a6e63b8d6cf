// Log: one camera's spool of one tenure: a locked folder with segments that are only ever appended to.
//
// Events are numbered from 0. A segment's file is named after the number of its first event, so how many events a
// segment holds is known without reading it, even when it is damaged. What was read up to is kept in the file
// `position`; segments before it are removed. After a crash the last segment is read through and what does not belong
// to a whole record is cut off. Blocks on the disk; one thread.
#pragma once

#include "files.hpp"
#include "record.hpp"

#include <deque>

namespace weir::spool {

class Log {
 public:
  // `folder` is locked and stays so as long as the log lives.
  static Result<Log> open(Fd folder, std::string path, size_t segment_bytes);

  // 0, or the number of the system's error: then nothing was appended.
  int append(std::string_view record, WallTime captured);
  SpoolPage peek(size_t events_max, size_t bytes_max);
  // The number of events that are newly done with.
  std::uint64_t advance(std::uint64_t to);
  // Forgets the oldest segment; the number of events lost by it.
  std::uint64_t drop_oldest();
  std::uint64_t lost() const { return lost_; }  // all of those
  int sync();
  // Removes the folder; the log is over.
  void remove() { remove_folder(folder_.get(), path_); }

  void renamed(std::string path) { path_ = std::move(path); }
  const std::string& path() const { return path_; }
  int folder() const { return folder_.get(); }
  std::uint64_t waiting() const { return next_ - read_; }
  std::uint64_t bytes() const { return bytes_; }
  std::optional<WallTime> newest() const { return newest_; }
  // Events that were skipped because of damage since the last call.
  std::uint64_t take_damaged() { return std::exchange(damaged_, 0); }

 private:
  struct Segment {
    std::uint64_t first;
    std::uint64_t bytes;
  };
  Log(Fd folder, std::string path, size_t segment_bytes)
      : folder_(std::move(folder)), path_(std::move(path)), segment_bytes_(segment_bytes) {}
  Status restore_segments();
  void restore_position();
  Status mend_last();
  int start_segment();
  void remove_first();
  void leave_first(std::uint64_t read);
  void keep_position();
  std::uint64_t end_of_first() const { return segments_.size() > 1 ? segments_[1].first : next_; }
  // The record at `offset` of `file`, through a window that slides over it; "" where there is no whole one.
  struct Window;
  std::string_view record_at(Window& window, int file, std::uint64_t offset, std::uint64_t end) const;

  Fd folder_;
  std::string path_;
  size_t segment_bytes_;
  std::deque<Segment> segments_;  // oldest first; all hold at least one event
  std::uint64_t next_ = 0;        // the number of the next event to be appended
  std::uint64_t read_ = 0;        // of the next to be read; lies in the first segment
  std::uint64_t read_offset_ = 0;
  std::vector<std::uint64_t> ends_;  // where the events of the last page end
  std::uint64_t bytes_ = 0;
  std::uint64_t damaged_ = 0;
  std::uint64_t lost_ = 0;
  std::optional<WallTime> newest_;
  Fd writer_;  // of the last segment; none: the next append starts one
  Fd reader_;  // of the first segment
  bool unsynced_ = false, new_names_ = false;
};

}  // namespace weir::spool
