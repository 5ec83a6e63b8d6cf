// Shard plan: which of a runner's cameras share a worker process.
//
// A camera stays where it is as long as that is allowed; a new one goes where most of its site's cameras are, then where
// its site's other new ones fit too, then to the fullest shard with room, and only then to a shard of its own. So adding
// one camera moves none, the same cameras give the same plan in whatever order they come, and planning again changes
// nothing. A camera that crashed its worker is alone in its shard. Pure: plain values in, plain values out.
#pragma once

#include "weir/base/ids.hpp"

#include <map>
#include <span>

namespace weir::shard {

struct Member {
  CameraId camera;
  SiteId site;
  bool alone = false;  // gets a worker of its own
};

using ShardNumber = int;  // from 0; the lowest free one is used first
using Assignment = std::map<CameraId, ShardNumber>;

// Cameras that `members` does not name leave the assignment. `size` is the most that a shard may hold, at least 1.
Assignment plan(std::span<const Member> members, const Assignment& present, int size);

}  // namespace weir::shard
