// Loop: a profile's encoded pictures, to be sent over and over.
//
// It begins with a picture that needs no other (with its parameter sets in band) and its groups are closed, so that the
// last picture is followed by the first without a break. It is encoded once, kept in a cache folder under a name that
// stands for profile and footage, and shared in memory by all cameras that have the profile. Constant after creation;
// any thread.
#pragma once

#include "weir/camsim/profile.hpp"
#include "weir/camsim/timeline.hpp"

#include <map>
#include <memory>
#include <mutex>

namespace weir::camsim {

struct AccessUnit {
  size_t offset = 0, bytes = 0;
  int number = 0;    // of its frame, in order of presentation
  bool key = false;  // decodable by itself
};

class Loop {
 public:
  // `units` in decoding order; fails where they do not form a loop.
  static Result<std::shared_ptr<const Loop>> create(const Profile& profile, std::vector<AccessUnit> units,
                                                    std::string data);

  const Profile& profile() const { return profile_; }
  const std::vector<AccessUnit>& units() const { return units_; }
  std::string_view data(const AccessUnit& unit) const {
    return std::string_view(data_).substr(unit.offset, unit.bytes);
  }
  // What a decoder needs before anything else; "" where the codec has no such thing.
  std::string_view parameter_sets() const { return std::string_view(data_).substr(units_[0].offset, sets_bytes_); }
  // With B-frames a unit is sent later than its frame was taken: by how many frames at most.
  int reorder_frames() const { return reorder_; }
  // The keyframe that this unit depends on.
  int key_before(int unit) const { return key_before_[static_cast<size_t>(unit)]; }
  Timeline timeline(Duration phase) const { return {profile_.fps, static_cast<int>(units_.size()), phase}; }

 private:
  Loop() = default;
  Profile profile_;
  std::vector<AccessUnit> units_;
  std::string data_;
  std::vector<int> key_before_;
  size_t sets_bytes_ = 0;
  int reorder_ = 0;
};
using LoopPtr = std::shared_ptr<const Loop>;

// Encodes, or finds in the cache. Blocks, for seconds at the first time; any thread.
class LoopLibrary {
 public:
  LoopLibrary(std::string footage_file, std::string cache_dir)
      : footage_file_(std::move(footage_file)), cache_dir_(std::move(cache_dir)) {}
  Result<LoopPtr> get(const Profile& profile);

 private:
  Result<LoopPtr> open(const Profile& profile);

  const std::string footage_file_, cache_dir_;
  std::mutex mutex_;  // held while encoding: two cameras of one profile must not encode twice
  std::map<std::string, LoopPtr> loops_;
};

}  // namespace weir::camsim
