#include "weir/event/pattern.hpp"
#include "weir/event/routing.hpp"

#include <gtest/gtest.h>

#include <random>

namespace weir::event {
namespace {

Place place(std::string tenant, std::string site, std::string camera) {
  return {TenantId::trusted(std::move(tenant)), SiteId::trusted(std::move(site)), CameraId::trusted(std::move(camera))};
}

TEST(RoutingKeys, NameFamilyAndPlace) {
  Place p = place("t-01", "site-A", "cam-2");
  EXPECT_EQ(detections_key(p), "detections.t-01.site-A.cam-2");
  EXPECT_EQ(status_key(p), "stream.status.t-01.site-A.cam-2");
  EXPECT_EQ(error_key(p), "stream.error.t-01.site-A.cam-2");
  EXPECT_EQ(lease_key("granted", p), "lease.granted.t-01.site-A.cam-2");
  EXPECT_EQ(camera_key("deleted", p), "camera.deleted.t-01.site-A.cam-2");
  EXPECT_EQ(heartbeat_key(RunnerId::trusted("r.1")), "runner.heartbeat.r_1");
  EXPECT_EQ(desire_key("display.created", p.tenant, "d.1"), "display.created.t-01.d_1");
  EXPECT_EQ(desire_key("model.deleted", TenantId(), "7"), "model.deleted._.7");
}

TEST(RoutingKeys, NoId_CanChangeTheRouting) {
  EXPECT_EQ(detections_key(place("a.b", "*", "#")), "detections.a_b._._");
  EXPECT_EQ(routing_word("a b\tc\x7f"), "a_b_c_");
  EXPECT_EQ(routing_word(""), "_");
  EXPECT_EQ(routing_word("ünï"), "ünï");
}

TEST(RoutingKeys, LongIds_AreShortened_AndStayApart) {
  std::string a(254, 'x'), b(254, 'x');
  b.back() = 'y';
  EXPECT_EQ(routing_word(a).size(), kWordBytesMax);
  EXPECT_NE(routing_word(a), routing_word(b));
  EXPECT_EQ(routing_word(a), routing_word(a));
  std::string wide;
  for (int i = 0; i < 85; ++i) wide += "€";
  EXPECT_TRUE(valid_utf8(routing_word(wide)));
  for (const std::string& id : {a, wide})
    for (std::string key : {detections_key(place(id, id, id)), status_key(place(id, id, id)),
                            lease_key("budget_exhausted", place(id, id, id)), heartbeat_key(RunnerId::trusted(id))})
      EXPECT_LE(key.size(), kKeyBytesMax) << key;
  EXPECT_EQ(routing_word(std::string(kWordBytesMax, 'x')), std::string(kWordBytesMax, 'x'));
}

bool matches(std::string_view pattern, std::string_view key) {
  auto made = TopicPattern::create(pattern);
  EXPECT_TRUE(made);
  return made && made->matches(key);
}

TEST(TopicPatterns, MatchAsInAmqp) {
  struct Case { std::string_view pattern, key; bool matches; };
  for (auto [pattern, key, expected] : {
           Case{"#", "", true}, {"#", "a", true}, {"#", "a.b.c", true}, {"", "", true}, {"", "a", false},
           {"*", "", false}, {"*", "a", true}, {"*", "a.b", false}, {"a", "a", true}, {"a", "ab", false},
           {"a.*", "a", false}, {"a.*", "a.", true}, {"a.*", "a.b", true}, {"a.*", "a.b.c", false},
           {"a.#", "a", true}, {"a.#", "a.b.c", true}, {"a.#", "b", false}, {"#.c", "c", true}, {"#.c", "a.b.c", true},
           {"#.c", "a.c.b", false}, {"a.#.c", "a.c", true}, {"a.#.c", "a.b.b.c", true}, {"a.#.c", "a.c.c.b", false},
           {"*.*", "..", false}, {"*.*.*", "..", true}, {"a..b", "a..b", true}, {"a.*.b", "a..b", true},
           {"#.a.#.b.#", "x.a.y.b.z", true}, {"#.a.#.b.#", "b.a", false}, {"#.#", "", true}, {"#.*", "", false},
           {"#.*", "a", true}, {"a*", "ab", false}, {"a#", "a", false}, {"detections.t-01.#", "detections.t-01.s.c", true},
           {"stream.*.t-01.#", "stream.error.t-01.s.c", true}, {"stream.*.t-01.#", "detections.t-01.s.c", false}})
    EXPECT_EQ(matches(pattern, key), expected) << pattern << " on " << key;
}

// Says what the words mean, and nothing about speed.
bool naive(const std::vector<std::string>& pattern, size_t p, const std::vector<std::string>& key, size_t k) {
  if (p == pattern.size()) return k == key.size();
  if (pattern[p] == "#") return naive(pattern, p + 1, key, k) || (k < key.size() && naive(pattern, p, key, k + 1));
  return k < key.size() && (pattern[p] == "*" || pattern[p] == key[k]) && naive(pattern, p + 1, key, k + 1);
}
std::string joined(const std::vector<std::string>& words) { return fmt::format("{}", fmt::join(words, ".")); }

TEST(TopicPatterns, AgreeWithTheirDefinition) {
  std::mt19937 draw(4711);
  auto words = [&](std::vector<std::string> from, size_t most) {
    std::vector<std::string> out(draw() % (most + 1));
    for (std::string& word : out) word = from[draw() % from.size()];
    return out;
  };
  int matched = 0;
  for (int i = 0; i < 20'000; ++i) {
    auto pattern = words({"#", "*", "a", "b", ""}, 6), key = words({"a", "b", ""}, 7);
    // One empty word reads as no word at all.
    if (joined(pattern).empty() || joined(key).empty()) continue;
    bool expected = naive(pattern, 0, key, 0);
    matched += expected;
    ASSERT_EQ(matches(joined(pattern), joined(key)), expected) << joined(pattern) << " on " << joined(key);
  }
  EXPECT_GT(matched, 1000);
}

TEST(TopicPatterns, ManyHashes_CostLittle) {
  std::string pattern = "#", key = "a";
  for (int i = 0; i < 60; ++i) pattern += ".a.#";
  for (int i = 0; i < 120; ++i) key += ".a";
  EXPECT_TRUE(matches(pattern, key));
  EXPECT_FALSE(matches(pattern + ".b", key));
}

TEST(TopicPatterns, WhatIsNoPattern_IsRefused) {
  EXPECT_FALSE(TopicPattern::create(std::string(256, 'a')));
  EXPECT_FALSE(TopicPattern::create("a\nb"));
}

}  // namespace
}  // namespace weir::event
