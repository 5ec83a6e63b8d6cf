#include "print.hpp"

#include <gtest/gtest.h>

namespace weir::apps {
namespace {

TEST(Table, Columns_AreAsWideAsTheirWidestCell) {
  Table table({"CAMERA", "SITE", "NAME"});
  table.add({"cam-1", "site-A", "Front"});
  table.add({"a-long-camera-id", "", "Käfer"});
  EXPECT_EQ(table.text(),
            "CAMERA            SITE    NAME\n"
            "cam-1             site-A  Front\n"
            "a-long-camera-id  -       Käfer\n");
}

TEST(Table, WideCharacters_CountOnce) {
  Table table({"A", "B"});
  table.add({"ääää", "x"});
  table.add({"aaaa", "y"});
  EXPECT_EQ(table.text(), "A     B\nääää  x\naaaa  y\n");
}

TEST(Table, MissingCells_AreADash) {
  Table table({"A", "B"});
  table.add({"x"});
  EXPECT_EQ(table.text(), "A  B\nx  -\n");
  EXPECT_TRUE(Table({"A"}).empty());
}

TEST(Print, ATerminal_IsNotSteered) {
  EXPECT_EQ(harmless("a\x1b[31mb\nc\x7f\xc2\x9b\xc2\xa0"), "a?[31mb?c??\xc2\xa0");
  Table table({"A"});
  table.add({"x\x1b]0;title\x07"});
  EXPECT_EQ(table.text(), "A\nx?]0;title?\n");
}

TEST(Print, Cells_ShowEachKindOfValue) {
  json::object object{{"text", "x"}, {"none", nullptr}, {"yes", true}, {"half", 0.5}, {"whole", 7}, {"list", {1, 2}}};
  EXPECT_EQ(cell(object, "text"), "x");
  EXPECT_EQ(cell(object, "none"), "-");
  EXPECT_EQ(cell(object, "missing"), "-");
  EXPECT_EQ(cell(object, "yes"), "yes");
  EXPECT_EQ(cell(object, "half"), "0.5");
  EXPECT_EQ(cell(object, "whole"), "7");
  EXPECT_EQ(cell(object, "list"), "[1,2]");
  EXPECT_EQ(cell("no object", "x"), "-");
  EXPECT_EQ(field_lines({{"a", 1}, {"longer", "x"}}), "a       1\nlonger  x\n");
}

}  // namespace
}  // namespace weir::apps
