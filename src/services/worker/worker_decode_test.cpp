// What of a stream is decoded, and that nothing which moves is lost between the decoder and the detector.
#include "worker_testing.hpp"

namespace weir::worker {
namespace {

// A camera with a keyframe a second, that shows nothing until it is told to; time passes quickly until then.
class DecodeTest : public WorkerTest {
 protected:
  DecodeTest() { camera_->keyframe_every = 50; }
  Source with(double max_fps) {
    Source made = source("a");
    made.config.max_fps = max_fps;
    return made;
  }
  // Decoded by its keyframes, at its own pace from here on.
  bool is_still(const Source& source) {
    camera_->moving = 0;
    camera_->pace_ms = 5;
    make({source});
    bool still = eventually(10s, [&] { return decoding() == "keyframes"; });
    camera_->pace_ms = 20;
    return still;
  }
  std::string decoding() { return std::string(about("a")["decoding"].as_string()); }
  void show_no_more_keyframes() { camera_->no_key_before = 1'000'000; }
  bool receives_more(int packets) {
    std::int64_t before = count("a", "received");
    return eventually(10s, [&] { return count("a", "received") >= before + packets; });
  }
  bool decodes_more(int pictures) {
    std::int64_t before = count("a", "decoded");
    return eventually(3s, [&] { return count("a", "decoded") >= before + pictures; });
  }

  std::shared_ptr<FakeCamera> camera_ = fake("a");
};

TEST_F(DecodeTest, WhatMovedBeforeAKeyframe_IsLookedAtPictureByPicture) {
  eyes_->takes_ms = 30;
  ASSERT_TRUE(is_still(with(10)));
  size_t before = eyes_->notes().size();
  std::int64_t dropped = count("a", "dropped");
  camera_->moving = 1;
  ASSERT_TRUE(eventually(10s, [&] { return eyes_->notes().size() >= before + 10; }));
  auto notes = eyes_->notes();
  std::int64_t key = notes[before].number / 50 * 50;
  for (size_t i = 0; i < 10; ++i)  // the last one is the next keyframe
    EXPECT_EQ(notes[before + i].number, key + 5 * (static_cast<std::int64_t>(i) + 1));
  EXPECT_EQ(count("a", "dropped"), dropped);
}

TEST_F(DecodeTest, WhatMovedBeforeTheStreamBrokeOff_IsSeen) {
  ASSERT_TRUE(is_still(with(100)));
  show_no_more_keyframes();
  int before = heard("detections.t.s.a");
  camera_->moving = 1;
  ASSERT_TRUE(receives_more(5));
  EXPECT_EQ(heard("detections.t.s.a"), before) << "not decoded yet";
  camera_->up = false;
  EXPECT_TRUE(eventually(3s, [&] { return heard("detections.t.s.a") > before; }));
}

TEST_F(DecodeTest, OtherWayOfDecoding_GoesOnWithoutAKeyframe_WhereEverythingWasDecoded) {
  make({source("a")});
  ASSERT_TRUE(receives_more(5));
  show_no_more_keyframes();
  Source full = source("a"), ungated = source("a");
  full.config.decode = camera::Decode::full;
  ungated.config.motion_gating.enabled = false;
  for (const Source& changed : {full, source("a"), ungated}) {
    worker_->add(changed);
    ASSERT_TRUE(receives_more(2));
    EXPECT_TRUE(decodes_more(5));
  }
}

TEST_F(DecodeTest, OtherWayOfDecoding_BeginsWithWhatWasKept_WhereItWasStill) {
  ASSERT_TRUE(is_still(source("a")));
  show_no_more_keyframes();
  Source full = source("a");
  full.config.decode = camera::Decode::full;
  worker_->add(full);
  EXPECT_TRUE(decodes_more(20));
  EXPECT_EQ(decoding(), "full");
}

TEST_F(DecodeTest, KeyframesThatAreNoPicturesByThemselves_AreDecodedWithAllTheOthers) {
  camera_->keyframe_every = 5;
  camera_->fields = true;
  ASSERT_TRUE(is_still(source("a")));
  EXPECT_TRUE(decodes_more(20));
  EXPECT_EQ(camera_->alone, 2);
  EXPECT_EQ(count("a", "errors"), 0);
}

TEST_F(DecodeTest, KeyframesOnly_OfAStreamWhoseKeyframesAreNoPictures_IsDecodedInFull) {
  camera_->keyframe_every = 5;
  camera_->fields = true;
  Source keyframes = source("a");
  keyframes.config.decode = camera::Decode::keyframes;
  make({keyframes});
  EXPECT_TRUE(eventually(3s, [&] { return count("a", "decoded") > 20; }));
  EXPECT_EQ(count("a", "errors"), 0);
}

TEST_F(DecodeTest, KeyframesThatStopComing_AreAnErrorWhereNothingElseIsDecoded) {
  Source keyframes = source("a");
  keyframes.config.decode = camera::Decode::keyframes;
  make({keyframes});
  ASSERT_TRUE(eventually(10s, [&] { return count("a", "decoded") >= 3; }));
  show_no_more_keyframes();
  camera_->pace_ms = 0;  // ten minutes of its time
  EXPECT_TRUE(eventually(30s, [&] {
    return camera_->dials >= 2 &&
           metrics_.text().find("stream_errors_total{camera_uuid=\"a\",code=\"DECODE_ERROR\"}") != std::string::npos;
  })) << metrics_.text();
}

// Under one version of the lease, no two pictures have one number.
TEST_F(DecodeTest, FrameIds_RiseOverNewConnections_AndOverAnotherAddress) {
  make({source("a")});
  auto hears_more = [&] {
    int before = heard("detections.t.s.a");
    return eventually(10s, [&] { return heard("detections.t.s.a") > before + 3; });
  };
  ASSERT_TRUE(hears_more());
  camera_->up = false;
  ASSERT_TRUE(eventually(10s, [&] { return camera_->closed == 1; }));
  camera_->up = true;
  ASSERT_TRUE(hears_more());
  Source elsewhere = source("a");
  elsewhere.config.rtsp_url = Secret("rtsp://h/elsewhere");
  worker_->add(elsewhere);
  ASSERT_TRUE(eventually(10s, [&] { return camera("rtsp://h/elsewhere")->dials == 1; }));
  ASSERT_TRUE(hears_more());
  std::int64_t last = -1;
  std::lock_guard guard(mutex_);
  for (const event::Event& event : heard_) {
    if (event.routing_key != "detections.t.s.a") continue;
    std::int64_t frame = json::parse_text(event.payload)->at("frame_id").as_int64();
    EXPECT_GT(frame, last);
    last = frame;
  }
}

}  // namespace
}  // namespace weir::worker
