#include "weir/stream/hook.hpp"

#include <gtest/gtest.h>

namespace weir::stream {
namespace {

std::map<std::string, std::string> shown(const Query& query) {
  std::map<std::string, std::string> out;
  for (const auto& [name, value] : query) out[name] = value.reveal();
  return out;
}
std::map<std::string, std::string> read(const std::string& query) { return shown(read_query(Secret(query))); }
using Pairs = std::map<std::string, std::string>;

TEST(Hook, AWholeBody_IsRead) {
  auto hook = read_hook_text(R"({"path":"live/abc/in","query":"lang=es","sourceType":"rtmpConn","sourceId":"1"})");
  ASSERT_TRUE(hook) << hook.error().message;
  EXPECT_EQ(hook->stream.str(), "abc");
  EXPECT_EQ(hook->source, (Source{"rtmpConn", "1", Secret("lang=es")}));
}

TEST(Hook, WhatMediaMtxLeavesOut_IsEmpty_AndUnknownThingsAreAccepted) {
  for (const char* body : {R"({"path":"live/abc/in"})", R"({"path":"live/abc/in","query":null,"sourceId":null})",
                           R"({"path":"live/abc/in","query":"","sourceType":"","sourceId":"","more":[1,2]})"}) {
    auto hook = read_hook_text(body);
    ASSERT_TRUE(hook) << body;
    EXPECT_EQ(hook->source, Source{});
  }
  EXPECT_EQ(read_hook_text(R"({"path":"live/a/in","sourceType":"carrierPigeon"})")->source.type, "carrierPigeon");
}

TEST(Hook, AWrongField_IsNamed_AndItsValueIsNotRepeated) {
  struct Case {
    std::string body, field;
  };
  auto with = [](std::string_view field, size_t length) {
    return fmt::format(R"({{"path":"live/a/in","{}":"{}"}})", field, std::string(length, 'x'));
  };
  for (const Case& each :
       {Case{R"({})", "path"}, Case{R"({"path":"live/canary/out"})", "path"}, Case{R"({"path":7})", "path"},
        Case{R"({"path":""})", "path"}, Case{fmt::format(R"({{"path":"live/{}/in"}})", std::string(600, 'c')), "path"},
        Case{R"({"path":"live/a/in","query":{"canary":1}})", "query"}, Case{with("query", kQueryMax + 1), "query"},
        Case{with("sourceType", 256), "sourceType"}, Case{with("sourceId", 256), "sourceId"},
        Case{R"(["canary"])", "body"}}) {
    auto hook = read_hook_text(each.body);
    ASSERT_FALSE(hook) << each.body;
    EXPECT_EQ(hook.error().code, Errc::invalid);
    EXPECT_EQ(hook.error().details.at("field").as_string(), each.field) << each.body;
    EXPECT_EQ(hook.error().message.find("canary"), std::string::npos);
  }
  EXPECT_TRUE(read_hook_text(with("query", kQueryMax)));
  EXPECT_TRUE(read_hook_text(with("sourceId", 255)));
  EXPECT_FALSE(read_hook_text("{"));
}

TEST(Query, RawAndEncodedAsAWhole_AreReadAlike) {
  struct Case {
    std::string raw, encoded;
    Pairs pairs;
  };
  for (const Case& each : {Case{"lang=es", "lang%3Des", {{"lang", "es"}}},
                           Case{"lang=es&x=a%20b", "lang%3Des%26x%3Da%2520b", {{"lang", "es"}, {"x", "a b"}}},
                           Case{"x=a%3Db%26c", "x%3Da%253Db%2526c", {{"x", "a=b&c"}}},
                           Case{"x=a+b&y=1%2B1", "x%3Da%2Bb%26y%3D1%252B1", {{"x", "a b"}, {"y", "1+1"}}},
                           Case{"a&b", "a%26b", {{"a", ""}, {"b", ""}}}, Case{"flag", "flag", {{"flag", ""}}},
                           Case{"", "", {}}}) {
    EXPECT_EQ(read(each.raw), each.pairs) << each.raw;
    EXPECT_EQ(read(each.encoded), each.pairs) << each.encoded;
  }
  EXPECT_EQ(read("lang%3des"), (Pairs{{"lang", "es"}})) << "small letters";
}

TEST(Query, OddQueries_DoNoHarm) {
  EXPECT_EQ(read("?lang=es"), (Pairs{{"lang", "es"}}));
  EXPECT_EQ(read("&&=x&lang=es&"), (Pairs{{"lang", "es"}}));
  EXPECT_EQ(read("a=1&a=2"), (Pairs{{"a", "1"}}));
  EXPECT_EQ(read("a=%zz%"), (Pairs{{"a", "%zz%"}}));
  EXPECT_EQ(read("url=rtmp://h/a?b=c"), (Pairs{{"url", "rtmp://h/a?b=c"}}));
  std::string many;
  for (int i = 0; i < 500; ++i) many += fmt::format("k{}=v&", i);
  EXPECT_EQ(read(many).size(), 64u);
}

}  // namespace
}  // namespace weir::stream
