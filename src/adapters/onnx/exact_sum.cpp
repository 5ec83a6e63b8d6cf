#include "exact_sum.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace weir::onnx {

namespace {

constexpr int kFactorBits = 20;  // the larger factor has one more
constexpr int kNudges = 24;      // tried to either side
constexpr double kNear = 1e-3;   // of a result: farther from the middle no nudge changes anything

// Both factors in units of 2^-shift.
struct Fixed {
  std::int64_t a = 0, b = 0;
  int shift = 0;
};

Fixed fixed(const SumFactors& wanted) {
  Fixed made{.shift = kFactorBits - std::ilogb(std::max(wanted.a, wanted.b))};
  made.a = std::lrint(std::ldexp(wanted.a, made.shift)), made.b = std::lrint(std::ldexp(wanted.b, made.shift));
  return made;
}

// With half a result added, so that what is below the point is cut off.
std::int64_t raised(const Fixed& factors, const SumZeros& zeros, int a, int b) {
  return factors.a * (a - zeros.a) + factors.b * (b - zeros.b) + (std::int64_t{1} << (factors.shift - 1));
}

std::uint8_t lite_sum(const Fixed& factors, const SumZeros& zeros, int a, int b) {
  return static_cast<std::uint8_t>(
      std::clamp<std::int64_t>((raised(factors, zeros, a, b) >> factors.shift) + zeros.result, 0, 255));
}

struct Pair {
  std::uint8_t a = 0, b = 0, sum = 0;
};

std::vector<Pair> doubtful_pairs(const Fixed& factors, const SumZeros& zeros) {
  std::vector<Pair> found;
  std::int64_t whole = std::int64_t{1} << factors.shift;
  auto near = static_cast<std::int64_t>(kNear * static_cast<double>(whole));
  for (int a = 0; a < 256; ++a)
    for (int b = 0; b < 256; ++b)
      if (((raised(factors, zeros, a, b) + near) & (whole - 1)) <= 2 * near)
        found.push_back({std::uint8_t(a), std::uint8_t(b), lite_sum(factors, zeros, a, b)});
  return found;
}

}  // namespace

std::uint8_t lite_sum(const SumFactors& wanted, const SumZeros& zeros, std::uint8_t a, std::uint8_t b) {
  return lite_sum(fixed(wanted), zeros, a, b);
}

// In the order, and with the fused products, of its kernel for AVX2.
std::uint8_t onnx_sum(const SumFactors& factors, const SumZeros& zeros, std::uint8_t a, std::uint8_t b) {
  float constant = float(zeros.result) - std::fma(factors.a, float(zeros.a), factors.b * float(zeros.b));
  float sum = std::fma(float(a), factors.a, std::fma(float(b), factors.b, constant));
  return static_cast<std::uint8_t>(std::clamp(std::nearbyint(sum), 0.F, 255.F));
}

SumFactors exact_factors(const SumFactors& wanted, const SumZeros& zeros) {
  float larger = std::max(wanted.a, wanted.b);
  if (!(larger >= 0x1p-10F && larger < 0x1p8F)) return wanted;  // sums that no model contains
  Fixed target = fixed(wanted);
  std::vector<Pair> pairs = doubtful_pairs(target, zeros);
  SumFactors base{std::ldexp(float(target.a), -target.shift), std::ldexp(float(target.b), -target.shift)}, best = base;
  size_t fewest = pairs.size() + 1;
  float nudge = std::ldexp(0.25F, -target.shift);
  // From the smallest nudges outwards.
  for (int reach = 0; reach <= kNudges && fewest > 0; ++reach)
    for (int i = -reach; i <= reach && fewest > 0; ++i)
      for (int j = -reach; j <= reach && fewest > 0; ++j) {
        if (std::max(std::abs(i), std::abs(j)) != reach) continue;
        SumFactors tried{base.a + float(i) * nudge, base.b + float(j) * nudge};
        auto wrong = static_cast<size_t>(std::ranges::count_if(
            pairs, [&](const Pair& pair) { return onnx_sum(tried, zeros, pair.a, pair.b) != pair.sum; }));
        if (wrong < fewest) fewest = wrong, best = tried;
      }
  return best;
}

}  // namespace weir::onnx
