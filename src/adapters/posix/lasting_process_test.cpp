#include "weir/posix/child_process.hpp"

#include "run.hpp"
#include "temp_files.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <iterator>

namespace weir::posix {
namespace {

class LastingProcess : public ::testing::Test {
 protected:
  boost::asio::io_context io;
  PosixHost host{io};
  test::TempDir folder;

  static Program shell(const std::string& script) { return {.path = "/bin/sh", .arguments = {"-c", script}}; }
  std::unique_ptr<ProcessWatch> watched(const ProcessMark& mark) {
    auto watch = host.watch(mark);
    EXPECT_TRUE(watch);
    return *std::move(watch);
  }
  // What the program printed, after its end.
  std::string printed(const Program& program) {
    std::string path = folder.path() + "/output";
    auto mark = host.start_lasting(program, path);
    EXPECT_TRUE(mark) << mark.error().message;
    EXPECT_EQ(test::run(io, watched(*mark)->wait()), 0);
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
};

TEST_F(LastingProcess, OutlivesItsParent_AndIsFoundAgain) {
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  pid_t parent = ::fork();
  if (parent == 0) {
    boost::asio::io_context own;
    auto mark = PosixHost(own).start_lasting(shell("exec sleep 600"), "");
    bool told = mark && ::write(pipe[1], &*mark, sizeof *mark) == sizeof *mark;
    ::_exit(told ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(parent, &status, 0), parent);
  ASSERT_EQ(status, 0);
  ProcessMark mark;
  ASSERT_EQ(::read(pipe[0], &mark, sizeof mark), static_cast<ssize_t>(sizeof mark));
  for (int end : pipe) ::close(end);

  auto watch = watched(mark);
  EXPECT_TRUE(watch->running());
  EXPECT_EQ(::getsid(mark.pid), mark.pid) << "a terminal that is closed takes it along otherwise";
  watch->signal(SIGKILL);
  EXPECT_EQ(test::run(io, watch->wait()), std::nullopt) << "how it ended is told to its parent alone";
  EXPECT_FALSE(watch->running());
}

TEST_F(LastingProcess, ItsCodeIsKnownToItsParent) {
  auto watch = watched(*host.start_lasting(shell("exit 7"), ""));
  EXPECT_EQ(test::run(io, watch->wait()), 7);
  EXPECT_EQ(test::run(io, watch->wait()), 7) << "asked again";
  auto other = watched(*host.start_lasting(shell("exec sleep 600"), ""));
  other->signal(SIGTERM);
  EXPECT_EQ(test::run(io, other->wait()), 128 + SIGTERM);
}

TEST_F(LastingProcess, EndsNotWithItsWatch) {
  ProcessMark mark = *host.start_lasting(shell("exec sleep 600"), "");
  watched(mark).reset();
  auto again = watched(mark);
  EXPECT_TRUE(again->running());
  again->signal(SIGKILL);
  EXPECT_EQ(test::run(io, again->wait()), 128 + SIGKILL);
}

TEST_F(LastingProcess, AnotherProcessOfTheSameNumber_IsNotMeant) {
  ProcessMark self = *mark_of(::getpid());
  EXPECT_TRUE(watched(self)->running());
  --self.started;
  auto earlier = host.watch(self);
  ASSERT_FALSE(earlier);
  EXPECT_EQ(earlier.error().code, Errc::not_found);
}

TEST_F(LastingProcess, OneThatIsGone_IsNotFound_AndNobodyElseIsSignalled) {
  ProcessMark mark = *host.start_lasting(shell("exit 0"), "");
  auto watch = watched(mark);
  EXPECT_EQ(test::run(io, watch->wait()), 0);
  watch->signal(SIGKILL);
  auto again = host.watch(mark);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Errc::not_found);
  EXPECT_FALSE(mark_of(mark.pid));
}

TEST_F(LastingProcess, ItsOutputIsAppendedToAFile_AndItsInputIsEmpty) {
  EXPECT_EQ(printed(shell("cat; echo one; echo two >&2")), "one\ntwo\n");
  EXPECT_EQ(printed(shell("echo three")), "one\ntwo\nthree\n");
}

TEST_F(LastingProcess, HasADocument_AndNoDescriptorOfItsParent) {
  std::string lock = folder.path() + "/lock";
  int held = ::open(lock.c_str(), O_RDWR | O_CREAT, 0600);  // inheritable, as the lock of a runner is
  ASSERT_GE(held, 0);
  Program program = shell("cat /dev/fd/3; ls -l /proc/$$/fd");
  program.document = Secret("a document.");
  std::string said = printed(program);
  ::close(held);
  EXPECT_TRUE(said.starts_with("a document.")) << said;
  EXPECT_EQ(said.find(lock), std::string::npos) << said;
}

TEST_F(LastingProcess, AProgramOrAFileThatIsNotThere_IsAnErrorThatNamesIt) {
  auto missing = host.start_lasting({.path = "/nowhere/weir-egress"}, "");
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find("/nowhere/weir-egress"), std::string::npos);
  auto nowhere = host.start_lasting(shell("exit 0"), "/nowhere/output");
  ASSERT_FALSE(nowhere);
  EXPECT_NE(nowhere.error().message.find("/nowhere/output"), std::string::npos);
}

}  // namespace
}  // namespace weir::posix
