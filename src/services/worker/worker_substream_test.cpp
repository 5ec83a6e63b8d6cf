// Which of a camera's two streams is used, and what the picture's size means on the smaller one.
#include "worker_testing.hpp"

namespace weir::worker {
namespace {

// Keyframes every 0.06 s are frequent here, every 0.2 s rare.
constexpr int kFrequent = 3, kRare = 10;

class SubstreamTest : public WorkerTest {
 protected:
  SubstreamTest() { main_->keyframe_every = kRare; }
  Source with_substream() {
    Source made = source("a");
    made.config.substream_url = Secret("rtsp://h/a-sub");
    return made;
  }
  void begin() { begin(with_substream()); }
  void begin(const Source& source) { make({source}, {.adaptive_keyframe_max_s = 0.1}); }
  bool on_the_substream() {
    return eventually(10s, [&] { return sub_->decoded + sub_->alone > 5 && is("a", "STREAMING"); });
  }
  // Long enough for the keyframes to prove to be rare once more.
  bool goes_on_with_the_main_stream() {
    if (!eventually(10s, [&] { return main_->dials == 2 && is("a", "STREAMING"); })) return false;
    int decoded = main_->decoded;
    return eventually(10s, [&] { return main_->decoded > decoded + 4 * kRare; }) && main_->dials == 2;
  }

  std::shared_ptr<FakeCamera> main_ = fake("a"), sub_ = fake("a-sub");
};

TEST_F(SubstreamTest, RareKeyframes_MoveTheCameraToItsSubstream) {
  begin();
  EXPECT_TRUE(on_the_substream());
  EXPECT_EQ(main_->closed, 1);
}

TEST_F(SubstreamTest, SubstreamThatCannotBeHad_IsReported_AndTheMainStreamGoesOn) {
  sub_->refusals.assign(20, StreamErrorCode::rtsp_not_found);
  begin();
  EXPECT_TRUE(goes_on_with_the_main_stream());
  EXPECT_EQ(sub_->dials, 1) << "not again for minutes";
  EXPECT_EQ(heard("stream.error.t.s.a", "substream"), 1);
  EXPECT_EQ(heard("stream.error.t.s.a", "RTSP_NOT_FOUND"), 1);
}

TEST_F(SubstreamTest, SubstreamWithoutADecodablePicture_IsOneThatCannotBeHad) {
  sub_->damaged = true;
  begin();
  EXPECT_TRUE(goes_on_with_the_main_stream());
  EXPECT_EQ(sub_->dials, 1);
}

TEST_F(SubstreamTest, SubstreamThatBreaksOffAfterPictures_IsTriedAgain) {
  begin();
  ASSERT_TRUE(on_the_substream());
  sub_->up = false;
  ASSERT_TRUE(eventually(10s, [&] { return sub_->closed == 1; }));
  sub_->up = true;
  EXPECT_TRUE(eventually(10s, [&] { return sub_->dials == 2 && is("a", "STREAMING"); }));
  EXPECT_EQ(main_->dials, 1);
}

// A recorder that restarts refuses both streams, for as long as it takes.
TEST_F(SubstreamTest, SubstreamThatCannotBeReached_IsDialledUntilItIsBack_AndTheMainStreamOnceInAWhile) {
  using enum StreamErrorCode;
  sub_->refusals = {std::nullopt, tcp_refused, tcp_timeout, dns_failed};
  main_->refusals = {std::nullopt, stalled};
  begin();
  ASSERT_TRUE(on_the_substream());
  sub_->up = false;
  ASSERT_TRUE(eventually(10s, [&] { return sub_->closed == 1; }));
  sub_->up = true;
  EXPECT_TRUE(eventually(10s, [&] { return main_->dials == 2; }));
  EXPECT_EQ(sub_->dials, 4);
  EXPECT_TRUE(eventually(10s, [&] { return sub_->dials == 5 && is("a", "STREAMING"); }));
  EXPECT_EQ(main_->dials, 2);
  EXPECT_EQ(heard("stream.error.t.s.a", "substream"), 0);
}

TEST_F(SubstreamTest, MainStreamThatIsThereWhileTheSubstreamCannotBeReached_IsUsed) {
  using enum StreamErrorCode;
  sub_->refusals = {std::nullopt, tcp_refused, tcp_timeout, dns_failed, tcp_refused};
  begin();
  ASSERT_TRUE(on_the_substream());
  sub_->up = false;
  ASSERT_TRUE(eventually(10s, [&] { return sub_->closed == 1; }));
  ASSERT_TRUE(eventually(10s, [&] { return main_->dials == 2 && is("a", "STREAMING"); }));
  EXPECT_TRUE(eventually(10s, [&] { return main_->dials == 3 && is("a", "STREAMING"); }));
  EXPECT_EQ(sub_->dials, 5) << "once more, while the main stream is known to be there";
  EXPECT_EQ(heard("stream.error.t.s.a", "the substream cannot be had"), 1);
}

TEST_F(SubstreamTest, OneLongIntervalAmongShortOnes_DoesNotMoveTheCamera) {
  main_->keyframe_every = kFrequent;
  main_->no_key_before = 2 * kRare;
  begin();
  EXPECT_TRUE(eventually(10s, [&] { return main_->decoded + main_->alone > 5 * kRare; }));
  EXPECT_EQ(sub_->dials, 0);
}

TEST_F(SubstreamTest, ConfigurationThatWantsEveryPicture_BringsTheMainStreamBack) {
  Source full = with_substream(), ungated = with_substream();
  full.config.decode = camera::Decode::full;
  ungated.config.motion_gating.enabled = false;
  begin();
  int moves = 1;
  for (const Source& changed : {full, ungated}) {
    ASSERT_TRUE(eventually(10s, [&] { return sub_->dials == moves && is("a", "STREAMING"); })) << moves;
    worker_->add(changed);
    ++moves;
    EXPECT_TRUE(eventually(10s, [&] { return main_->dials == moves && is("a", "STREAMING"); })) << moves;
    int decoded = main_->decoded;
    EXPECT_TRUE(eventually(10s, [&] { return main_->decoded > decoded + 4 * kRare; }));
    EXPECT_EQ(sub_->dials, moves - 1);
    worker_->add(with_substream());
  }
}

TEST_F(SubstreamTest, ConfigurationThatChangesWhileTheSubstreamIsDown_DialsTheMainStream) {
  begin();
  ASSERT_TRUE(on_the_substream());
  sub_->up = false;
  ASSERT_TRUE(eventually(10s, [&] { return sub_->closed == 1; }));
  Source changed = with_substream();
  changed.config.decode = camera::Decode::full;
  worker_->add(changed);
  EXPECT_TRUE(eventually(10s, [&] { return main_->dials == 2 && is("a", "STREAMING"); }));
}

// What people draw, they draw on the main stream.
class SizesTest : public SubstreamTest {
 protected:
  SizesTest() { main_->width = 640, main_->height = 480; }
};

TEST_F(SizesTest, ZonesAndCrop_AreInPixelsOfTheMainStream_OnTheSubstreamToo) {
  Source drawn = with_substream();
  // The detector's box has its centre at (20, 25) of any picture: of the substream that is (200, 250) of the main one.
  drawn.config.zones = {{.zone_id = 7, .name = "door", .polygon = {{150, 200}, {250, 200}, {250, 300}, {150, 300}}}};
  drawn.config.crop = camera::Crop{100, 100, 320, 240};
  begin(drawn);
  ASSERT_TRUE(on_the_substream());
  EXPECT_TRUE(eventually(10s, [&] { return heard("detections.t.s.a", "\"zone_ids\":[7]") > 2; }));
  EXPECT_EQ(eyes_->region_x, 10);
  EXPECT_EQ(eyes_->region_width, 32);
}

// The control plane warns of zones outside it.
TEST_F(SizesTest, StatusOfACameraOnItsSubstream_TellsTheMainStreamsSize) {
  begin();
  ASSERT_TRUE(on_the_substream());
  // Once for each of the two streams.
  EXPECT_TRUE(eventually(10s, [&] { return heard("stream.status.t.s.a", "\"state\":\"STREAMING\"") >= 2; }));
  EXPECT_EQ(heard("stream.status.t.s.a", "\"width\":640,\"height\":480"), heard("stream.status.t.s.a", "\"width\""));
  EXPECT_GE(heard("stream.status.t.s.a", "\"width\":640"), 2);
}

TEST_F(SizesTest, LeastAreaOfMotion_IsInPixelsOfTheMainStream_OnTheSubstreamToo) {
  Source drawn = with_substream();
  drawn.config.motion_gating.min_area_px = 50'000;  // a sixth of the main stream's picture
  begin(drawn);
  ASSERT_TRUE(on_the_substream());
  std::int64_t before = count("a", "inferred");
  EXPECT_TRUE(eventually(10s, [&] { return count("a", "inferred") > before + 10; }));
}

TEST_F(SizesTest, FirstPictureOfASubstreamThatDoesNotTellItsSize_IsCutAsDrawn) {
  sub_->late_size = true;
  Source drawn = with_substream();
  drawn.config.crop = camera::Crop{100, 100, 320, 240};
  begin(drawn);
  ASSERT_TRUE(on_the_substream());
  auto small = [&](const Eyes::Note& note) { return note.width == sub_->width; };
  ASSERT_TRUE(eventually(10s, [&] { return std::ranges::any_of(eyes_->notes(), small); }));
  for (const Eyes::Note& note : eyes_->notes()) EXPECT_EQ(note.region_x, small(note) ? 10 : 100);
}

}  // namespace
}  // namespace weir::worker
