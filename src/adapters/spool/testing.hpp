// What the spool's tests share: events with numbers, folders that vanish. One thread.
#pragma once

#include "weir/spool/file_spool.hpp"

#include "postgres_server.hpp"

#include <gtest/gtest.h>

#include <filesystem>

namespace weir::spool {

using test::TempDir;

inline const CameraId kCamera = CameraId::trusted("cam/1 ünïcode *#.");
inline const lease::Tenure kTenure{BootId::trusted("boot-1"), {7}};
inline const lease::Tenure kLater{BootId::trusted("boot-2"), {9}};

inline event::Event event(int n, size_t payload_bytes = 100) {
  event::Event e{"detections.topic", "detections.t.s.c", fmt::format("id-{}", n)};
  e.payload = fmt::format("{{\"n\":{},\"pad\":\"{}\"}}", n, std::string(payload_bytes, 'x'));
  e.captured = WallTime(Duration(1'000'000 + n));
  return e;
}

inline std::unique_ptr<Spool> opened(const TempDir& folder, Limits limits = {}) {
  auto spool = open_file_spool(folder.path() + "/spool", limits);
  EXPECT_TRUE(spool) << spool.error().message;
  return std::move(*spool);
}

// Takes everything that waits, in pages of different sizes.
inline std::vector<event::Event> drained(Spool& spool, const CameraId& camera = kCamera,
                                        const lease::Tenure& tenure = kTenure) {
  std::vector<event::Event> all;
  for (size_t most = 1;; most = most % 7 + 1) {
    SpoolPage page = spool.peek(camera, tenure, most, 1 << 20);
    if (page.events.empty()) return all;
    for (auto& each : page.events) all.push_back(std::move(each));
    spool.advance(camera, tenure, page.first + page.events.size());
  }
}

inline std::vector<std::filesystem::path> segment_files(const TempDir& folder) {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path() + "/spool"))
    if (entry.path().extension() == ".seg") found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

inline size_t folders_left(const TempDir& folder) {
  auto each = std::filesystem::directory_iterator(folder.path() + "/spool");
  return static_cast<size_t>(std::distance(begin(each), end(each)));
}

}  // namespace weir::spool
