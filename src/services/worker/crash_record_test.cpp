#include "weir/worker/crash_record.hpp"

#include "stall.hpp"
#include "temp_files.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace weir::worker {
namespace {

// A pipe that nobody reads and that takes no more. Main thread only.
struct FullPipe {
  FullPipe() {
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    const std::string page(4096, 'x');
    while (::write(ends[1], page.data(), page.size()) > 0) {}
    ::fcntl(ends[1], F_SETFL, 0);  // a process that writes now waits for a reader
  }
  ~FullPipe() {
    for (int end : ends) ::close(end);
  }
  FullPipe(const FullPipe&) = delete;
  int ends[2] = {-1, -1};
};

[[noreturn]] void crash(const std::string& record, int stderr_fd) {
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  ::dup2(stderr_fd, 2);
  if (!install_crash_record(record)) ::_exit(1);
  const CameraId camera = CameraId::trusted("cam-1");
  Serving serving(camera);
  ::raise(SIGABRT);
  ::_exit(2);
}

TEST(CrashRecord, WithAStderrThatNobodyReads_IsWritten_AndTheProcessEnds) {
  test::TempDir folder;
  const std::string record = folder.path() + "/crash.json";
  FullPipe unread;
  pid_t child = ::fork();
  if (child == 0) crash(record, unread.ends[1]);
  int status = 0;
  bool gone = test::eventually(10s, [&] { return ::waitpid(child, &status, WNOHANG) == child; });
  EXPECT_TRUE(gone);
  if (!gone) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) << status;
  std::string line = test::text_in_file(record);
  EXPECT_NE(line.find(R"("camera_uuid":"cam-1")"), std::string::npos) << line;
}

TEST(CrashRecord, LastWords_AreSaidWhereSomebodyTakesThem) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
  write_unless_full(ends[1], "it hangs\n");
  char heard[32] = {};
  EXPECT_EQ(::read(ends[0], heard, sizeof heard), 9);
  EXPECT_STREQ(heard, "it hangs\n");
  for (int end : ends) ::close(end);
}

}  // namespace
}  // namespace weir::worker
