#include "weir/base/log_once.hpp"

#include "log_lines.hpp"

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(LogOnce, TellsOfEachThingOnce) {
  test::LogLines lines;
  for (int i = 0; i < 3; ++i) {
    log::error_once("thing.odd", "it is odd", "thing", "a");
    log::error_once("thing.odd", "it is odd", "thing", "b");
    log::error_once("thing.even", "it is even", "thing", "a");
  }
  EXPECT_EQ(lines.count("\"thing\":\"a\""), 2u) << lines.all();
  EXPECT_EQ(lines.count("\"thing\":\"b\""), 1u);
  EXPECT_EQ(lines.count("thing.odd"), 2u);
}

}  // namespace
}  // namespace weir
