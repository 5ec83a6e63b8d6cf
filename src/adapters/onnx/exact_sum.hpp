// ExactSum: the scales with which ONNX Runtime adds quantised values as TensorFlow Lite does, to the last bit.
//
// Both scale, add and round; TensorFlow Lite (XNNPACK) with factors of 21 bits in integers, ONNX Runtime in floats. Of
// the 65,536 pairs of bytes the few that lie next to the middle between two results may be rounded differently, and a
// deep network makes a lot of that: one such pair moves two of a hundred boxes visibly. Factors that are other by some
// millionths bring those pairs onto the right side. Pure functions; any thread.
#pragma once

#include <cstdint>

namespace weir::onnx {

struct SumFactors {
  float a = 1, b = 1;  // the inputs' scales, each divided by the result's
};
struct SumZeros {
  std::uint8_t a = 0, b = 0, result = 0;
};

// TensorFlow Lite's sum and ONNX Runtime's.
std::uint8_t lite_sum(const SumFactors& wanted, const SumZeros& zeros, std::uint8_t a, std::uint8_t b);
std::uint8_t onnx_sum(const SumFactors& factors, const SumZeros& zeros, std::uint8_t a, std::uint8_t b);

// The factors to use where `wanted` are meant.
SumFactors exact_factors(const SumFactors& wanted, const SumZeros& zeros);

}  // namespace weir::onnx
