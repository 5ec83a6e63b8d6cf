// RunnerWatch: notices runners whose heartbeats on the event feed stop.
//
// A runner that was heard and then is not for `kSilentAfter` is silent until it is heard again, and forgotten after an
// hour. Nobody is judged by a time in which the feed could not be read or events were missed. A silence is named by the
// last heartbeat before it, so that several control planes announce it once. It is for people and alerts: no lease
// depends on it. Loop thread only.
#pragma once

#include "event_feed.hpp"

#include <unordered_map>
#include <vector>

namespace weir::control_plane {

inline constexpr Duration kSilentAfter = 5s;

class RunnerWatch final : public FeedWatcher {
 public:
  struct Silence {
    RunnerId runner;
    TenantId tenant;
    std::int64_t last_heartbeat;  // its place in the event log
    std::string last_ts;
  };
  void note(const StoredEvent& event, Instant now) override;
  void forget() override { missed_ = true; }
  void read(Instant now) override;
  // Those who have become silent since it was asked last.
  std::vector<Silence> newly_silent(Instant now);
  int silent() const { return silent_; }

 private:
  struct Heard {
    Instant at{};
    TenantId tenant;
    std::int64_t sequence = 0;
    std::string ts;
    bool silent = false;
  };
  static constexpr size_t kMax = 100'000;
  std::unordered_map<RunnerId, Heard> heard_;
  Instant read_at_{};
  bool missed_ = false;
  int silent_ = 0;
};

}  // namespace weir::control_plane
