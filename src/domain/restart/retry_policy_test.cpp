#include "weir/restart/retry_policy.hpp"

#include "where.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <set>

namespace weir::restart {
namespace {

using enum StreamErrorCode;

TEST(RetryPolicy, EveryCode_HasARow_WithAdviceAndGrowingDelays) {
  for (const auto& [code, name] : kStreamErrorCodeNames) {
    const RetryPolicy& policy = retry_policy(code);
    EXPECT_EQ(policy.code, code) << name;
    EXPECT_TRUE(policy.advice.ends_with('.')) << name;
    EXPECT_GE(policy.backoff.first, 500ms) << name;
    EXPECT_GE(policy.backoff.cap, policy.backoff.first) << name;
    for (int attempt = 0; attempt < 40; ++attempt) {
      EXPECT_LE(retry_delay(code, attempt, 0.5), retry_delay(code, attempt + 1, 0.5)) << name << " " << attempt;
      EXPECT_LE(retry_delay(code, attempt, 0.999), policy.backoff.cap) << name << " " << attempt;
    }
  }
}

struct Row {
  StreamErrorCode code;
  Duration first, last;
};
TEST(RetryPolicy, Delays_AreThoseOfTheTable) {
  for (const Row& row : {Row{tcp_refused, 1s, 30s}, Row{tcp_timeout, 1s, 30s}, Row{rtsp_auth_failed, 8s, 10min},
                         Row{rtsp_not_found, 5s, 2min}, Row{stalled, 500ms, 15s}, Row{rtsp_protocol, 500ms, 15s},
                         Row{url_refused, 30s, 10min}, Row{codec_unsupported, 30s, 10min}}) {
    EXPECT_EQ(retry_delay(row.code, 0, 1.0), row.first) << to_string(row.code);
    EXPECT_EQ(retry_delay(row.code, 1, 1.0), row.first * 2) << to_string(row.code);
    EXPECT_EQ(retry_delay(row.code, 50, 1.0), row.last) << to_string(row.code);
  }
}

std::string spoken(Duration d) {
  return d >= 1min ? fmt::format("{} min", d / 1min) : fmt::format("{} s", seconds(d));
}

// The manual's table has a row for each code, and the row's last column begins with the code's delays.
TEST(RetryPolicy, Delays_AreThoseOfTheManual) {
  std::ifstream page(WEIR_SOURCE_DIR "/docs/worker.md");
  std::set<StreamErrorCode> found;
  for (std::string line; std::getline(page, line);) {
    size_t codes = line.find(" | "), last = line.rfind(" | ");
    if (!line.starts_with("| `") || codes == last) continue;
    for (const auto& [code, name] : kStreamErrorCodeNames) {
      if (line.substr(0, codes).find(fmt::format("`{}`", name)) == std::string::npos) continue;
      const Backoff& backoff = retry_policy(code).backoff;
      std::string said = fmt::format("{}, up to {}", spoken(backoff.first), spoken(backoff.cap));
      EXPECT_TRUE(line.substr(last + 3).starts_with(said)) << name << ": " << line << "\nthe code says: " << said;
      found.insert(code);
    }
  }
  EXPECT_EQ(found.size(), kStreamErrorCodeNames.size());
}

TEST(RetryPolicy, Draw_SpreadsTheDelay_ByAFifth) {
  EXPECT_EQ(retry_delay(tcp_refused, 2, 0.0), 3200ms);
  EXPECT_EQ(retry_delay(tcp_refused, 2, 0.5), 3600ms);
}

TEST(RetryPolicy, Side_TellsWhetherAnotherRunnerMayFareBetter) {
  for (auto code : {tcp_refused, tcp_timeout, dns_failed, model_error})
    EXPECT_EQ(retry_policy(code).side, Side::runner) << to_string(code);
  for (auto code : {rtsp_auth_failed, rtsp_not_found, rtsp_protocol, codec_unsupported, stalled, url_refused})
    EXPECT_EQ(retry_policy(code).side, Side::camera) << to_string(code);
}

}  // namespace
}  // namespace weir::restart
