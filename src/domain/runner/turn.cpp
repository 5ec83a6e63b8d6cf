#include "weir/runner/turn.hpp"

namespace weir::runner {

Duration Turn::begin(Moment moment) {
  Duration since = now == Instant{} ? Duration(0) : moment.now - now;
  now = moment.now;
  wall = moment.wall;
  return since;
}

void Turn::end(int code, std::string why) {
  if (!std::exchange(ended_, true)) act(End{code, std::move(why)});
}

double Turn::draw() {
  std::uint64_t z = (random_ += 0x9E3779B97F4A7C15ull);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

}  // namespace weir::runner
