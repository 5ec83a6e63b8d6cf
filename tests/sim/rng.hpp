// One seed decides everything: a small fast generator whose sequence is the same on every machine.
#pragma once

#include "weir/base/time.hpp"

#include <cstdint>

namespace weir::sim {

class Rng {
 public:
  explicit Rng(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ull + 1) {}
  std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15ull;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  int below(int n) { return static_cast<int>(next() % static_cast<std::uint64_t>(n)); }
  double unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  bool chance(double p) { return unit() < p; }
  Duration between(Duration low, Duration high) {
    return low + Duration(static_cast<Duration::rep>(unit() * static_cast<double>((high - low).count())));
  }

 private:
  std::uint64_t state_;
};

}  // namespace weir::sim
