#include "weir/posix/boot_file.hpp"

#include "temp_files.hpp"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace weir::posix {
namespace {

namespace fs = std::filesystem;

class BootFileTest : public ::testing::Test {
 protected:
  std::string path() const { return folder_.path() + "/boot.json"; }
  // The boot that a process has which starts now and ends.
  std::string boot(bool continued, const KernelFacts& facts = kernel_facts()) const {
    auto file = BootFile::take(path(), facts);
    EXPECT_TRUE(file);
    if (!file) return "";
    EXPECT_EQ(file->continued(), continued);
    EXPECT_FALSE(file->boot().empty());
    return file->boot().str();
  }
  test::TempDir folder_;
};

TEST_F(BootFileTest, TheNextProcess_ContinuesTheBoot) {
  std::string first = boot(false);
  EXPECT_EQ(boot(true), first);
  EXPECT_EQ(boot(true), first);
}

TEST_F(BootFileTest, WhileOneProcessHasIt_AnotherIsRefusedWithASentence) {
  auto first = BootFile::take(path());
  ASSERT_TRUE(first);
  auto second = BootFile::take(path());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Errc::conflict);
  EXPECT_EQ(second.error().reason, "already_running");
  EXPECT_NE(second.error().message.find(path()), std::string::npos);
}

TEST_F(BootFileTest, AChildThatOutlivesIt_DoesNotKeepTheLock) {
  int ready[2], over[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(over), 0);
  auto held = std::make_unique<Result<BootFile>>(BootFile::take(path()));
  ASSERT_TRUE(*held);
  pid_t child = ::fork();
  if (child == 0) {  // says when it runs another program, and lives until the test is over
    ::dup2(ready[1], 1);
    ::dup2(over[0], 0);
    for (int end : {ready[0], ready[1], over[0], over[1]}) ::close(end);
    ::execl("/bin/sh", "sh", "-c", "echo x; read line", nullptr);
    ::_exit(1);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  held.reset();
  EXPECT_TRUE(BootFile::take(path()));
  for (int end : {ready[0], ready[1], over[0], over[1]}) ::close(end);
  ::waitpid(child, nullptr, 0);
}

TEST_F(BootFileTest, AfterAReboot_OrInAnotherPidNamespace_ItIsANewBoot) {
  KernelFacts facts{"boot-1", "pid:[1]"};
  std::string first = boot(false, facts);
  EXPECT_EQ(boot(true, facts), first);
  std::string second = boot(false, {"boot-2", "pid:[1]"});
  EXPECT_NE(second, first);
  EXPECT_NE(boot(false, {"boot-2", "pid:[2]"}), second);
  EXPECT_NE(boot(false, facts), first) << "what was overwritten does not come back";
}

TEST_F(BootFileTest, ACopiedFolder_IsANewBoot_AndTheOriginalGoesOn) {
  std::string first = boot(false);
  std::string copy = folder_.path() + "/copy.json";
  fs::copy_file(path(), copy);
  auto copied = BootFile::take(copy);
  ASSERT_TRUE(copied);
  EXPECT_FALSE(copied->continued());
  EXPECT_NE(copied->boot().str(), first);
  EXPECT_EQ(boot(true), first);
}

TEST_F(BootFileTest, WhereTheKernelDoesNotTell_NothingIsContinued) {
  boot(false, {"", "pid:[1]"});
  boot(false, {"", "pid:[1]"});
  boot(false, {"boot-1", ""});
  boot(false, {"boot-1", ""});
}

TEST_F(BootFileTest, Garbage_IsNoBoot) {
  for (const char* text : {"", "{", "[]", R"({"identity":1,"boot_id":"b"})", R"({"boot_id":"b"})"}) {
    std::ofstream(path()) << text;
    boot(false);
  }
}

}  // namespace
}  // namespace weir::posix
