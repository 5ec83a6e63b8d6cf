#include "weir/base/ids.hpp"

#include <gtest/gtest.h>

#include <unordered_set>

namespace weir {
namespace {

TEST(Ids, OrdinaryTexts_AreIds) {
  for (std::string_view text : {"c", "cam-1", "550e8400-e29b-41d4-a716-446655440000", "a b", "käfer", "a/b", "a.b",
                                "...", "日本", "😀", "Register", "'; drop table leases; --"})
    EXPECT_EQ(id_problem(text), "") << text;
  EXPECT_EQ(id_problem(std::string(255, 'x')), "");
}

TEST(Ids, BadTexts_AreRefused_WithTheReason) {
  EXPECT_EQ(id_problem(""), "must not be empty");
  EXPECT_EQ(id_problem(std::string(256, 'x')), "must have at most 255 bytes");
  for (std::string_view text : {std::string_view("a\0b", 3), std::string_view("a\nb"), std::string_view("\x1b[31m"),
                                std::string_view("\x7f"), std::string_view("a\xc2\x9b")})
    EXPECT_EQ(id_problem(text), "must not contain control characters");
  for (std::string_view text :
       {"\xff", "a\xc3", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\x80"})
    EXPECT_EQ(id_problem(text), "must be valid UTF-8");
  for (std::string_view text : {"register", "heartbeat", "acquire", "events"})
    EXPECT_EQ(id_problem(text), "is a reserved word");
  EXPECT_NE(id_problem("."), "");
  EXPECT_NE(id_problem(".."), "");
}

TEST(Ids, ANonBreakingSpace_IsNoControlCharacter) {
  EXPECT_EQ(id_problem("a\xc2\xa0"
                       "b"),
            "");
}

TEST(Ids, Parse_NamesTheField_NotTheText) {
  auto bad = CameraId::parse("hunter2\n");
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().message, "camera_uuid: must not contain control characters");
  EXPECT_EQ(bad.error().details.at("field").as_string(), "camera_uuid");
  auto good = SiteId::parse("s");
  ASSERT_TRUE(good);
  EXPECT_EQ(good->str(), "s");
}

TEST(Ids, Values_CompareHashAndPrint) {
  auto a = RunnerId::trusted("a"), b = RunnerId::trusted("b");
  EXPECT_LT(a, b);
  EXPECT_EQ(a, RunnerId::trusted("a"));
  EXPECT_TRUE(RunnerId().empty());
  EXPECT_EQ(fmt::format("{}", a), "a");
  EXPECT_EQ((std::unordered_set<RunnerId>{a, b, a}.size()), 2u);
}

TEST(Utf8, Boundaries_AreExact) {
  for (std::string_view text : {"", "a", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xef\xbf\xbf",
                                "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"})
    EXPECT_TRUE(valid_utf8(text));
  for (std::string_view text :
       {"\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xe2\x82", "\xf0\x9f\x98",
        "\xc2"
        "a"})
    EXPECT_FALSE(valid_utf8(text));
}

}  // namespace
}  // namespace weir
