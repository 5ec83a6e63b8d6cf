#include "words.hpp"

#include <gtest/gtest.h>

namespace weir::apps {
namespace {

using Words = std::vector<std::string>;

TEST(Words, AreSplit_AndEmptyOnesLeftOut) {
  EXPECT_EQ(split_words(" 1,2  3,4;5,6 ", " ;"), (Words{"1,2", "3,4", "5,6"}));
  EXPECT_TRUE(split_words("", ",").empty());
}

TEST(Words, AreNumbersAsAWhole) {
  EXPECT_EQ(number_in("0.5"), 0.5);
  for (const char* text : {"", "5x", "nan", "inf", " 5", "1e999"}) EXPECT_FALSE(number_in(text)) << text;
}

TEST(Words, Nearest_ByMeaningBeginningAndLetters) {
  const Words commands{"add", "list", "show", "set", "enable", "disable", "remove", "import", "snapshot"};
  EXPECT_EQ(nearest("update", commands), Words{"set"});
  EXPECT_EQ(nearest("delete", commands), Words{"remove"});
  EXPECT_EQ(nearest("snap", commands), Words{"snapshot"});
  EXPECT_EQ(nearest("lsit", commands), Words{"list"});
  EXPECT_EQ(nearest("enabel", commands), Words{"enable"});
  EXPECT_EQ(nearest("nodes", {"node", "model"}), Words{"node"}) << "what is further away is left out";
  EXPECT_TRUE(nearest("bogus", commands).empty());
}

}  // namespace
}  // namespace weir::apps
