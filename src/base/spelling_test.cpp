#include "weir/base/spelling.hpp"

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(Spelling, SlipsAreCounted) {
  EXPECT_EQ(slips_between("person", "person"), 0u);
  EXPECT_EQ(slips_between("persn", "person"), 1u);
  EXPECT_EQ(slips_between("presno", "person"), 2u);
  EXPECT_EQ(slips_between("lsit", "list"), 1u);
  EXPECT_EQ(slips_between("", "car"), 3u);
}

}  // namespace
}  // namespace weir
