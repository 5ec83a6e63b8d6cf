#include "weir/base/secret.hpp"

#include <gtest/gtest.h>

#include <ostream>

namespace weir {
namespace {

template <class T>
concept Printable = requires(std::ostream& out, const T& v) {
  out << v;
};
static_assert(!Printable<Secret>);
static_assert(!std::is_convertible_v<Secret, std::string>);
static_assert(!std::is_convertible_v<std::string, Secret>);

TEST(Secret, Comparison_DependsOnContent) {
  EXPECT_EQ(Secret("a"), Secret("a"));
  EXPECT_NE(Secret("a"), Secret("b"));
  EXPECT_TRUE(equal_constant_time("abc", "abc"));
  EXPECT_FALSE(equal_constant_time("abc", "abd"));
  EXPECT_FALSE(equal_constant_time("abc", "ab"));
  EXPECT_TRUE(equal_constant_time("", ""));
}

TEST(RedactUrl, PlainUrls_StayReadable) {
  EXPECT_EQ(redact_url("rtsp://10.0.0.7:554/Streaming/Channels/101"), "rtsp://10.0.0.7:554/Streaming/Channels/101");
  EXPECT_EQ(redact_url("rtsp://[fe80::1]:554/x"), "rtsp://[fe80::1]:554/x");
  EXPECT_EQ(redact_url(""), "");
  EXPECT_EQ(redact_url("sqlite:/var/lib/weir/weir.db"), "sqlite:/var/lib/weir/weir.db");
}

TEST(RedactUrl, Credentials_AreReplaced_TheRestStays) {
  EXPECT_EQ(redact_url("rtsp://user:pass@host/x?token=y"), "rtsp://***@host/x?***");
  EXPECT_EQ(redact_url("rtsp://user:pass@host:554/x"), "rtsp://***@host:554/x");
  EXPECT_EQ(redact_url("rtsp://user@host/x#y"), "rtsp://***@host/x?***");
}

// Every shape in which users, cameras and drivers write a password.
const char* const kShapes[] = {
    "rtsp://user:{}@host/x",
    "rtsp://{}@host/x",
    "rtsp://user:{}@host:554/x?a=b",
    "rtsp://user:a@{}@host/x",
    "rtsp://user:a/{}@host/x",
    "rtsp://user:a?{}@host/x",
    "rtsp://user:a#{}@host/x",
    "rtsp://user:{}?b@host/x",
    "rtsp://user:{}:c@host/x",
    "rtsp://:{}@host",
    "rtsp://host/x?password={}",
    "rtsp://host/x?a=1&password={}&b=2",
    "rtsp://host/x?password=a@{}",
    "rtsp://host/x?password={}@b",
    "rtsp://user:pw@host/x?password=a@{}",
    "rtsp://host/x#{}",
    "rtsp://host/user=admin&password={}&channel=1&stream=0.sdp",
    "rtsp://host/user=admin_password={}_channel=1_stream=0.sdp?real_stream",
    "RTSP://user:{}@HOST/",
    "user:{}@host/x",
    "//user:{}@host/x",
    "rtsp:/user:{}@host/x",
    "rtsp:user:{}@host/x",
    "http://user:{}@host/snapshot.jpg",
    "postgres://weir:{}@db1:5432,db2:5432/weir?sslmode=require",
    "postgres://db/weir?user=weir&password={}",
    "rtsp://user:a://{}@host/x",
};

TEST(RedactUrl, Canary_NeverShows) {
  for (const char* shape : kShapes)
    for (const std::string& canary :
         {std::string("hunter2canary"), percent_encode("hunter2canary/ä@"), std::string("%68unter2canary")}) {
      std::string url = fmt::format(fmt::runtime(shape), canary);
      EXPECT_EQ(redact_url(url).find("unter2"), std::string::npos) << url << " -> " << redact_url(url);
    }
}

TEST(Redactor, Canary_NeverShows_HoweverALibraryQuotesIt) {
  for (const char* shape : kShapes) {
    if (std::string_view(shape).find('#') != std::string_view::npos) continue;  // a fragment is no credential
    Redactor redactor;
    std::string url = fmt::format(fmt::runtime(shape), "hunter2canary");
    redactor.learn_url(url);
    std::string said = redactor.redact(fmt::format("cannot open {}: 401 Unauthorized", url));
    EXPECT_EQ(said.find("hunter2canary"), std::string::npos) << said;
  }
}

TEST(Redactor, AllEncodings_OfOnePassword_AreKnown) {
  Redactor redactor;
  redactor.learn_url("rtsp://admin:p%40ss/w!rd@host/x");
  for (std::string_view form : {"p@ss/w!rd", "p%40ss/w!rd", "p%40ss%2Fw%21rd", "p%40ss%2fw%21rd"})
    EXPECT_EQ(redactor.redact(fmt::format("<{}>", form)), "<***>") << form;
  EXPECT_EQ(redactor.redact("user admin refused"), "user *** refused");
}

TEST(Redactor, ShortValues_AreIgnored_LongestMatchWins) {
  Redactor redactor;
  redactor.learn("ab");
  redactor.learn("secret");
  redactor.learn("secret-longer");
  EXPECT_EQ(redactor.redact("ab secret-longer secret"), "ab *** ***");
  EXPECT_EQ(redactor.redact(""), "");
}

TEST(Percent, EncodingAndDecoding_AreInverse) {
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  EXPECT_EQ(percent_decode(percent_encode(all)), all);
  EXPECT_EQ(percent_encode("a b/ä~"), "a%20b%2F%C3%A4~");
  EXPECT_EQ(percent_decode("%4a%4A%zz%4"), "JJ%zz%4");
  EXPECT_EQ(percent_decode("%"), "%");
  EXPECT_EQ(percent_decode("%41"), "A");
}

TEST(Redactor, ATextThatWasCutOff_DoesNotEndWithTheBeginningOfASecret) {
  Redactor redactor;
  redactor.learn("xyzzy-canary");
  EXPECT_EQ(redactor.redact("refused: xyzzy-ca"), "refused: ***");
  EXPECT_EQ(redactor.redact("refused: xyzz"), "refused: ***");
  EXPECT_EQ(redactor.redact("refused: xyz"), "refused: xyz");
  EXPECT_EQ(redactor.redact("xyzzy-ca is nobody"), "xyzzy-ca is nobody");
}

}  // namespace
}  // namespace weir
