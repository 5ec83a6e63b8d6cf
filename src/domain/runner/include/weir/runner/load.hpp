// Load: whether the runner keeps up with the cameras that it has; one that does not takes no more.
//
// The machine may say that it is short of something (LoadHeard). And cameras may be looked at less often than wanted:
// that counts when it has lasted, and must be over for as long before it stops to count. Pure; one thread.
#pragma once

#include "weir/runner/turn.hpp"

namespace weir::runner {

class Load {
 public:
  void hear(const LoadHeard& event, Turn& turn);
  // `behind`: cameras that are looked at less often than wanted. True where that has changed the answer of `keeps_up`.
  bool look(int behind, const Turn& turn);
  bool keeps_up() const { return keeps_up_; }
  // Why the runner takes no further cameras, or "".
  std::string why_not(int behind) const;

 private:
  std::string overload_;                 // what the machine is short of
  bool keeps_up_ = true;
  std::optional<Instant> other_since_;   // since when the cameras have shown the opposite of `keeps_up_`
};

}  // namespace weir::runner
