#include "weir/base/log.hpp"

#include "weir/base/json.hpp"

#include "stall.hpp"
#include "temp_files.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <sstream>
#include <thread>

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
  log::info("ffmpeg", "a peer says \xff\xfe");
  line = lines();
  EXPECT_TRUE(json::parse_text(line)) << line;
}

TEST_F(Logging, ReadableLines_CannotSteerTheTerminal) {
  configure(log::Level::info, true);
  log::info("camera.created").with("name", "a\x1b[2Jb\nc\xc2\x9b");
  std::string line = lines();
  EXPECT_NE(line.find("a?[2Jb?c?"), std::string::npos) << line;
}

TEST_F(Logging, AFileThatHasReachedItsBound_IsSetAside_AndANewOneBegins) {
  test::TempDir folder;
  std::string path = folder.path() + "/x.log";
  log::configure({.level = log::Level::info, .fd = ends[1], .file = path, .file_bytes_max = 2000});
  for (int i = 0; i < 100; ++i) {
    log::info("a.line").with("number", i);
    lines();
  }
  std::string now = test::text_in_file(path), before = test::text_in_file(path + ".1");
  EXPECT_NE(now.find("\"number\":99"), std::string::npos);
  EXPECT_NE(before.find("\"number\""), std::string::npos);
  for (const std::string& text : {now, before}) EXPECT_LE(text.size(), 2200u);
  // A process that starts again goes on in the same file.
  log::configure({.level = log::Level::info, .fd = ends[1], .file = path, .file_bytes_max = 100'000});
  log::info("a.line").with("number", 100);
  EXPECT_NE(test::text_in_file(path).find("\"number\":99"), std::string::npos);
}

// A log whose reader has stopped reading: a pipe as a shell makes it, one that cannot be opened a second time, as if
// another user had made it, or a socket as the journal's.
struct StalledLog : testing::TestWithParam<const char*> {
  int reader = -1, writer = -1;
  std::atomic<int> logged{0};
  rlimit descriptors{};
  void SetUp() override {
    int ends[2] = {-1, -1};
    std::string kind = GetParam();
    ASSERT_EQ(kind == "socket" ? socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) : pipe2(ends, O_CLOEXEC), 0);
    getrlimit(RLIMIT_NOFILE, &descriptors);
    rlimit none{.rlim_cur = 3, .rlim_max = descriptors.rlim_max};
    if (kind == "foreign_pipe") setrlimit(RLIMIT_NOFILE, &none);
    reader = ends[0];
    writer = ends[1];
    fcntl(reader, F_SETFL, O_NONBLOCK);
    log::configure({.level = log::Level::info, .fd = writer});
  }
  void TearDown() override {
    setrlimit(RLIMIT_NOFILE, &descriptors);
    log::configure({});
    close(reader);
    close(writer);
  }
  std::string read_all() {
    std::string out;
    char buffer[65536];
    for (ssize_t got = 0; (got = read(reader, buffer, sizeof buffer)) > 0;)
      out.append(buffer, static_cast<size_t>(got));
    return out;
  }
  // On a thread of its own, so that a log that blocks fails the test instead of stopping it.
  bool log_lines(int count, size_t bytes) {
    logged = 0;
    std::thread work([&] {
      for (; logged < count; ++logged) log::info("line").with("n", logged.load()).with("text", std::string(bytes, 'x'));
    });
    bool returned = test::eventually(20s, [&] { return logged == count; });
    while (!returned && logged < count) read_all();
    work.join();
    return returned;
  }
};

TEST_P(StalledLog, NeverStopsTheWork_AndSaysHowManyLinesItDropped) {
  constexpr int kLines = 5000;
  ASSERT_TRUE(log_lines(kLines, 100)) << "a line waited for its reader";
  std::string all = read_all();
  log::info("again");
  log::info("again");
  all += read_all();
  ASSERT_TRUE(all.ends_with('\n'));
  std::istringstream lines(all);
  int written = 0, again = 0, notices = 0;
  std::int64_t dropped = 0;
  for (std::string line; std::getline(lines, line);) {
    auto parsed = json::parse_text(line);
    ASSERT_TRUE(parsed) << "not a whole line: " << line;
    const auto& fields = parsed->as_object();
    if (fields.at("event") == "line") {
      EXPECT_EQ(fields.at("n").as_int64(), written++) << "the oldest are kept";
    } else if (fields.at("event") == "again") {
      ++again;
    } else {
      EXPECT_EQ(fields.at("event").as_string(), "log.dropped");
      EXPECT_EQ(again, 0) << "it is said before what comes after the gap";
      ++notices;
      dropped = fields.at("lines").as_int64();
    }
  }
  EXPECT_GT(written, 10);
  EXPECT_EQ(again, 2);
  EXPECT_EQ(notices, 1);
  EXPECT_EQ(written + dropped, kLines);
}

TEST_P(StalledLog, ALineLongerThanThePipe_IsFinishedBeforeTheNext) {
  ASSERT_TRUE(log_lines(3, 300'000));
  std::string all;
  for (int more = 0; more < 20; ++more) {
    all += read_all();
    log::info("next");
  }
  all += read_all();
  std::istringstream lines(all);
  int whole = 0;
  for (std::string line; std::getline(lines, line);) {
    ASSERT_TRUE(json::parse_text(line)) << "not a whole line: " << line.substr(0, 200);
    if (line.size() > 300'000) ++whole;
  }
  EXPECT_EQ(whole, 1) << "the first was begun, the others found no room";
}

TEST_P(StalledLog, ItsDescriptor_StaysAsItIsForOtherProcesses) {
  ASSERT_TRUE(log_lines(1, 10));
  EXPECT_EQ(fcntl(writer, F_GETFL) & O_NONBLOCK, 0);
}

INSTANTIATE_TEST_SUITE_P(Log, StalledLog, testing::Values("pipe", "foreign_pipe", "socket"),
                         [](const auto& each) { return std::string(each.param); });

TEST(LogLevel, Words_AreParsedExactly) {
  EXPECT_EQ(log::parse_level("warn"), log::Level::warn);
  EXPECT_FALSE(log::parse_level("WARN"));
  EXPECT_FALSE(log::parse_level(""));
}

}  // namespace
}  // namespace weir
