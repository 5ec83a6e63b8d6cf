#include "stream_board.hpp"

#include <gtest/gtest.h>

namespace weir::control_plane {
namespace {

class Board : public testing::Test {
 protected:
  void said(const std::string& kind, std::int64_t version, const std::string& more) {
    StoredEvent event;
    event.topic = event::kStatusTopic;
    event.routing_key = fmt::format("stream.{}.t.s.c-1", kind);
    event.payload = fmt::format(
        R"({{"camera_uuid":"c-1","lease_version":{},"ts":"2026-01-31T09:05:07.123Z",{}}})", version, more);
    board.note(event, Instant{});
  }
  json::value about(std::int64_t grant, bool released = false) const {
    lease::LeaseRow row{CameraId::trusted("c-1")};
    row.grant = lease::Version{grant};
    row.released = released;
    return board.about(row, Instant{} + 3s);
  }
  StreamBoard board;
};

TEST_F(Board, SaysWhatTheOwnerSaidLast_AndWhyItDoesNotStream) {
  EXPECT_TRUE(about(5).is_null());
  said("status", 5, R"("state":"CONNECTING")");
  said("error", 5, R"("code":"TCP_REFUSED","detail":"nobody listens there")");
  EXPECT_EQ(about(5).at("state").as_string(), "CONNECTING");
  EXPECT_EQ(about(5).at("error").at("code").as_string(), "TCP_REFUSED");
  EXPECT_EQ(about(5).at("age_s").to_number<double>(), 3);
  said("status", 6, R"("state":"STREAMING","fps":5.5)");
  EXPECT_EQ(about(5).at("state").as_string(), "STREAMING") << "a rotation stays within the tenure";
  EXPECT_EQ(about(5).at("fps").as_double(), 5.5);
  EXPECT_FALSE(about(5).as_object().contains("error"));
}

TEST_F(Board, ACameraThatIsLookedAtTooSeldom_SaysHowOften_UntilItHasCaughtUp) {
  said("status", 5, R"("state":"STREAMING","looked_fps":1.3,"wanted_fps":6,"code":"OVERLOADED","detail":"too seldom")");
  EXPECT_EQ(about(5).at("looked_fps").as_double(), 1.3);
  EXPECT_EQ(about(5).at("wanted_fps").to_number<double>(), 6);
  EXPECT_EQ(about(5).at("error").at("code"), "OVERLOADED");
  said("status", 5, R"("state":"STREAMING","looked_fps":6,"wanted_fps":6)");
  EXPECT_FALSE(about(5).as_object().contains("error"));
}

TEST_F(Board, ThePicturesSize_OutlivesRotationsAndOwners) {
  const CameraId camera = CameraId::trusted("c-1");
  EXPECT_FALSE(board.size_of(camera));
  said("status", 5, R"("state":"STREAMING","width":1280,"height":720)");
  EXPECT_EQ(about(5).at("width").as_int64(), 1280);
  said("status", 9, R"("state":"CONNECTING")");
  said("status", 9, R"("state":"STREAMING","width":-1,"height":"x")");
  ASSERT_TRUE(board.size_of(camera)) << "the camera is the same, whoever has it";
  EXPECT_EQ(board.size_of(camera)->height, 720);
  said("status", 9, R"("state":"STREAMING","width":640,"height":360)");
  EXPECT_EQ(board.size_of(camera)->width, 640);
}

TEST_F(Board, LongTexts_AreCut_BetweenCharacters) {
  std::string long_text;
  for (int i = 0; i < 1000; ++i) long_text += "ü";
  said("error", 5, fmt::format(R"("code":"{0}","detail":"x{0}")", long_text));
  EXPECT_EQ(about(5).at("error").at("code").as_string(), long_text.substr(0, 64));
  EXPECT_EQ(about(5).at("error").at("detail").as_string(), "x" + long_text.substr(0, 510));
  said("status", 5, fmt::format(R"("state":"{}")", long_text));
  EXPECT_EQ(about(5).at("state").as_string().size(), 64u);
}

TEST_F(Board, AModelThatFails_IsTold_UntilASummarySaysNothingOfIt) {
  said("status", 5, R"("state":"STREAMING")");
  said("error", 5, R"("code":"MODEL_ERROR","detail":"no such file")");
  said("status", 5, R"("state":"STREAMING","code":"MODEL_ERROR","detail":"no such file")");
  EXPECT_EQ(about(5).at("error").at("code").as_string(), "MODEL_ERROR");
  EXPECT_EQ(about(5).at("error").at("detail").as_string(), "no such file");
  said("status", 5, R"("state":"STREAMING")");
  EXPECT_FALSE(about(5).as_object().contains("error"));
}

TEST_F(Board, WordsOfAFormerOwner_AndOfNobody_AreNotTold) {
  said("status", 5, R"("state":"STREAMING")");
  EXPECT_TRUE(about(7).is_null()) << "another grant";
  EXPECT_TRUE(about(5, true).is_null()) << "released";
  board.forget();
  EXPECT_TRUE(about(5).is_null());
}

TEST_F(Board, WhatIsNotAStatus_IsPassedOver) {
  for (auto [topic, key, payload] :
       {std::tuple{"detections.topic", "detections.t.s.c-1", R"({"camera_uuid":"c-1","lease_version":5})"},
        {"status.topic", "stream.status.t.s.c-1", "no JSON"},
        {"status.topic", "stream.status.t.s.c-1", R"([1])"},
        {"status.topic", "stream.status.t.s.c-1", R"({"camera_uuid":7,"lease_version":"x"})"}}) {
    StoredEvent event;
    event.topic = topic;
    event.routing_key = key;
    event.payload = payload;
    board.note(event, Instant{});
    EXPECT_TRUE(about(5).is_null()) << payload;
  }
}

}  // namespace
}  // namespace weir::control_plane
