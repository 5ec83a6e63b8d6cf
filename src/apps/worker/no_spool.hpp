// NoSpool: a disk that takes nothing, for a publisher whose events are worth nothing to a later process.
// Publisher's thread only.
#pragma once

#include "weir/ports/spool.hpp"

namespace weir::apps {

class NoSpool final : public Spool {
 public:
  Result<SpoolBacklog> open(const CameraId&, const lease::Tenure&) override { return SpoolBacklog{}; }
  bool append(const CameraId&, const lease::Tenure&, const event::Event&) override { return false; }
  SpoolPage peek(const CameraId&, const lease::Tenure&, size_t, size_t) override { return {}; }
  void advance(const CameraId&, const lease::Tenure&, std::uint64_t) override {}
  void close(const CameraId&, const lease::Tenure&) override {}
  Status flush() override { return ok(); }
  Status adopt(const CameraId&, const lease::Tenure&, const lease::Tenure&) override { return ok(); }
  std::uint64_t drop(const CameraId&, const lease::Tenure&) override { return 0; }
  std::uint64_t drop_others(const CameraId&, const lease::Tenure&) override { return 0; }
  std::vector<SpoolContent> list() const override { return {}; }
  SpoolCounts counts() const override { return {}; }
};

}  // namespace weir::apps
