// Target: something that takes input from outside, what is fed to it, and what must hold whatever that is.
//
// An input is a list of byte strings that says everything about one run, so that a file of it replays the run. The
// sanitizers find crashes and leaks, the supervisor finds hangs; a target looks for what they cannot see. Belongs to
// one thread.
#pragma once

#include "mutate.hpp"

#include <memory>
#include <stdexcept>

namespace weir::fuzz {

using Input = std::vector<std::string>;

// A property that did not hold. Never leaves this folder.
struct Finding : std::runtime_error {
  using std::runtime_error::runtime_error;
};
inline void check(bool holds, const std::string& otherwise) {
  if (!holds) throw Finding(otherwise);
}

class Target {
 public:
  virtual ~Target() = default;
  virtual Input draw(Mutator& mutate) = 0;
  virtual void run(const Input& input) = 0;
  // What the runs reached, in a few words.
  virtual std::string finish() = 0;
  // Whether that is enough for many runs to have shown anything: some inputs were taken, some refused.
  virtual bool conclusive() const = 0;
};

std::unique_ptr<Target> make_shard_target();
std::unique_ptr<Target> make_rtsp_target();
std::unique_ptr<Target> make_h264_target();
std::unique_ptr<Target> make_rtmp_target();
std::unique_ptr<Target> make_destination_target();
std::unique_ptr<Target> make_hook_target();

}  // namespace weir::fuzz
