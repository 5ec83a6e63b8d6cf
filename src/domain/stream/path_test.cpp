#include "weir/stream/path.hpp"

#include <gtest/gtest.h>

namespace weir::stream {
namespace {

TEST(StreamPath, InputAndOutput_NameTheirStream) {
  StreamId demo = *read_stream_id("demo-1_A");
  EXPECT_EQ(input_path(demo), "live/demo-1_A/in");
  EXPECT_EQ(output_path(demo), "live/demo-1_A/out");
  EXPECT_EQ(stream_of_input("live/demo-1_A/in"), demo);
  EXPECT_EQ(stream_of_output("live/demo-1_A/out"), demo);
}

TEST(StreamPath, AnythingElse_NamesNoStream) {
  std::string longest(64, 'a');
  EXPECT_TRUE(stream_of_input("live/" + longest + "/in"));
  for (std::string path : {"", "live", "live/", "live/in", "live//in", "/live/a/in", "live/a/in/", "live/a/out",
                           "live/a/IN", "Live/a/in", "live/a/b/in", "live/../in", "live/a b/in", "live/\xc3\xa4/in",
                           "other/a/in", "live/a%2Fb/in"})
    EXPECT_FALSE(stream_of_input(path)) << path;
  EXPECT_FALSE(stream_of_input("live/" + longest + "a/in"));
  EXPECT_FALSE(stream_of_input(std::string("live/a\0b/in", 11)));
  EXPECT_FALSE(stream_of_output("live/a/in"));
}

TEST(StreamPath, AWrongId_IsRefused_WithoutRepeatingIt) {
  auto wrong = read_stream_id("../etc");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, Errc::invalid);
  EXPECT_EQ(wrong.error().message.find("etc"), std::string::npos);
}

}  // namespace
}  // namespace weir::stream
