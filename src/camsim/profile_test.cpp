#include "weir/camsim/fault.hpp"

#include <gtest/gtest.h>

namespace weir::camsim {
namespace {

TEST(CamsimProfile, Text_ChangesWhatItNames) {
  auto profile = parse_profile("codec=h265,fps=15,keyframe_s=0.5,audio=true,scene=still");
  ASSERT_TRUE(profile);
  EXPECT_EQ(profile->codec, Codec::h265);
  EXPECT_EQ(profile->scene, Scene::still);
  EXPECT_EQ(profile->fps, 15);
  EXPECT_EQ(profile->keyframe_frames(), 8);
  EXPECT_TRUE(profile->audio);
  EXPECT_EQ(profile->width, Profile{}.width);
}

TEST(CamsimProfile, Text_ReadsBackTheSame) {
  auto profile = parse_profile("codec=mjpeg,width=640,height=360,bitrate_kbps=500,stamp=false");
  ASSERT_TRUE(profile);
  auto again = parse_profile(to_text(*profile));
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, *profile);
}

TEST(CamsimProfile, WrongText_IsRefusedByName) {
  for (auto [text, named] : {std::pair{"codec=vp9", "codec"},
                             {"fsp=10", "fsp"},
                             {"fps=0", "fps"},
                             {"fps=ten", "fps"},
                             {"width=641", "width"},
                             {"codec=mjpeg,height=100", "height"},
                             {"still", "still"},
                             {"codec=mjpeg,width=2048", "width"},
                             {"intra_refresh=true,bframes=2", "bframes"}}) {
    auto profile = parse_profile(text);
    ASSERT_FALSE(profile) << text;
    EXPECT_NE(profile.error().message.find(named), std::string::npos) << text << ": " << profile.error().message;
  }
}

TEST(CamsimFault, Body_IsReadWithItsParameters) {
  auto fault = json::read_text<CameraFault>(R"({"kind":"max_sessions","sessions":2,"policy":"kick_old","for_s":3})",
                                            json::Unknown::reject);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, FaultKind::max_sessions);
  EXPECT_EQ(fault->sessions, 2);
  EXPECT_EQ(fault->policy, SessionPolicy::kick_old);
  EXPECT_EQ(fault->for_s, 3);
}

TEST(CamsimFault, WrongBody_IsRefused) {
  for (const char* text :
       {R"({})", R"({"kind":"explode"})", R"({"kind":"resolution","width":640})", R"({"kind":"codec"})",
        R"({"kind":"slow","rate":0})", R"({"kind":"garbage","frames":-1})", R"({"kind":"none","x":1})"})
    EXPECT_FALSE(json::read_text<CameraFault>(text, json::Unknown::reject)) << text;
}

TEST(CamsimFault, Resolution_MustFitTheCodec) {
  auto fault = CameraFault{.kind = FaultKind::resolution, .width = 640, .height = 362};
  EXPECT_TRUE(profile_under(fault, {}));
  EXPECT_FALSE(profile_under(fault, {.codec = Codec::mjpeg}));
  auto shown = profile_under({.kind = FaultKind::codec, .codec = Codec::h265}, {});
  ASSERT_TRUE(shown);
  EXPECT_EQ(shown->codec, Codec::h265);
}

}  // namespace
}  // namespace weir::camsim
