#include "weir/hook/post.hpp"

#include <gtest/gtest.h>

namespace weir::hook {
namespace {

TEST(HookUrl, HostPortAndPrefix_AreSplit) {
  struct Row {
    const char *url, *host, *port, *authority, *prefix;
  };
  for (const Row& row : {Row{"http://127.0.0.1:8086", "127.0.0.1", "8086", "127.0.0.1:8086", ""},
                         Row{"http://weir:8086/", "weir", "8086", "weir:8086", ""},
                         Row{"http://weir.example", "weir.example", "80", "weir.example", ""},
                         Row{"http://[::1]:9", "::1", "9", "[::1]:9", ""},
                         Row{"http://[fe80::1]", "fe80::1", "80", "[fe80::1]", ""},
                         Row{"http://weir:1/a/b//", "weir", "1", "weir:1", "/a/b"}}) {
    auto address = split_url(row.url);
    ASSERT_TRUE(address) << row.url;
    EXPECT_EQ(address->host, row.host);
    EXPECT_EQ(address->port, row.port);
    EXPECT_EQ(address->authority, row.authority);
    EXPECT_EQ(address->prefix, row.prefix);
  }
}

TEST(HookUrl, WhatIsNoPlainHttpAddress_IsRefused) {
  for (const char* url : {"", "weir:8086", "https://weir:8086", "HTTP://weir", "http://", "http://:80", "http://weir:",
                          "http://weir:0", "http://weir:65536", "http://weir:+80", "http://weir:8o", "http://a:1:2",
                          "http://[::1", "http://[::1]80", "http://[]:80", "http://user:pw@weir", "http://weir/?a=b",
                          "http://weir/#x", "http://we ir", "http://weir\r\nX: y", "http://weir/\xC3\xA4"})
    EXPECT_FALSE(split_url(url)) << url;
}

TEST(HookJson, WhatJsonReserves_IsEscaped) {
  EXPECT_EQ(json_string(""), R"("")");
  EXPECT_EQ(json_string("live/demo/in"), R"("live/demo/in")");
  EXPECT_EQ(json_string("a\"b\\c\n\t\x01\x7f"), R"("a\"b\\c\u000a\u0009\u0001\u007f")");
  EXPECT_EQ(json_string(std::string_view("\0x", 2)), R"("\u0000x")");
}

TEST(HookJson, Utf8_StaysAsItIs) {
  for (const char* text : {"\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80", "\xF0\x90\x80\x80",
                           "\xF4\x8F\xBF\xBF"})
    EXPECT_EQ(json_string(text), '"' + std::string(text) + '"');
}

TEST(HookJson, BytesThatAreNoUtf8_AreReplacedOneByOne) {
  struct Row {
    const char *bytes, *written;
  };
  for (const Row& row : {Row{"a\xFFz", R"("a\ufffdz")"}, Row{"\x80", R"("\ufffd")"}, Row{"\xC3", R"("\ufffd")"},
                         Row{"\xC0\xAF", R"("\ufffd\ufffd")"}, Row{"\xE2\x82", R"("\ufffd\ufffd")"},
                         Row{"\xC3\"", R"("\ufffd\"")"}, Row{"\xF5z", R"("\ufffdz")"},
                         Row{"\xED\xA0\x80", R"("\ufffd\ufffd\ufffd")"}, Row{"\xE0\x9F\xBF", R"("\ufffd\ufffd\ufffd")"},
                         Row{"\xF4\x90\x80\x80", R"("\ufffd\ufffd\ufffd\ufffd")"}})
    EXPECT_EQ(json_string(row.bytes), row.written);
}

TEST(HookRequest, TheEvent_IsPostedWithItsLength) {
  Address to{.host = "weir", .port = "8086", .authority = "weir:8086", .prefix = "/hub"};
  EXPECT_EQ(request_text(to, "not-ready", {"live/a/in", "lang=es", "rtmpConn", "7"}, ""),
            "POST /hub/v1/mediamtx/events/not-ready HTTP/1.1\r\nHost: weir:8086\r\nContent-Type: application/json\r\n"
            "Content-Length: 77\r\nConnection: close\r\n\r\n"
            R"({"path":"live/a/in","query":"lang=es","sourceType":"rtmpConn","sourceId":"7"})");
}

TEST(HookRequest, AToken_StandsInItsHeader) {
  std::string text = request_text({"h", "1", "h:1"}, "ready", {"live/a/in"}, "t0ken");
  EXPECT_NE(text.find("\r\nAuthorization: Bearer t0ken\r\n"), std::string::npos) << text;
  for (const char* bad : {"", "a b", "a\r\nX: y", "\xC3\xA4"}) EXPECT_FALSE(is_token(bad)) << bad;
  EXPECT_TRUE(is_token("abc.DEF-_~+/="));
}

TEST(HookAnswer, TheStatus_IsThatOfACompleteFirstLine) {
  EXPECT_EQ(status_of("HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n"), 202);
  EXPECT_EQ(status_of("HTTP/1.0 404\r\n"), 404);
  for (const char* none : {"", "HTTP/1.1 202 Acc", "HTTP/1.1 20\r\n", "HTTP/1.1 2020 X\r\n", "HTTP/2 200 OK\r\n\r\n",
                           "RTSP/1.0 200 OK\r\n", "HTTP/1.1x200 OK\r\n", "HTTP/1.1 2x0 OK\r\n", "\r\n\r\n"})
    EXPECT_EQ(status_of(none), 0) << none;
}

}  // namespace
}  // namespace weir::hook
