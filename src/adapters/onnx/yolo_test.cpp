#include "yolo.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace weir::onnx {
namespace {

using Dims = std::vector<std::int64_t>;

struct LayoutCase {
  const char* what;
  int width, height;
  Dims shape;
  std::optional<Layout> layout;
};

TEST(YoloLayout, IsToldByTheShapesOfInputAndOutput) {
  const LayoutCase cases[] = {
      {"v8, 11", 640, 640, {84, 8400}, Layout{Family::v8, 640, 640, 8400, 80}},
      {"v8 of one class", 320, 320, {5, 2100}, Layout{Family::v8, 320, 320, 2100, 1}},
      {"v8, oblong", 640, 384, {84, 5040}, Layout{Family::v8, 640, 384, 5040, 80}},
      {"v8 with a fourth grid", 1280, 1280, {84, 34000}, Layout{Family::v8, 1280, 1280, 34000, 80}},
      {"v5", 640, 640, {25200, 85}, Layout{Family::v5, 640, 640, 25200, 80}},
      {"v5 with a fourth grid", 1280, 1280, {102000, 85}, Layout{Family::v5, 1280, 1280, 102000, 80}},
      {"x", 416, 416, {3549, 85}, Layout{Family::x, 416, 416, 3549, 80}},
      {"x of one class", 640, 640, {8400, 6}, Layout{Family::x, 640, 640, 8400, 1}},
      {"boxes already merged", 640, 640, {300, 6}, std::nullopt},
      {"a classifier", 224, 224, {1000}, std::nullopt},
      {"places of another input", 640, 640, {84, 2100}, std::nullopt},
      {"no classes", 640, 640, {4, 8400}, std::nullopt},
      {"no classes", 640, 640, {8400, 5}, std::nullopt},
      {"absurd", 640, 640, {std::int64_t{1} << 40, 85}, std::nullopt},
      {"negative", 640, 640, {-1, 8400}, std::nullopt},
      {"too small for a grid", 4, 4, {5, 0}, std::nullopt},
  };
  for (const LayoutCase& c : cases) EXPECT_EQ(recognise(c.width, c.height, c.shape), c.layout) << c.what;
}

TEST(YoloFit, KeepsTheShape_InTheMiddleOrAtTheTopLeft) {
  Layout square{Family::v8, 640, 640, 8400, 80}, x{Family::x, 640, 640, 8400, 80};
  EXPECT_EQ(fit(square, {0, 0, 1280, 720}), (Fit{0.5, 0, 140, 640, 360}));
  EXPECT_EQ(fit(square, {10, 20, 100, 200}), (Fit{3.2, 160, 0, 320, 640}));
  EXPECT_EQ(fit(x, {0, 0, 1280, 720}), (Fit{0.5, 0, 0, 640, 360}));
  EXPECT_EQ(fit(square, {0, 0, 4000, 1}).height, 1) << "never nothing";
}

TEST(YoloFill, MakesPlanesWithGreyBars) {
  const std::vector<std::uint8_t> rgb = {255, 51, 0, 0, 0, 102};  // two pixels side by side
  Layout v8{Family::v8, 2, 3, 0, 0}, x{Family::x, 2, 3, 0, 0};
  std::vector<float> planes(18);
  fill(v8, {1, 0, 1, 2, 1}, rgb, planes);
  const float grey = 114 / 255.0F;
  const std::vector<float> expected = {grey, grey, 1,    0,    grey, grey, grey, grey, 0.2F,
                                       0,    grey, grey, grey, grey, 0,    0.4F, grey, grey};
  for (size_t i = 0; i < 18; ++i) EXPECT_NEAR(planes[i], expected[i], 1e-6) << i;
  fill(x, {1, 0, 0, 2, 1}, rgb, planes);
  EXPECT_EQ(planes,
            (std::vector<float>{0, 102, 114, 114, 114, 114, 51, 0, 114, 114, 114, 114, 255, 0, 114, 114, 114, 114}))
      << "blue first, not scaled";
}

void expect_one(const std::vector<Candidate>& found, Box box, float score, int klass) {
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NEAR(found[0].box.x1, box.x1, 1e-3);
  EXPECT_NEAR(found[0].box.y1, box.y1, 1e-3);
  EXPECT_NEAR(found[0].box.x2, box.x2, 1e-3);
  EXPECT_NEAR(found[0].box.y2, box.y2, 1e-3);
  EXPECT_NEAR(found[0].score, score, 1e-6);
  EXPECT_EQ(found[0].klass, klass);
}

TEST(YoloDecode, V8TakesTheBestClassOfEachColumn) {
  Layout layout = *recognise(32, 32, Dims{7, 21});  // 16 + 4 + 1 places, 3 classes
  std::vector<float> output(7 * 21, 0);
  auto set = [&](size_t place, std::vector<float> numbers) {
    for (size_t i = 0; i < 7; ++i) output[i * 21 + place] = numbers[i];
  };
  set(5, {10, 12, 4, 8, 0.1F, 0.8F, 0.3F});
  set(6, {10, 12, 4, 8, 0.2F, 0.1F, 0.29F});
  expect_one(decode(layout, output, 0.3), {8, 8, 12, 16}, 0.8F, 1);
  EXPECT_EQ(decode(layout, output, 0.29).size(), 2u);
  EXPECT_EQ(decode(layout, std::span(output).first(100), 0.3).size(), 0u) << "an output that is too short";
}

TEST(YoloDecode, V5MultipliesObjectnessAndClass) {
  Layout layout = *recognise(32, 32, Dims{63, 7});
  std::vector<float> output(63 * 7, 0);
  auto set = [&](size_t place, std::vector<float> numbers) { std::ranges::copy(numbers, output.begin() + place * 7); };
  set(0, {10, 12, 4, 8, 0.5F, 0.8F, 0.9F});
  set(62, {10, 12, 4, 8, 0.2F, 0.9F, 0.9F});
  expect_one(decode(layout, output, 0.3), {8, 8, 12, 16}, 0.45F, 1);
  EXPECT_EQ(decode(layout, output, 0.46).size(), 0u);
}

TEST(YoloDecode, XCountsFromTheGridCell_WithLogarithmsOfSizes) {
  Layout layout = *recognise(32, 32, Dims{21, 6});
  auto at = [&](size_t place) {
    std::vector<float> output(21 * 6, 0);
    std::ranges::copy(std::vector<float>{0.5F, 0.25F, std::log(2.0F), 0, 0.9F, 0.5F}, output.begin() + place * 6);
    return decode(layout, output, 0.3);
  };
  expect_one(at(0), {-4, -2, 12, 6}, 0.45F, 0);       // cell (0,0) of width 8: centre (4,2), 16 by 8
  expect_one(at(6), {12, 6, 28, 14}, 0.45F, 0);       // cell (2,1) of width 8: centre (20,10)
  expect_one(at(16 + 3), {8, 12, 40, 28}, 0.45F, 0);  // cell (1,1) of width 16: centre (24,20), 32 by 16
  expect_one(at(20), {-16, -8, 48, 24}, 0.45F, 0);    // the only cell of width 32: centre (16,8), 64 by 32
}

TEST(YoloDecode, NumbersThatAreNoneAreLeftOut) {
  Layout layout = *recognise(32, 32, Dims{5, 21});
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  for (float bad : {nan, inf, -inf, -1.0F, 0.0F}) {
    std::vector<float> output(5 * 21, 0);
    for (size_t i = 0; i < 5; ++i) output[i * 21] = 0.9F;
    EXPECT_EQ(decode(layout, output, 0.3).size(), 1u);
    output[2 * 21] = bad;  // the width
    EXPECT_EQ(decode(layout, output, 0.3).size(), 0u) << bad;
  }
}

TEST(YoloSuppress, KeepsTheMostCertainOfOverlappingBoxes_ByClass) {
  const Box a{0, 0, 10, 10}, near{1, 0, 11, 10}, half{5, 0, 15, 10};
  auto scores = [](const std::vector<Candidate>& kept) {
    std::vector<float> out;
    for (const Candidate& c : kept) out.push_back(c.score);
    return out;
  };
  using Scores = std::vector<float>;
  EXPECT_EQ(scores(suppress({{near, 0.5F, 0}, {a, 0.9F, 0}}, 0.45)), Scores{0.9F});
  EXPECT_EQ(scores(suppress({{near, 0.5F, 1}, {a, 0.9F, 0}}, 0.45)), (Scores{0.9F, 0.5F})) << "another class";
  EXPECT_EQ(scores(suppress({{half, 0.5F, 0}, {a, 0.9F, 0}}, 0.45)), (Scores{0.9F, 0.5F})) << "a third in common";
  EXPECT_EQ(scores(suppress({{half, 0.5F, 0}, {a, 0.9F, 0}}, 0.3)), Scores{0.9F});
  EXPECT_EQ(scores(suppress({{{8, 0, 18, 10}, 0.6F, 0}, {near, 0.8F, 0}, {{4, 0, 14, 10}, 0.7F, 0}}, 0.45)),
            (Scores{0.8F, 0.6F}))
      << "what fell does not fell others";
  EXPECT_LE(suppress(std::vector<Candidate>(100'000, {a, 0.5F, 0}), 0.45).size(), 1u);
}

TEST(YoloNames, AreReadFromAPythonDictionary) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(parse_names("{0: 'person', 1: 'bicycle'}"), (Names{"person", "bicycle"}));
  EXPECT_EQ(parse_names("{1:\"driver's cab\",0:'it\\'s',}"), (Names{"it's", "driver's cab"}));
  EXPECT_EQ(parse_names("{2: 'c'}"), (Names{"", "", "c"}));
  for (const char* bad : {"", "{", "{}", "{0}", "{0:", "{0: person}", "{0: 'person", "{0: 'a' 1: 'b'}", "['a']",
                          "{-1: 'a'}", "{99999999: 'a'}", "{'0': 'a'}", "{0: 'a', 1:"})
    EXPECT_EQ(parse_names(bad), Names{}) << bad;
  EXPECT_EQ(coco_names().size(), 80u);
}

}  // namespace
}  // namespace weir::onnx
