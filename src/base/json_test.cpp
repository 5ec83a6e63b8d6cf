#include "weir/base/json.hpp"

#include <gtest/gtest.h>

namespace weir {
namespace {

enum class Colour { red, green };
constexpr std::array<json::EnumName<Colour>, 2> kColourNames = {{{Colour::red, "red"}, {Colour::green, "green"}}};
constexpr auto& enum_names(Colour) { return kColourNames; }

struct Leaf {
  int number = 0;
  std::string text = "unset";
};
template <class V>
void fields(V& v, Leaf& leaf) {
  v.required("number", leaf.number, json::range(0, 9));
  v.optional("text", leaf.text, json::length(1, 5));
}

struct Tree {
  CameraId camera;
  Colour colour = Colour::red;
  std::optional<double> score = {};
  std::vector<Leaf> leaves;
  std::array<double, 2> point{};
  bool on = false;
  std::int64_t large = 0;
  Secret secret;
};
template <class V>
void fields(V& v, Tree& tree) {
  v.required("camera_uuid", tree.camera);
  v.optional("colour", tree.colour);
  v.optional("score", tree.score, json::range(0.0, 1.0));
  v.optional("leaves", tree.leaves, json::length(0, 3));
  v.optional("point", tree.point);
  v.optional("on", tree.on);
  v.optional("large", tree.large);
  v.optional("secret", tree.secret);
  v.rule("point", tree.point[0] > tree.point[1] ? "must ascend" : "");
}

std::string problem(std::string_view text, json::Unknown unknown = json::Unknown::reject) {
  auto read = json::read_text<Tree>(text, unknown);
  return read ? "" : read.error().message;
}

TEST(Json, CompleteDocument_RoundTrips) {
  const std::string text = R"({"camera_uuid":"c1","colour":"green","score":0.5,)"
                           R"("leaves":[{"number":1,"text":"a"},{"number":2,"text":"unset"}],)"
                           R"("point":[1,2],"on":true,"large":9007199254740993,"secret":"s3cret"})";
  auto tree = json::read_text<Tree>(text, json::Unknown::reject);
  ASSERT_TRUE(tree) << tree.error().message;
  EXPECT_EQ(tree->camera.str(), "c1");
  EXPECT_EQ(tree->colour, Colour::green);
  EXPECT_EQ(tree->leaves.size(), 2u);
  EXPECT_EQ(tree->leaves[1].text, "unset");
  EXPECT_EQ(tree->large, 9007199254740993);
  EXPECT_EQ(json::to_text(json::write_value(*tree)), text);
}

TEST(Json, AbsentAndNull_KeepTheDefault) {
  auto tree = json::read_text<Tree>(R"({"camera_uuid":"c","score":null,"colour":null,"on":null})");
  ASSERT_TRUE(tree) << tree.error().message;
  EXPECT_FALSE(tree->score);
  EXPECT_EQ(tree->colour, Colour::red);
  auto written = json::write_value(*tree);
  EXPECT_FALSE(written.as_object().contains("score"));
}

TEST(Json, Problems_NameThePath_AndWhatIsAllowed) {
  struct Row {
    std::string_view text;
    std::string_view expected;
  };
  const Row rows[] = {
      {R"({})", "camera_uuid is required"},
      {R"([])", "body must be an object"},
      {R"("x")", "body must be an object"},
      {R"({"camera_uuid":null})", "camera_uuid is required"},
      {R"({"camera_uuid":7})", "camera_uuid must be a string"},
      {R"({"camera_uuid":""})", "camera_uuid must not be empty"},
      {R"({"camera_uuid":"a\u0000b"})", "camera_uuid must not contain control characters"},
      {R"({"camera_uuid":"acquire"})", "camera_uuid is a reserved word"},
      {R"({"camera_uuid":"c","colour":"blue"})", "colour must be one of: red, green"},
      {R"({"camera_uuid":"c","colour":1})", "colour must be one of: red, green"},
      {R"({"camera_uuid":"c","score":1.5})", "score must be between 0 and 1"},
      {R"({"camera_uuid":"c","score":-0.1})", "score must be between 0 and 1"},
      {R"({"camera_uuid":"c","score":"0.5"})", "score must be a number"},
      {R"({"camera_uuid":"c","leaves":{}})", "leaves must be a list"},
      {R"({"camera_uuid":"c","leaves":[{"number":1},{"number":10}]})", "leaves[1].number must be between 0 and 9"},
      {R"({"camera_uuid":"c","leaves":[{"number":1.5}]})", "leaves[0].number must be a whole number"},
      {R"({"camera_uuid":"c","leaves":[{"number":99999999999}]})", "leaves[0].number must be a whole number"},
      {R"({"camera_uuid":"c","leaves":[{"number":true}]})", "leaves[0].number must be a whole number"},
      {R"({"camera_uuid":"c","leaves":[{"text":"a"}]})", "leaves[0].number is required"},
      {R"({"camera_uuid":"c","leaves":[{"number":1,"text":"toolong"}]})",
       "leaves[0].text must have 1 to 5 elements or characters"},
      {R"({"camera_uuid":"c","leaves":[{"number":1,"text":"a\u0000"}]})",
       "leaves[0].text must not contain a NUL character"},
      {R"({"camera_uuid":"c","leaves":[{"number":1,"txet":"a"}]})",
       "leaves[0].txet is not a known field; known are: number, text"},
      {R"({"camera_uuid":"c","leaves":[1]})", "leaves[0] must be an object"},
      {R"({"camera_uuid":"c","leaves":[{"number":1},{"number":1},{"number":1},{"number":1}]})",
       "leaves must have 0 to 3 elements or characters"},
      {R"({"camera_uuid":"c","point":[1]})", "point must be a list of 2 values"},
      {R"({"camera_uuid":"c","point":["1",2]})", "point[0] must be a number"},
      {R"({"camera_uuid":"c","point":[2,1]})", "point must ascend"},
      {R"({"camera_uuid":"c","on":1})", "on must be true or false"},
      {R"({"camera_uuid":"c","large":1e30})", "large must be a whole number"},
      {R"({"camera_uuid":"c","large":18446744073709551615})", "large must be a whole number"},
      {R"({"camera_uuid":"c","secret":["hunter2"]})", "secret must be a string"},
  };
  for (const auto& [text, expected] : rows) EXPECT_EQ(problem(text), expected) << text;
}

TEST(Json, SeveralProblems_AreAllListed_AndBounded) {
  auto read = json::read_text<Tree>(R"({"colour":1,"on":2})");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Errc::invalid);
  EXPECT_EQ(read.error().reason, "bad_field");
  EXPECT_EQ(read.error().message, "camera_uuid is required (and 2 more)");
  EXPECT_EQ(read.error().details.at("field").as_string(), "camera_uuid");
  EXPECT_EQ(read.error().details.at("fields").as_array().size(), 3u);

  std::string many = R"({"camera_uuid":"c")";
  for (int i = 0; i < 500; ++i) many += fmt::format(R"(,"k{}":1)", i);
  auto refused = json::read_text<Tree>(many + "}", json::Unknown::reject);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().details.at("fields").as_array().size(), 20u);
}

TEST(Json, UnknownFields_AreIgnoredWhereAsked) {
  EXPECT_EQ(problem(R"({"camera_uuid":"c","extra":{"deep":[1,2]}})", json::Unknown::ignore), "");
  EXPECT_NE(problem(R"({"camera_uuid":"c","extra":1})", json::Unknown::reject), "");
}

TEST(Json, AnOverlongUnknownKey_IsCutBetweenCharacters) {
  std::string key = std::string(63, 'k');
  for (int i = 0; i < 20; ++i) key += "ä";
  auto refused = json::read_text<Tree>(fmt::format(R"({{"camera_uuid":"c","{}":1}})", key), json::Unknown::reject);
  ASSERT_FALSE(refused);
  EXPECT_TRUE(valid_utf8(refused.error().message));
  EXPECT_TRUE(refused.error().message.starts_with(std::string(63, 'k') + " is not")) << refused.error().message;
}

TEST(Json, Values_AreNeverEchoed) {
  for (std::string_view text :
       {R"({"camera_uuid":"c","secret":{"a":"hunter2"}})", R"({"camera_uuid":"c","colour":"hunter2"})",
        R"({"camera_uuid":"c","leaves":[{"number":1,"text":"hunter2"}]})", R"({"camera_uuid":"hunter2\u0001"})",
        R"({"camera_uuid":"c","on":"hunter2"})", R"({"camera_uuid":"hunter2)"})
    EXPECT_EQ(problem(text).find("hunter2"), std::string::npos) << text;
}

TEST(Json, WholeNumbers_MayBeWrittenWithAPoint) {
  auto leaf = json::read_text<Leaf>(R"({"number":3.0})");
  ASSERT_TRUE(leaf);
  EXPECT_EQ(leaf->number, 3);
}

TEST(Json, LastOfTwoEqualKeys_Wins) {
  auto leaf = json::read_text<Leaf>(R"({"number":1,"number":2})");
  ASSERT_TRUE(leaf);
  EXPECT_EQ(leaf->number, 2);
}

TEST(Json, BrokenText_IsRefused_WithAPlace) {
  for (std::string_view text : {"",
                                " ",
                                "{",
                                "}",
                                "{\"a\":}",
                                "{\"a\":1,}",
                                "[1,]",
                                "nul",
                                "01",
                                "1 2",
                                "{} {}",
                                "{}x",
                                "\"a",
                                "\"\\x\"",
                                "\"\\ud800\"",
                                "{'a':1}",
                                "// c\n1",
                                "NaN",
                                "Infinity",
                                "+1",
                                ".5",
                                "1.",
                                "\"\x01\"",
                                "\"\xff\"",
                                "\"\xc0\x80\"",
                                "\"\xed\xa0\x80\"",
                                "\"\xf5\x80\x80\x80\"",
                                "\xef\xbb\xbf{}"}) {
    auto parsed = json::parse_text(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().reason, "bad_json");
    EXPECT_TRUE(parsed.error().details.contains("byte"));
    EXPECT_TRUE(valid_utf8(parsed.error().message));
  }
  EXPECT_FALSE(json::parse_text(std::string_view("{}\0", 3)));
  EXPECT_TRUE(json::parse_text(" {} \r\n\t"));
}

TEST(Json, DepthBomb_IsRefused) {
  EXPECT_TRUE(json::parse_text(std::string(32, '[') + std::string(32, ']')));
  EXPECT_FALSE(json::parse_text(std::string(33, '[') + std::string(33, ']')));
  EXPECT_FALSE(json::parse_text(std::string(1 << 20, '[')));
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_FALSE(json::parse_text(objects));
}

TEST(Json, EndlessNumbers_AreNotFinite) {
  EXPECT_NE(problem(R"({"camera_uuid":"c","score":1e999})"), "");
  EXPECT_NE(problem(R"({"camera_uuid":"c","large":-1e999})"), "");
  EXPECT_EQ(problem(R"({"camera_uuid":"c","score":1e-999})"), "");
}

TEST(Json, Writing_IsReadable_AndReadsBackTheSame) {
  json::value v = json::object{{"half", 0.5},
                               {"ten", 10.0},
                               {"tiny", 1e-30},
                               {"huge", 1e300},
                               {"third", 1.0 / 3},
                               {"minus", -7},
                               {"most", UINT64_MAX},
                               {"none", nullptr},
                               {"list", {1, true, "x"}},
                               {"text", "\"\\\n\r\t\x01\x1f/ä😀"},
                               {"", json::object()},
                               {"empty", json::array()}};
  std::string text = json::to_text(v);
  EXPECT_TRUE(text.starts_with(R"({"half":0.5,"ten":10,"tiny":1e-30,"huge":1e+300,)")) << text;
  auto back = json::parse_text(text);
  ASSERT_TRUE(back) << text;
  EXPECT_EQ(json::to_text(*back), text);
  EXPECT_EQ(back->at("third").as_double(), 1.0 / 3);
  EXPECT_EQ(back->at("text").as_string(), "\"\\\n\r\t\x01\x1f/ä😀");
  EXPECT_EQ(json::to_text(std::numeric_limits<double>::infinity()), "null");
}

TEST(Json, Unicode_SurvivesTheRoundTrip) {
  auto parsed = json::parse_text(R"("\u00e4\ud83d\ude00ß")");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(std::string_view(parsed->as_string()), "ä😀ß");
  EXPECT_EQ(*json::parse_text(json::to_text(*parsed)), *parsed);
}

}  // namespace
}  // namespace weir
