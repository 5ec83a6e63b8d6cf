#include "weir/net/metrics.hpp"

#include <gtest/gtest.h>

namespace weir::net {
namespace {

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(Metrics, SameNameAndLabels_GiveTheSameInstrument) {
  Metrics metrics;
  Counter& one = metrics.counter("weir_requests_total", "Requests.", {{"status", "200"}});
  Counter& again = metrics.counter("weir_requests_total", "Requests.", {{"status", "200"}});
  Counter& other = metrics.counter("weir_requests_total", "Requests.", {{"status", "404"}});
  EXPECT_EQ(&one, &again);
  EXPECT_NE(&one, &other);
  one.add();
  again.add(2);
  EXPECT_TRUE(has(metrics.text(), "weir_requests_total{status=\"200\"} 3\n"));
  EXPECT_TRUE(has(metrics.text(), "weir_requests_total{status=\"404\"} 0\n"));
}

TEST(Metrics, Text_ListsEveryKind) {
  Metrics metrics;
  metrics.counter("weir_things_total", "Things.", {{"kind", "a\"b"}}).add(2);
  metrics.gauge("weir_level", "A level.").set(1.5);
  metrics.histogram("weir_seconds", "Time.", {0.1, 1}, {{"route", "/x"}}).observe(0.5);
  std::string text = metrics.text();
  EXPECT_TRUE(has(text, "# HELP weir_things_total Things.\n# TYPE weir_things_total counter\n"));
  EXPECT_TRUE(has(text, "weir_things_total{kind=\"a\\\"b\"} 2\n"));
  EXPECT_TRUE(has(text, "weir_level 1.5\n"));
  EXPECT_TRUE(has(text, "weir_seconds_bucket{route=\"/x\",le=\"0.1\"} 0\n"));
  EXPECT_TRUE(has(text, "weir_seconds_bucket{route=\"/x\",le=\"1\"} 1\n"));
  EXPECT_TRUE(has(text, "weir_seconds_count{route=\"/x\"} 1\n"));
}

TEST(Metrics, ProcessMetrics_AreReadWhenAsked) {
  Metrics metrics;
  EXPECT_FALSE(has(metrics.text(), "process_"));
  metrics.add_process_metrics();
  std::string text = metrics.text();
  for (std::string_view name : {"process_cpu_seconds_total ", "process_resident_memory_bytes ", "process_open_fds ",
                                "process_start_time_seconds "}) {
    size_t at = text.find("\n" + std::string(name));
    ASSERT_NE(at, std::string::npos) << name;
    double value = std::stod(text.substr(at + 1 + name.size()));
    bool memory = name == "process_resident_memory_bytes ", start = name == "process_start_time_seconds ";
    double at_least = memory ? 1e6 : start ? 1.6e9 : 0;
    EXPECT_GE(value, at_least) << name;
  }
}

TEST(Metrics, LatencyBuckets_AscendFromHalfAMillisecondToTenSeconds) {
  const auto& buckets = Metrics::latency_buckets();
  EXPECT_EQ(buckets.front(), 0.0005);
  EXPECT_EQ(buckets.back(), 10);
  EXPECT_TRUE(std::is_sorted(buckets.begin(), buckets.end()));
}

}  // namespace
TEST(Metrics, RetiredLabel_IsNotShown_UntilItIsAskedForAgain) {
  Metrics metrics;
  Gauge& up = metrics.gauge("stream_up", "up", {{"camera_uuid", "cam-1"}});
  metrics.gauge("stream_up", "up", {{"camera_uuid", "cam-2"}}).set(1);
  metrics.counter("seen_total", "seen", {{"camera_uuid", "cam-1"}}).add(3);
  metrics.retire("camera_uuid", "cam-1");
  up.set(0);
  EXPECT_EQ(metrics.text().find("cam-1"), std::string::npos);
  EXPECT_NE(metrics.text().find("stream_up{camera_uuid=\"cam-2\"} 1"), std::string::npos);

  metrics.counter("seen_total", "seen", {{"camera_uuid", "cam-1"}}).add();
  EXPECT_NE(metrics.text().find("seen_total{camera_uuid=\"cam-1\"} 4"), std::string::npos);
}

}  // namespace weir::net
