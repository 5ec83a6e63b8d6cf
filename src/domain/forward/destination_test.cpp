#include "weir/forward/destination.hpp"

#include "weir/forward/failure.hpp"

#include <gtest/gtest.h>

namespace weir::forward {
namespace {

std::string why(const std::string& url) {
  auto read = read_destination(Secret(url));
  return read ? "" : read.error().message;
}

TEST(Destination, IsReadInItsParts) {
  auto to = read_destination(Secret("RTMP://live.example.com/app/abcd-efgh?auth=q1w2e3&x=9"));
  ASSERT_TRUE(to);
  EXPECT_EQ(to->url.reveal(), "rtmp://live.example.com/app/abcd-efgh?auth=q1w2e3&x=9");
  EXPECT_EQ(to->host, "live.example.com");
  EXPECT_EQ(to->port, 1935);
  EXPECT_FALSE(to->tls);
  EXPECT_EQ(to->app, "app");
  auto secure = read_destination(Secret("rtmps://[2001:db8::7]:4443/app/key"));
  ASSERT_TRUE(secure);
  EXPECT_EQ(secure->host, "2001:db8::7");
  EXPECT_EQ(secure->port, 4443);
  EXPECT_TRUE(secure->tls);
  EXPECT_EQ(read_destination(Secret("rtmps://h/app/key"))->port, 443);
}

TEST(Destination, EverythingAfterTheApplication_IsSecret) {
  auto to = read_destination(Secret("rtmp://user:pass1@h/app/inst/key-part?token=q1w2e3"));
  ASSERT_TRUE(to);
  Redactor redactor;
  for (const Secret& each : to->secrets) redactor.learn(each.reveal());
  EXPECT_EQ(redactor.redact("h app inst key-part inst/key-part token=q1w2e3 user pass1"),
            "h app *** *** *** *** *** ***");
}

TEST(Destination, WhatCannotBeDialled_IsRefused_WithoutRepeatingIt) {
  for (const std::string url :
       {"", "nonsense", "http://h/app/canary", "rtmp:///app/canary", "rtmp://h", "rtmp://h/", "rtmp://h/app",
        "rtmp://h/app/", "rtmp://h//canary", "rtmp://h:0/app/canary", "rtmp://h:70000/app/canary", "rtmpt://h/app/canary",
        "rtmp://h/app/can ary", "file:///canary"}) {
    auto read = read_destination(Secret(url));
    ASSERT_FALSE(read) << url;
    EXPECT_EQ(failure_of(read.error()).kind, Kind::config_invalid) << url;
    EXPECT_EQ(read.error().message.find("canary"), std::string::npos) << read.error().message;
  }
  EXPECT_EQ(why("rtmp://h/app"), "DEST_RTMP_URL must have the form rtmp://host/app/key");
  // FFmpeg would cut these URLs off and present another key.
  EXPECT_NE(why("rtmp://h/app/" + std::string(1000, 'k')), "");
  EXPECT_NE(why("rtmp://u:" + std::string(50, 'p') + "@h/app/key"), "");
}

TEST(Destination, TheInputsUrl_IsMadeFromHubAndStream) {
  EXPECT_EQ(hub_url(Secret("rtsp://mediamtx:8554"), "s1", "out")->reveal(), "rtsp://mediamtx:8554/live/s1/out");
  EXPECT_EQ(hub_url(Secret("rtsps://u:p@h:322/"), "a_B-9", "out")->reveal(), "rtsps://u:p@h:322/live/a_B-9/out");
  for (const std::string& id : std::vector<std::string>{"", "../x", "a/b", "a b", "ä", "a?b", std::string(65, 'a')})
    EXPECT_FALSE(hub_url(Secret("rtsp://h"), id, "out")) << id;
  for (const std::string base : {"", "h:8554", "http://h", "rtsp://", "rtsp://h?x=1"})
    EXPECT_FALSE(hub_url(Secret(base), "s1", "out")) << base;
}

}  // namespace
}  // namespace weir::forward
