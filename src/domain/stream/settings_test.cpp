#include "weir/stream/settings.hpp"

#include <gtest/gtest.h>

namespace weir::stream {
namespace {

const Secret kDestination{"rtmp://user:canary-pass@dest.example/app/canary-key?canary=1"};

Wishes query(const std::string& text, bool destination_allowed = false) {
  return wishes_of(read_query(Secret(text)), destination_allowed);
}
Result<Wishes> body(std::string_view text) { return read_wishes(*json::parse_text(text)); }
bool silent(std::string_view text) { return text.find("canary") == std::string_view::npos; }

TEST(StreamSettings, NobodySaysAnything_TheWorkerRunsAndNothingIsForwarded) {
  EXPECT_EQ(merge({}, {}, {}), (Settings{}));
  EXPECT_EQ(Settings{}.worker.mode, Mode::annotate);
  EXPECT_EQ(Settings{}.worker.max_fps, 5);
}

TEST(StreamSettings, TheStrongerSpeaker_Counts) {
  Wishes from_operator{.forward = true, .mode = Mode::annotate, .preferences = {{"lang", "de"}}};
  Wishes file{.forward = false, .destination = kDestination, .max_fps = 10,
              .preferences = {{"lang", "fr"}, {"a", "file"}}};
  Wishes publisher = query("lang=es&a=query&b=query&mode=passthrough&max_fps=2.5&forward=false");
  Settings merged = merge(from_operator, file, publisher);
  EXPECT_TRUE(merged.forward);
  EXPECT_EQ(merged.destination, kDestination);
  EXPECT_EQ(merged.worker.mode, Mode::annotate);
  EXPECT_EQ(merged.worker.max_fps, 10);
  EXPECT_EQ(merged.worker.preferences, (Preferences{{"lang", "de"}, {"a", "file"}, {"b", "query"}}));
  EXPECT_EQ(merged.problem, "");
  merged = merge({}, {}, publisher);
  EXPECT_EQ(merged.worker.mode, Mode::passthrough);
  EXPECT_EQ(merged.worker.max_fps, 2.5);
}

TEST(StreamSettings, APublisher_NamesADestinationOnlyWhereItMay) {
  std::string text = "forward=1&destination=" + percent_encode(kDestination.reveal());
  Settings refused = merge({}, {}, query(text)), allowed = merge({}, {}, query(text, true));
  EXPECT_FALSE(refused.forward);
  EXPECT_TRUE(refused.destination.empty());
  EXPECT_TRUE(refused.worker.preferences.empty());
  EXPECT_TRUE(allowed.forward);
  EXPECT_EQ(allowed.destination, kDestination);
}

TEST(StreamSettings, HowAPublisherShowsWhoItIs_IsNotPassedOn) {
  EXPECT_EQ(query("user=u&pass=canary&jwt=canary&token=canary&lang=es").preferences, (Preferences{{"lang", "es"}}));
}

TEST(StreamSettings, AWrongQuery_IsIgnoredAsAWhole_AndTakesNothingAway) {
  Wishes file{.forward = true, .destination = kDestination};
  for (std::string text : {"max_fps=canary&lang=es", "mode=canary&lang=es", "forward=canary&lang=es",
                           "max_fps=0&lang=es", "max_fps=nan&lang=es", "lang=%07canary", "la%0Ang=canary"}) {
    Settings merged = merge({}, file, query(text));
    EXPECT_TRUE(merged.forward) << text;
    EXPECT_TRUE(merged.worker.preferences.empty()) << text;
    EXPECT_NE(merged.problem.find("query"), std::string::npos) << text;
    EXPECT_TRUE(silent(merged.problem)) << merged.problem;
  }
}

TEST(StreamSettings, AWrongEntryOfTheOperatorOrTheFile_FailsSafe) {
  auto entry = read_streams_file(*json::parse_text(
      R"({"good":{"mode":"passthrough"}, "empty":null, )"
      R"("bad":{"mode":"passthrough","destination":"http://canary/x/y"}})"));
  ASSERT_TRUE(entry);
  EXPECT_EQ(merge({}, entry->at(*read_stream_id("good")), {}).worker.mode, Mode::passthrough);
  EXPECT_EQ(merge({}, entry->at(*read_stream_id("empty")), {}), Settings{});
  Wishes file{.forward = true, .destination = kDestination};
  for (const Settings& merged :
       {merge({}, entry->at(*read_stream_id("bad")), {}), merge({.problem = "mode is wrong"}, file, {})}) {
    EXPECT_EQ(merged.worker, WorkerSettings{});
    EXPECT_FALSE(merged.forward);
    EXPECT_NE(merged.problem.find("defaults"), std::string::npos);
    EXPECT_TRUE(silent(merged.problem)) << merged.problem;
  }
  EXPECT_FALSE(read_streams_file(json::array{}));
  EXPECT_FALSE(read_streams_file(*json::parse_text(R"({"a b":{}})")));
}

TEST(StreamSettings, ForwardingWithoutAUsableDestination_IsOff_AndSaysSo) {
  struct Case {
    Wishes wishes;
    std::string says;
  };
  for (const Case& each :
       {Case{{.forward = true}, "no destination is set"},
        Case{{.forward = true, .destination = Secret("http://canary/app/key")}, "must begin with rtmp:// or rtmps://"},
        Case{{.forward = true, .destination = Secret("rtmp://canary:99999/app/key")}, "its port"},
        Case{{.forward = true, .destination = Secret("rtmp://canary/app")}, "form rtmp://host/app/key"}}) {
    Settings merged = merge(each.wishes, {}, query("lang=es"));
    EXPECT_FALSE(merged.forward);
    EXPECT_TRUE(merged.destination.empty());
    EXPECT_NE(merged.problem.find(each.says), std::string::npos) << merged.problem;
    EXPECT_TRUE(silent(merged.problem)) << merged.problem;
    EXPECT_EQ(merged.worker.preferences.size(), 1u) << "the worker's settings are not affected";
  }
}

TEST(StreamSettings, AnEmptyDestination_TakesTheFilesAway) {
  Settings merged = merge({.destination = Secret("")}, {.forward = true, .destination = kDestination}, {});
  EXPECT_FALSE(merged.forward);
  EXPECT_TRUE(merged.destination.empty());
}

TEST(StreamSettings, ABody_ComesBackAsItWasRead_AndIsShownWithoutItsKey) {
  auto wishes = body(R"({"forward":true,"destination":"rtmps://dest.example:444/app/canary-key","mode":"passthrough",)"
                     R"("max_fps":7.5,"preferences":{"lang":"es","count":3,"half":0.5,"on":true}})");
  ASSERT_TRUE(wishes) << wishes.error().message;
  EXPECT_EQ(wishes->preferences, (Preferences{{"lang", "es"}, {"count", "3"}, {"half", "0.5"}, {"on", "true"}}));
  EXPECT_EQ(*read_wishes(write_wishes(*wishes, Credentials::shown)), *wishes);
  std::string text = json::to_text(write_wishes(*wishes, Credentials::redacted));
  EXPECT_TRUE(silent(text)) << text;
  EXPECT_NE(text.find("dest.example:444"), std::string::npos) << text;
}

TEST(StreamSettings, AWrongBody_NamesTheField_AndNotTheValue) {
  for (const auto& [text, field] : std::vector<std::pair<std::string, std::string>>{
           {R"({"forward":"canary"})", "forward"}, {R"({"destination":"canary"})", "destination"},
           {R"({"mode":"canary"})", "mode"}, {R"({"max_fps":1000})", "max_fps"},
           {R"({"preferences":["canary"]})", "preferences"},
           {R"({"preferences":{"a":{"b":"canary"}}})", "preferences.a"},
           {R"({"preferences":{"a b":"canary"}})", "preferences"}, {R"({"surprise":"canary"})", "surprise"}}) {
    auto wishes = body(text);
    ASSERT_FALSE(wishes) << text;
    EXPECT_EQ(wishes.error().details.at("field").as_string(), field) << text;
    EXPECT_TRUE(silent(wishes.error().message)) << wishes.error().message;
  }
}

TEST(StreamSettings, ADestination_IsShownWithHostAndApplicationOnly) {
  EXPECT_EQ(show_destination(kDestination), "rtmp://dest.example/app/***");
  EXPECT_EQ(show_destination(Secret("rtmps://[2001:db8::1]:4443/app/canary/more")),
            "rtmps://[2001:db8::1]:4443/app/***");
  EXPECT_EQ(show_destination(Secret("canary")), "***");
  EXPECT_EQ(show_destination(Secret("")), "");
}

}  // namespace
}  // namespace weir::stream
