// Snapshots: which cameras' pictures were asked for a moment ago, so that many clients that look at one camera at
// once ask its runner once.
//
// A client that asks is told the request's id; the runner's answer carries it. Loop thread only.
#pragma once

#include "weir/base/ids.hpp"
#include "weir/base/time.hpp"

#include <map>
#include <string>

namespace weir::control_plane {

class Snapshots {
 public:
  struct Question {
    std::string request;
    bool fresh = true;  // nobody was asked yet
  };
  // The request for this camera: one that is under way, or a new one.
  Question ask(const CameraId& camera, Instant now);

  // Whether too many clients wait: each holds a connection, and asks the store again and again.
  bool crowded() const { return waiting_ >= kWaitingMax; }
  class Waiting {
   public:
    explicit Waiting(Snapshots& all) : all_(all) { ++all_.waiting_; }
    ~Waiting() { --all_.waiting_; }
    Waiting(const Waiting&) = delete;

   private:
    Snapshots& all_;
  };

 private:
  static constexpr Duration kShared = 1s;
  static constexpr int kWaitingMax = 64;
  struct Asked {
    std::string request;
    Instant at;
  };
  std::map<CameraId, Asked> asked_;
  int waiting_ = 0;
};

}  // namespace weir::control_plane
