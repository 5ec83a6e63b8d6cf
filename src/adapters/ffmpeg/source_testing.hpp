// For tests of sources: how one is made from an address, and what came of it in one line. Any thread.
#pragma once

#include "weir/ffmpeg/source.hpp"

#include <gtest/gtest.h>

namespace weir::ffmpeg::testing {

inline SourceConfig config_for(const std::string& url) {
  SourceConfig config;
  config.url = Secret(url);
  config.loopback = true;
  return config;
}
inline std::unique_ptr<VideoSource> source_for(const SourceConfig& config) {
  auto source = make_source(config);
  EXPECT_TRUE(bool(source));
  return *std::move(source);
}
// "TCP_REFUSED: the connection was refused"
inline std::string outcome(const SourceConfig& config) {
  auto source = make_source(config);
  if (!source) return source.error().reason + ": " + source.error().message;
  auto facts = (*source)->open();
  return facts ? "open" : facts.error().reason + ": " + facts.error().message;
}
inline std::string outcome(const std::string& url) { return outcome(config_for(url)); }

}  // namespace weir::ffmpeg::testing
