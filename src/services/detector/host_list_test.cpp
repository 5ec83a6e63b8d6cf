#include "weir/detector/host_list.hpp"

#include <gtest/gtest.h>

namespace weir::detector {
namespace {

bool may(const HostList& list, const std::string& url) {
  auto place = web_place(Secret(url));
  return place && list.has(*place);
}

TEST(HostList, HostWithAPort_MeansThatPort_WithoutOneAll) {
  auto list = HostList::parse("plane.example:8080, Models.example ,[::1]:80");
  ASSERT_TRUE(list) << list.error().message;
  for (const char* url : {"http://plane.example:8080/x", "http://models.example/x", "https://MODELS.example:9/x?y=z",
                          "http://[::1]/x", "http://plane.example:8080"})
    EXPECT_TRUE(may(*list, url)) << url;
  for (const char* url : {"http://plane.example/x", "http://plane.example.evil:8080/x",
                          "http://evil/plane.example:8080", "http://plane.example:8080@evil/x", "http://xmodels.example/", "https://[::1]/x",
                          "ftp://models.example/x", "models.example/x", "http://plane.example:8080x/"})
    EXPECT_FALSE(may(*list, url)) << url;
}

TEST(HostList, OfAControlPlane_AreItsAddresses) {
  auto list = HostList::of_urls("http://a.example:8080/weir, https://b.example");
  ASSERT_TRUE(list);
  EXPECT_TRUE(may(*list, "http://a.example:8080/v1/models/7/file"));
  EXPECT_TRUE(may(*list, "https://b.example/v1"));
  EXPECT_FALSE(may(*list, "http://b.example/v1")) << "another port";
  EXPECT_TRUE(HostList::of_urls("")->empty());
  EXPECT_TRUE(may(HostList::loopback(), "http://127.0.0.1:1234/x"));
  EXPECT_FALSE(may(HostList::loopback(), "http://169.254.169.254/latest"));
}

TEST(HostList, WhatIsNoHost_IsToldByItsPlace_AndNeverRepeated) {
  for (const char* text : {"good.example, http://a", "good,a/b", "good:1,user:pw@host", "good,a?b"}) {
    auto list = HostList::parse(text);
    ASSERT_FALSE(list) << text;
    EXPECT_NE(list.error().message.find("number 2"), std::string::npos) << list.error().message;
    EXPECT_EQ(list.error().message.find("pw"), std::string::npos) << list.error().message;
  }
}

TEST(WebPlace, SignatureStaysInTheTarget_AndIsNoPartOfThePath) {
  auto place = web_place(Secret("http://plane.example:8080/v1/models/7/file?expires=1&signature=s"));
  ASSERT_TRUE(place);
  EXPECT_EQ(place->base, "http://plane.example:8080");
  EXPECT_EQ(place->target, "/v1/models/7/file?expires=1&signature=s");
  EXPECT_EQ(place->path, "/v1/models/7/file");
}

}  // namespace
}  // namespace weir::detector
