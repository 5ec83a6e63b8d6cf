#include "stream_wishes.hpp"

#include <gtest/gtest.h>

namespace weir::apps {
namespace {

std::string changed(const std::string& present, const std::vector<std::string>& words) {
  auto out = changed_wishes(json::parse_text(present)->as_object(), words);
  return out ? json::to_text(*out) : "error: " + out.error().message;
}

TEST(StreamWishes, Words_ChangeWhatTheyName_AndNothingElse) {
  EXPECT_EQ(changed("{}", {"forward=true", "destination=rtmp://a/b/key", "mode=passthrough", "max_fps=2.5"}),
            R"({"forward":true,"destination":"rtmp://a/b/key","mode":"passthrough","max_fps":2.5})");
  EXPECT_EQ(changed(R"({"forward":true,"mode":"annotate"})", {"forward=off"}),
            R"({"forward":false,"mode":"annotate"})");
  EXPECT_EQ(changed("{}", {"destination=rtmp://a/b/key?x=y"}), R"({"destination":"rtmp://a/b/key?x=y"})");
}

TEST(StreamWishes, NothingAfterTheSign_TakesAWishBack) {
  EXPECT_EQ(changed(R"({"forward":true,"mode":"annotate"})", {"forward=", "max_fps="}), R"({"mode":"annotate"})");
  EXPECT_EQ(changed(R"({"preferences":{"a":"1","b":"2"}})", {"pref.a="}), R"({"preferences":{"b":"2"}})");
  EXPECT_EQ(changed(R"({"preferences":{"a":"1"}})", {"pref.a="}), "{}");
}

TEST(StreamWishes, Preferences_AreNamedWithAPrefix) {
  EXPECT_EQ(changed("{}", {"pref.lang=es", "pref.model.size=s"}), R"({"preferences":{"lang":"es","model.size":"s"}})");
}

TEST(StreamWishes, AWrongWord_IsNamed_AndNoValueIsRepeated) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"rtmp://a/b/canary"}, {"=canary"}, {"forward=canary"}, {"max_fps=canary"},
        {"destinaton=canary"}, {"pref.=canary"}}) {
    auto out = changed_wishes({}, words);
    ASSERT_FALSE(out) << words[0];
    EXPECT_EQ(out.error().message.find("canary"), std::string::npos) << out.error().message;
  }
  EXPECT_NE(changed("{}", {"destinaton=x"}).find("the nearest: destination"), std::string::npos);
}

TEST(StreamWishes, AScreen_ShowsNoStreamKey) {
  json::value stream{{"stream_id", "live"}, {"wishes", {{"destination", "rtmp://host/app/canary"}, {"forward", true}}}};
  EXPECT_EQ(json::to_text(without_stream_key(stream)),
            R"({"stream_id":"live","wishes":{"destination":"rtmp://host/app/***","forward":true}})");
  EXPECT_EQ(json::to_text(without_stream_key(json::object{{"wishes", nullptr}})), R"({"wishes":null})");
}

TEST(StreamWishes, AProblem_IsTheGravestOfAHeldStream) {
  json::object stream{{"holder", "orch-1"}, {"degraded", nullptr}, {"last_error", "exit 50, an hour ago"},
                      {"worker", {{"state", "running"}, {"problem", "exit 50"}}},
                      {"forward", {{"state", "retrying"}, {"problem", "The destination refuses the connection."}}}};
  EXPECT_EQ(stream_problem(stream), "The destination refuses the connection.");
  stream["degraded"] = "The worker failed 6 times.";
  EXPECT_EQ(stream_problem(stream), "The worker failed 6 times.");
  stream["holder"] = nullptr;
  EXPECT_EQ(stream_problem(stream), "");
  stream["state"] = "unattended";
  EXPECT_EQ(stream_problem(stream), "nobody serves it: its orchestrator fell silent or lost its lease");
}

}  // namespace
}  // namespace weir::apps
