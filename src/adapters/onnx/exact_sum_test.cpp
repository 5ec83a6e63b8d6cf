#include "exact_sum.hpp"

#include <gtest/gtest.h>

namespace weir::onnx {
namespace {

int differing_pairs(const SumFactors& wanted, const SumFactors& used, const SumZeros& zeros) {
  int differing = 0;
  for (int i = 0; i < 65536; ++i) {
    auto a = static_cast<std::uint8_t>(i >> 8), b = static_cast<std::uint8_t>(i);
    differing += lite_sum(wanted, zeros, a, b) != onnx_sum(used, zeros, a, b) ? 1 : 0;
  }
  return differing;
}

TEST(ExactSum, ScalesAddsAndRounds) {
  SumZeros zeros{10, 20, 100};
  for (auto sum : {lite_sum, onnx_sum}) {
    EXPECT_EQ(sum({1, 1}, zeros, 10, 20), 100);
    EXPECT_EQ(sum({1, 2}, zeros, 15, 30), 125);
    EXPECT_EQ(sum({0.25F, 1}, zeros, 13, 20), 101);
    EXPECT_EQ(sum({1, 1}, zeros, 255, 255), 255);
    EXPECT_EQ(sum({8, 8}, zeros, 0, 0), 0);
  }
}

// Factors and zero points of sums in EfficientDet-Lite0, and others.
TEST(ExactSum, AllPairsOfBytesAddUpAsInTensorFlowLite) {
  int plainly = 0;
  for (auto [a, b] : {std::pair{4.2544359F, 3.2241117F},
                      {6.1389118F, 6.1389118F},
                      {2.9240637F, 2.063639F},
                      {3.237475F, 3.6748511F},
                      {0.97107473F, 0.84488578F},
                      {8.968908F, 2.6511663F},
                      {1.F, 1.F},
                      {0.0123F, 0.7F},
                      {0.56906743F, 0.98652909F}})
    for (SumZeros zeros : {SumZeros{122, 139, 0}, {113, 144, 128}, {0, 255, 7}}) {
      SumFactors wanted{a, b};
      plainly += differing_pairs(wanted, wanted, zeros);
      EXPECT_EQ(differing_pairs(wanted, exact_factors(wanted, zeros), zeros), 0) << a << " " << b;
    }
  EXPECT_GT(plainly, 0) << "nothing to correct: then this file is not needed";
}

}  // namespace
}  // namespace weir::onnx
