#include "weir/link/look.hpp"

#include <gtest/gtest.h>

namespace weir::link {
namespace {

Result<Look> read(std::string_view text) {
  auto parsed = json::parse_text(text);
  EXPECT_TRUE(parsed) << text;
  return read_look(*parsed);
}

TEST(Look, SurvivesARoundTrip) {
  Look look{.protocol = kProtocol,
            .cameras = {{.camera = CameraId::trusted("a"),
                         .streaming = true,
                         .failures = 3,
                         .inferred = 7,
                         .behind = true,
                         .frame_age = 250ms},
                        {.camera = CameraId::trusted("b"), .error = restart::StreamErrorCode::tcp_timeout}},
            .stuck = {CameraId::trusted("b")}};
  auto back = read(json::to_text(write_look(look)));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(*back, look);
}

// As a worker of protocol 0 writes its page for people, by which a manager judged it then.
TEST(Look, TheStateOfAnOlderWorker_IsRead) {
  auto look = read(R"({"standby":false,"draining":false,"ready":true,"delivering":1,"pipeline_fps":5.9,"published":12,
    "spooled":0,"cameras":[
      {"camera_uuid":"a","name":"Door","site_id":"s","tenant_id":"t","state":"STREAMING","paused":false,"fps":6,
       "behind":false,"codec":"h264","width":640,"height":360,"decoding":"full","keyframe_interval_s":1,"received":40,
       "decoded":40,"inferred":40,"dropped":0,"dials":1,"errors":0,"last_frame_age_s":0.12,"lease_version":5},
      {"camera_uuid":"b","state":"DISCONNECTED","behind":false,"inferred":0,"errors":4,"last_frame_age_s":null,
       "error":{"code":"RTSP_AUTH_FAILED","detail":"401","retry_in_ms":900}}],
    "stuck":[{"camera_uuid":"b","what":"its thread has ended"}]})");
  ASSERT_TRUE(look) << look.error().message;
  EXPECT_EQ(look->protocol, 0);
  ASSERT_EQ(look->cameras.size(), 2u);
  EXPECT_TRUE(look->cameras[0].streaming);
  EXPECT_EQ(look->cameras[0].inferred, 40);
  EXPECT_EQ(look->cameras[0].frame_age, 120ms);
  EXPECT_FALSE(look->cameras[1].streaming);
  EXPECT_EQ(look->cameras[1].failures, 4);
  EXPECT_EQ(look->cameras[1].frame_age, std::nullopt);
  EXPECT_EQ(look->cameras[1].error, restart::StreamErrorCode::rtsp_auth_failed);
  EXPECT_EQ(look->stuck, std::vector{CameraId::trusted("b")});
}

// Each of these once ended the manager with an exception, or was taken for a worker without cameras.
TEST(Look, OfAWrongType_IsAnErrorAndNoException) {
  for (const char* text :
       {R"([])", R"(null)", R"("STREAMING")", R"({})", R"({"cameras":{}})", R"({"cameras":[1]})", R"({"cameras":[{}]})",
        R"({"cameras":[{"camera_uuid":7}]})", R"({"cameras":[{"camera_uuid":""}]})",
        R"({"cameras":[{"camera_uuid":"a","errors":"many"}]})", R"({"cameras":[{"camera_uuid":"a","behind":1}]})",
        R"({"cameras":[{"camera_uuid":"a","last_frame_age_s":"old"}]})",
        R"({"cameras":[{"camera_uuid":"a","error":5}]})",
        R"({"cameras":[{"camera_uuid":"a","error":{"code":5}}]})", R"({"cameras":[],"stuck":[5]})",
        R"({"cameras":[],"stuck":{"camera_uuid":"a"}})", R"({"cameras":[],"protocol":"new"})"})
    EXPECT_FALSE(read(text)) << text;
}

TEST(Look, WhatALaterProtocolAdds_IsPassedOver) {
  auto look = read(R"({"protocol":9,"mood":"fine","cameras":[{"camera_uuid":"a","streaming":true,"smell":[],
    "error":{"code":"A_LATER_ERROR"},"last_frame_age_s":1e300}]})");
  ASSERT_TRUE(look) << look.error().message;
  EXPECT_EQ(look->protocol, 9);
  EXPECT_TRUE(look->cameras[0].streaming);
  EXPECT_EQ(look->cameras[0].error, std::nullopt);
  EXPECT_GT(look->cameras[0].frame_age, 1h);
}

TEST(Ready, NamesTheAddressAndTheProtocol_AndAnOlderLineHasProtocol0) {
  Ready ready{.control = "http://127.0.0.1:9108", .pid = 12, .protocol = kProtocol};
  auto back = json::read_text<Ready>(json::to_text(json::write_value(ready)));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->control, ready.control);
  EXPECT_EQ(back->protocol, kProtocol);
  auto older = json::read_text<Ready>(R"({"control":"http://127.0.0.1:9108","pid":12})");
  ASSERT_TRUE(older);
  EXPECT_EQ(older->protocol, 0);
  for (const char* text : {"", "ready", "[]", "{}", R"({"control":5})", R"({"control":null})"})
    EXPECT_FALSE(json::read_text<Ready>(text)) << text;
}

}  // namespace
}  // namespace weir::link
