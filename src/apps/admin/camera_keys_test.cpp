#include "camera_keys.hpp"

#include "common/command.hpp"

#include <gtest/gtest.h>

namespace weir::apps {
namespace {

std::string changed(const std::vector<std::string>& words, const json::object& present = {}) {
  auto body = camera_changes(present, words);
  if (body) return json::to_text(*body);
  EXPECT_EQ(exit_code(body.error()), 2);
  return body.error().message;
}

TEST(CameraKeys, ValuesAreOfTheKindThatTheFieldTakes) {
  EXPECT_EQ(changed({"name=17", "max_fps=4", "min_score=0.5", "enabled=false", "allow_labels=person,car", "decode=full"}),
            R"({"name":"17","max_fps":4,"min_score":0.5,"enabled":false,"allow_labels":["person","car"],"decode":"full"})");
  EXPECT_EQ(changed({"rtsp_url=rtsp://h/x?a=b"}), R"({"rtsp_url":"rtsp://h/x?a=b"})");
}

TEST(CameraKeys, ANestedField_KeepsItsNeighbours) {
  json::object present{{"motion_gating", json::object{{"enabled", true}, {"downscale", 1}}}};
  EXPECT_EQ(changed({"motion_gating.enabled=false"}, present), R"({"motion_gating":{"enabled":false,"downscale":1}})");
  EXPECT_EQ(changed({"frame_size.width=1920", "frame_size.height=1080"}, present),
            R"({"frame_size":{"width":1920,"height":1080}})");
  EXPECT_TRUE(needs_present({"max_fps=1", "model.name=x"}));
  EXPECT_FALSE(needs_present({"min_score=0.5"}));
}

TEST(CameraKeys, NothingAfterTheSign_PutsTheDefaultBack) {
  EXPECT_EQ(changed({"allow_labels=", "crop="}), R"({"allow_labels":null,"crop":null})");
}

TEST(CameraKeys, StandInTheOrderOfTheConfiguration) {
  std::vector<std::string> keys = camera_keys();
  ASSERT_EQ(keys.size(), 28u);
  EXPECT_EQ(keys.front(), "name");
  EXPECT_EQ(keys.back(), "model.name");
}

TEST(CameraKeys, WrongUse_NamesTheKey_AndWhatIsAllowed) {
  EXPECT_TRUE(changed({"max_fsp=4"}).starts_with("a camera has no field \"max_fsp\" (the nearest: max_fps); there are: "));
  EXPECT_EQ(changed({"max_fps=fast"}), "max_fps must be a number");
  EXPECT_EQ(changed({"enabled=yes"}), "enabled must be true or false");
  EXPECT_EQ(changed({"rtsp://u:hunter2@h/x"}), "\"rtsp://***@h/x\" is not KEY=VALUE, such as max_fps=4");
  EXPECT_TRUE(changed({"zones=x"}).starts_with("zones are changed one by one: weir zone add"));
  EXPECT_TRUE(changed({"site_id=x"}).starts_with("site_id of a camera cannot change"));
  EXPECT_EQ(changed({"model=tflite"}),
            "model has fields of its own: model.detector, model.name; only model= (the default again) stands alone");
  EXPECT_TRUE(changed({"model.nam=x"}).find("the nearest: model.name") != std::string::npos);
}

}  // namespace
}  // namespace weir::apps
