// FakeSpool: a spool in memory, for unit tests. The contract tests prove that it behaves as the one in files.
// One thread.
#pragma once

#include "weir/ports/spool.hpp"

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>

namespace weir::test {

// The disk that processes share; a FakeSpool is one process's view of it.
struct FakeDisk {
  struct Log {
    std::deque<event::Event> events;
    std::uint64_t first = 0;
    const void* writer = nullptr;
  };
  std::map<std::pair<CameraId, lease::Tenure>, Log> logs;
  bool full = false;
  std::atomic<bool> hangs = false;  // any thread; notify who waits for its end
};

class FakeSpool final : public Spool {
 public:
  explicit FakeSpool(FakeDisk& disk) : disk_(disk) {}
  ~FakeSpool() override {
    for (auto& [key, log] : disk_.logs)
      if (log.writer == this) log.writer = nullptr;
  }

  Result<SpoolBacklog> open(const CameraId& camera, const lease::Tenure& tenure) override {
    disk_.hangs.wait(true);
    auto at = disk_.logs.find({camera, tenure});
    if (at == disk_.logs.end()) return SpoolBacklog{};
    if (!free(at->second)) return Error{Errc::conflict, "spool_in_use", "in use"};
    at->second.writer = this;
    return SpoolBacklog{at->second.events.size(), at->second.events.back().captured};
  }
  bool append(const CameraId& camera, const lease::Tenure& tenure, const event::Event& event) override {
    auto at = disk_.logs.find({camera, tenure});
    counts_.disk_trouble = disk_.full;
    if (disk_.full || (at != disk_.logs.end() && !free(at->second))) {
      ++counts_.refused;
      return false;
    }
    auto& log = disk_.logs[{camera, tenure}];
    log.writer = this;
    log.events.push_back(event);
    unflushed = true;
    return true;
  }
  SpoolPage peek(const CameraId& camera, const lease::Tenure& tenure, size_t events_max, size_t) override {
    auto at = disk_.logs.find({camera, tenure});
    if (at == disk_.logs.end() || at->second.writer != this) return {};
    auto& [events, first, writer] = at->second;
    events_max = std::min<size_t>(events_max, 50 - first % 50);  // a page may end early, as at the end of a file
    return {first, {events.begin(), events.begin() + static_cast<std::ptrdiff_t>(std::min(events_max, events.size()))}};
  }
  void advance(const CameraId& camera, const lease::Tenure& tenure, std::uint64_t to) override {
    auto at = disk_.logs.find({camera, tenure});
    if (at == disk_.logs.end() || at->second.writer != this) return;
    for (; at->second.first < to && !at->second.events.empty(); ++at->second.first) at->second.events.pop_front();
    if (at->second.events.empty()) disk_.logs.erase(at);
  }
  void close(const CameraId& camera, const lease::Tenure& tenure) override {
    auto at = disk_.logs.find({camera, tenure});
    if (at != disk_.logs.end() && at->second.writer == this) at->second.writer = nullptr;
  }
  Status flush() override {
    ++flushes;
    unflushed = false;
    return ok();
  }
  Status adopt(const CameraId& camera, const lease::Tenure& from, const lease::Tenure& to) override {
    auto at = disk_.logs.find({camera, from});
    if (at == disk_.logs.end()) return ok();
    if (!free(at->second) || disk_.logs.contains({camera, to})) return Error{Errc::conflict, "spool_in_use", "in use"};
    auto node = disk_.logs.extract(at);
    node.key().second = to;
    node.mapped().writer = this;
    disk_.logs.insert(std::move(node));
    return ok();
  }
  std::uint64_t drop(const CameraId& camera, const lease::Tenure& tenure) override {
    auto at = disk_.logs.find({camera, tenure});
    if (at == disk_.logs.end() || !free(at->second)) return 0;
    auto events = at->second.events.size();
    disk_.logs.erase(at);
    return events;
  }
  std::uint64_t drop_others(const CameraId& camera, const lease::Tenure& keep) override {
    std::uint64_t dropped = 0;
    for (const SpoolContent& each : list())
      if (each.camera == camera && each.tenure != keep) dropped += drop(camera, each.tenure);
    return dropped;
  }
  std::vector<SpoolContent> list() const override {
    std::vector<SpoolContent> all;
    for (const auto& [key, log] : disk_.logs) all.push_back({key.first, key.second, log.events.size()});
    return all;
  }
  SpoolCounts counts() const override { return counts_; }

  int flushes = 0;
  bool unflushed = false;

 private:
  bool free(const FakeDisk::Log& log) const { return log.writer == nullptr || log.writer == this; }
  FakeDisk& disk_;
  SpoolCounts counts_;
};

}  // namespace weir::test
