#include "model_facts.hpp"

#include "part.hpp"
#include "temp_files.hpp"

#include <gtest/gtest.h>

#include <fstream>

namespace weir::apps {
namespace {

// An ONNX file's outermost field.
std::string field(int number, const std::string& bytes) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}

class ModelFactsTest : public ::testing::Test {
 protected:
  Result<detector::ModelFacts> facts(const std::string& bytes) {
    std::string path = folder_.path() + "/model";
    std::ofstream(path, std::ios::binary) << bytes;
    return model_facts(path);
  }
  static std::string onnx_with(const std::string& fields) {
    return field(7, "graph") + field(14, field(1, "weir_fields") + field(2, fields));
  }
  test::TempDir folder_;
};

TEST_F(ModelFactsTest, ContentDecidesWhichDetectorRunsIt) {
  for (auto [file, detector] :
       {std::pair{"models/efficientdet-lite0.tflite", "tflite"}, {"models/yolo11n.onnx", "onnx"}}) {
    std::string path = test::part(file);
    if (path.empty()) GTEST_SKIP() << file << " was not fetched";
    auto read = model_facts(path);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->detector, detector);
    EXPECT_EQ(read->fields, cluster::FieldMapping{});
  }
}

TEST_F(ModelFactsTest, WhatLabelsMean_StandsInTheFile) {
  auto read = facts(onnx_with(R"({"bodyType":{"car":"sedan"}})"));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->detector, "onnx");
  EXPECT_EQ(read->fields.body_type.at("car"), "sedan");
}

TEST_F(ModelFactsTest, WhatCannotBeUsed_IsAModelErrorThatNamesTheFile) {
  for (const std::string& bytes : {std::string("no model at all"), onnx_with(R"({"bodytype":{}})"), std::string()}) {
    auto read = facts(bytes);
    ASSERT_FALSE(read) << bytes;
    EXPECT_EQ(read.error().reason, "MODEL_ERROR");
    EXPECT_NE(read.error().message.find("/model"), std::string::npos) << read.error().message;
  }
  EXPECT_EQ(facts("no model at all").error().code, Errc::unsupported) << "fetching it again would not help";
}

}  // namespace
}  // namespace weir::apps
