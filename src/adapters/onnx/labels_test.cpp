#include "weir/onnx/labels.hpp"

#include "rgb_picture.hpp"

#include <gtest/gtest.h>

namespace weir::onnx {
namespace {

using Labels = std::vector<std::string>;

std::string field(int number, const std::string& bytes) {
  std::string out(1, static_cast<char>(number << 3 | 2));
  for (size_t left = bytes.size();; left >>= 7) {
    out.push_back(static_cast<char>(left < 0x80 ? left : (left & 0x7F) | 0x80));
    if (left < 0x80) return out + bytes;
  }
}
std::string metadata(const std::string& key, const std::string& value) {
  return field(14, field(1, key) + field(2, value));
}

TEST(OnnxLabels, NamesAreFoundAmongTheMetadata_WhateverStandsBefore) {
  std::string version = "\x08\x09", graph = field(7, std::string(100'000, 'g'));
  std::string names = metadata("names", "{0: 'person', 1: 'fire hydrant'}");
  EXPECT_EQ(packed_names(version + graph + metadata("author", "x") + names), (Labels{"person", "fire hydrant"}));
  EXPECT_EQ(packed_names(version + graph + metadata("author", "x")), Labels{});
}

TEST(OnnxLabels, OtherTextsOfTheMetadata_AreFoundByTheirKey) {
  std::string whole = field(7, "graph") + metadata("author", "x") + metadata("weir_fields", "{}");
  EXPECT_EQ(metadata_of(whole, "weir_fields"), "{}");
  EXPECT_EQ(metadata_of(whole, "fields"), "");
}

TEST(OnnxLabels, AModelIsToldByItsGraph) {
  std::string version = "\x08\x09";
  EXPECT_TRUE(is_model(version + field(7, "graph") + metadata("author", "x")));
  EXPECT_FALSE(is_model(version + metadata("author", "x"))) << "no graph";
  EXPECT_FALSE(is_model("no model at all"));
  EXPECT_FALSE(is_model(""));
  EXPECT_FALSE(is_model(version + field(7, std::string(300, 'g')).substr(0, 200))) << "cut off";
}

TEST(OnnxLabels, DamagedBytes_HaveNoNames) {
  std::string whole = field(7, "graph") + metadata("names", "{0: 'person'}");
  ASSERT_EQ(packed_names(whole), Labels{"person"});
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) EXPECT_EQ(packed_names(whole.substr(0, bytes)), Labels{});
  EXPECT_EQ(packed_names(std::string(100, '\xff')), Labels{});
  EXPECT_EQ(packed_names("\x0f" + whole), Labels{}) << "no such kind of field";
}

TEST(OnnxLabels, ARealModel_SaysItsNamesWithoutTheLibrary) {
  std::string model = testing::part("models/yolo11n.onnx");
  if (model.empty()) GTEST_SKIP() << "the model was not fetched";
  auto labels = labels_of({.library = "none", .model = model});
  ASSERT_TRUE(labels) << labels.error().message;
  EXPECT_EQ(labels->size(), 80u);
  EXPECT_EQ(labels->front(), "person");
}

}  // namespace
}  // namespace weir::onnx
