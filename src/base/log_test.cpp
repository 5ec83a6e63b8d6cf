#include "weir/base/log.hpp"

#include "weir/base/json.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

namespace weir {
namespace {

// Collects what is logged in a pipe.
struct Logging : testing::Test {
  int ends[2] = {-1, -1};
  void SetUp() override { ASSERT_EQ(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0); }
  void TearDown() override {
    log::configure({});
    close(ends[0]);
    close(ends[1]);
  }
  void configure(log::Level level, bool readable = false) {
    log::configure({.level = level, .readable = readable, .fd = ends[1]});
  }
  std::string lines() {
    char buffer[4096];
    ssize_t got = read(ends[0], buffer, sizeof buffer);
    return got > 0 ? std::string(buffer, static_cast<size_t>(got)) : std::string();
  }
};

TEST_F(Logging, ALine_IsOneJsonObject) {
  configure(log::Level::info);
  log::info("lease.granted", "said \"yes\"\n")
      .with("camera_uuid", CameraId::trusted("c1"))
      .with("version", 7)
      .with("ok", true);
  std::string line = lines();
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  auto parsed = json::parse_text(line);
  ASSERT_TRUE(parsed) << line;
  const auto& fields = parsed->as_object();
  EXPECT_EQ(fields.at("level").as_string(), "info");
  EXPECT_EQ(fields.at("event").as_string(), "lease.granted");
  EXPECT_EQ(fields.at("camera_uuid").as_string(), "c1");
  EXPECT_EQ(fields.at("version").as_int64(), 7);
  EXPECT_EQ(fields.at("ok").as_bool(), true);
  EXPECT_EQ(fields.at("ts").as_string().size(), 24u);
}

TEST_F(Logging, LevelsBelowTheThreshold_AreSilent) {
  configure(log::Level::warn);
  log::info("a");
  log::debug("b");
  EXPECT_EQ(lines(), "");
  log::set_level(log::Level::debug);
  log::debug("c");
  EXPECT_NE(lines(), "");
  log::set_level(log::Level::off);
  log::error("d");
  EXPECT_EQ(lines(), "");
}

TEST_F(Logging, ForeignBytes_KeepTheLineJson) {
  configure(log::Level::info);
  log::info("http.request").with("path", std::string_view("/\xff\xfe\x00x", 5));
  std::string line = lines();
  EXPECT_TRUE(json::parse_text(line)) << line;
}

TEST_F(Logging, ReadableLines_CannotSteerTheTerminal) {
  configure(log::Level::info, true);
  log::info("camera.created").with("name", "a\x1b[2Jb\nc\xc2\x9b");
  std::string line = lines();
  EXPECT_NE(line.find("a?[2Jb?c?"), std::string::npos) << line;
}

TEST(LogLevel, Words_AreParsedExactly) {
  EXPECT_EQ(log::parse_level("warn"), log::Level::warn);
  EXPECT_FALSE(log::parse_level("WARN"));
  EXPECT_FALSE(log::parse_level(""));
}

}  // namespace
}  // namespace weir
