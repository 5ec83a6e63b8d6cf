#include "weir/ports/model_files.hpp"

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(ModelFiles, LabelsAreTrimmedLines) {
  using Labels = std::vector<std::string>;
  EXPECT_EQ(split_labels(""), Labels{});
  EXPECT_EQ(split_labels("\n \n"), Labels{});
  EXPECT_EQ(split_labels("person"), Labels{"person"});
  EXPECT_EQ(split_labels(" person \r\n\ntraffic light\t\n\n"), (Labels{"person", "", "traffic light"}));
}

TEST(ModelFiles, WhatAModelNeedsAndCannotBeHad_IsAFailureOfTheModel) {
  EXPECT_EQ(*for_model(Result<int>(7)), 7);
  auto failed = for_model(Result<int>(Error{Errc::unavailable, "file", "x cannot be read"}));
  EXPECT_EQ(failed.error().reason, "MODEL_ERROR");
  EXPECT_EQ(failed.error().message, "x cannot be read");
}

}  // namespace
}  // namespace weir
