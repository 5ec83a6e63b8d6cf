#include "weir/cluster/field_mapping.hpp"

#include <gtest/gtest.h>

namespace weir::cluster {
namespace {

TEST(FieldMapping, MostCertainBox_DecidesEachFieldOfItsOwn) {
  auto mapping = read_field_mapping(R"({"bodyType":{"car":"sedan","truck":"truck"},"carBrand":{"badge":"Fiat"},)"
                                    R"("carYear":{"hilux":2019}})");
  ASSERT_TRUE(mapping) << mapping.error().message;
  Detection said = describe(*mapping, {{"car", 0.6, {}}, {"truck", 0.9, {}}, {"badge", 0.3, {}}, {"person", 0.99, {}}});
  EXPECT_EQ(said, (Detection{.car_brand = "Fiat", .body_type = "truck"}));
  EXPECT_EQ(describe(*mapping, {{"hilux", 0.5, {}}}), (Detection{.car_year = 2019}));
}

TEST(FieldMapping, WithoutOne_AndWithoutItsLabels_NothingIsSaid) {
  EXPECT_EQ(describe({}, {{"car", 0.9, {}}}), Detection{});
  auto mapping = read_field_mapping(R"({"bodyType":{"car":"sedan"}})");
  ASSERT_TRUE(mapping);
  EXPECT_EQ(describe(*mapping, {}), Detection{});
  EXPECT_EQ(describe(*mapping, {{"Car", 0.9, {}}}), Detection{}) << "labels are compared as they are written";
}

TEST(FieldMapping, WhatIsWrong_IsNamedByFieldAndLabel) {
  for (const auto& [text, path] : std::map<std::string, std::string>{
           {R"({"bodytype":{"car":"sedan"}})", "bodytype"},
           {R"({"bodyType":["car"]})", "bodyType"},
           {R"({"bodyType":{"car":7}})", "bodyType.car"},
           {R"({"carYear":{"hilux":"2019"}})", "carYear.hilux"}}) {
    auto read = read_field_mapping(text);
    ASSERT_FALSE(read) << text;
    EXPECT_NE(read.error().message.find(path), std::string::npos) << read.error().message;
  }
  EXPECT_FALSE(read_field_mapping("not JSON"));
  EXPECT_FALSE(read_field_mapping("[]"));
}

}  // namespace
}  // namespace weir::cluster
