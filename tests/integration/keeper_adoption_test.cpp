// Processes that outlive whoever started them, and the next process, which finds them again or must leave them alone.
#include "keeper_rig.hpp"

#include "weir/posix/boot_file.hpp"

namespace weir::test {
namespace {

using posix::BootFile;

class KeeperAdoption : public KeeperRig {};

TEST_F(KeeperAdoption, AfterTheStarterWasKilled_TheNextProcessFindsTheChild_AndItsEnd) {
  std::string pipe = folder_.path() + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  start_and_be_killed(spec("read line < " + pipe + "; exit 9"));
  auto kept = adopt_one();
  EXPECT_EQ(kept->name(), "demo.worker");
  EXPECT_EQ(kept->note(), R"({"run_id":"r1"})");
  EXPECT_EQ(kept->version(), 7);
  EXPECT_TRUE(kept->running());
  std::ofstream(pipe) << "end\n";
  EXPECT_EQ(wait(kept), 9);
  EXPECT_TRUE(host()->adopt().empty()) << "its end was collected";
}

TEST_F(KeeperAdoption, AnEndThatNobodyWasThereFor_IsAnsweredToTheNextProcess) {
  start_and_be_killed(spec("exit 11"));
  ASSERT_TRUE(eventually(20s, [&] { return !adopt_one()->running(); }));
  EXPECT_EQ(wait(adopt_one()), 11);
  EXPECT_EQ(files(), 0u);
}

TEST_F(KeeperAdoption, ADeadKeeperAndChildWithoutARecord_AnswerNothing) {
  start_and_be_killed(spec("echo $$; exec sleep 600"));
  int child = pids(1)[0];
  ::kill(keeper_pid(), SIGKILL);
  ::kill(child, SIGKILL);
  EXPECT_EQ(wait(adopt_one()), std::nullopt);
}

TEST_F(KeeperAdoption, AStarterKilledBeforeItWroteDownTheKeeper_IsFollowedByOneThatFindsItByItsNonce) {
  start_and_be_killed(spec("echo $$; exec sleep 600"));
  pids(1);
  json::object without = record();
  int keeper = keeper_pid();
  without.erase("keeper");
  std::ofstream(folder_.path() + "/kept/demo.worker.record") << json::to_text(without);
  auto kept = adopt_one();
  EXPECT_TRUE(kept->running());
  EXPECT_TRUE(run(io_, kept->extend(7, for_all(boot_now() + 60s))));
  EXPECT_EQ(keeper_pid(), keeper) << "and writes it down";
  kept->kill();
  EXPECT_EQ(wait(kept), 128 + SIGKILL);
}

TEST_F(KeeperAdoption, AStarterThatDoesNotComeBack_DoesNotKeepItPastTheDeadline) {
  start_and_be_killed(spec("echo $$; exec sleep 600"));
  int child = pids(1)[0], peer = connected(socket_path());
  say(peer, fmt::format(R"({{"version":8,"valid_until_us":{}}})", boot_now().time_since_epoch().count() + 300'000));
  ::close(peer);
  EXPECT_TRUE(eventually(20s, [&] { return dead(child); }));
}

TEST_F(KeeperAdoption, ASuccessor_IsRefusedWhileTheLockIsHeld_AndIsToldUntilWhen) {
  auto kept = start(spec("exec sleep 600", 600s));
  auto successor = try_start(spec("exit 0"));
  ASSERT_FALSE(successor);
  EXPECT_EQ(successor.error().code, Errc::conflict);
  EXPECT_EQ(successor.error().reason, "kept_alive");
  EXPECT_EQ(successor.error().details.at("until_us").as_int64(), kept->ends_at().time_since_epoch().count());
  EXPECT_NE(successor.error().message.find("demo.worker"), std::string::npos);
  KeptSpec other = spec("exit 0");
  other.name = "demo.forward";
  EXPECT_EQ(wait(start(other)), 0) << "another name is another process";
  kept->kill();
  EXPECT_EQ(wait(kept), 128 + SIGKILL);
  EXPECT_EQ(wait(start(spec("exit 0"))), 0);
}

TEST_F(KeeperAdoption, ItsKeeperKilled_TheChildLivesOn_AndIsKnownByItsLock) {
  auto kept = start(spec("echo $$; exec sleep 600"));
  int child = pids(1)[0];
  ::kill(keeper_pid(), SIGKILL);
  ASSERT_TRUE(eventually(20s, [&] { return dead(keeper_pid()); }));
  EXPECT_FALSE(dead(child));
  EXPECT_TRUE(kept->running());
  EXPECT_TRUE(adopt_one()->running());
  auto successor = try_start(spec("exit 0"));
  ASSERT_FALSE(successor);
  EXPECT_EQ(successor.error().reason, "kept_alive");
  auto extended = run(io_, kept->extend(7, for_all(boot_now() + 600s)));
  ASSERT_FALSE(extended);
  EXPECT_EQ(extended.error().reason, "kept_silent");
  kept->stop();
  EXPECT_EQ(wait(kept), std::nullopt) << "nobody recorded its end";
  EXPECT_TRUE(eventually(20s, [&] { return dead(child); }));  // its lock is free a moment before
}

TEST_F(KeeperAdoption, ItsKeeperKilled_TheChildIsEndedAtItsDeadline_WhereSomebodyWaits) {
  auto kept = start(spec("trap '' TERM; echo $$; sleep 600 & echo $!; wait"));
  std::vector<int> all = pids(2);
  ::kill(keeper_pid(), SIGKILL);
  json::object over = record();
  over["valid_until_us"] = boot_now().time_since_epoch().count() + 200'000;
  std::ofstream(folder_.path() + "/kept/demo.worker.record") << json::to_text(over);
  EXPECT_EQ(wait(adopt_one()), std::nullopt);
  EXPECT_GE(boot_now(), Instant(Duration(over.at("valid_until_us").as_int64())));
  EXPECT_FALSE(kept->running());
  for (int pid : all) EXPECT_TRUE(dead(pid));
}

TEST_F(KeeperAdoption, ANewBoot_AdoptsNothingAndEndsNothing) {
  auto kept = start(spec("exec sleep 600"));
  KeptSpec other = spec("exit 4");
  other.name = "demo.forward";
  auto ended = start(other);
  ASSERT_TRUE(eventually(20s, [&] { return !ended->running(); }));
  boot_ = "boot-2";
  EXPECT_TRUE(host()->adopt().empty());
  EXPECT_TRUE(kept->running());
  auto successor = try_start(spec("exit 0"));
  ASSERT_FALSE(successor) << "its lock still says that it lives";
  EXPECT_EQ(successor.error().reason, "kept_alive");
  boot_ = "boot-1";
  EXPECT_EQ(adopt_one()->name(), "demo.worker");
}

TEST_F(KeeperAdoption, TheChildrenOfADeadProcess_DoNotKeepTheNextOneFromItsBoot_AndACopiedFolderHasAnother) {
  std::string file = folder_.path() + "/boot.json";
  std::optional<BootFile> first;  // of the process that is killed
  auto begin = [&](boost::asio::io_context& own) {
    first.emplace(*BootFile::take(file));
    KeeperSettings its = settings();
    its.boot = first->boot();
    return !first->continued() && run(own, (*KeeperHost::create(own, its))->start(spec("exec sleep 600")));
  };
  in_a_process_that_is_killed(begin, [&] {
    EXPECT_FALSE(BootFile::take(file)) << "while that process lives, nobody else continues its boot";
  });

  std::filesystem::create_directory(folder_.path() + "/copy");
  std::filesystem::copy_file(file, folder_.path() + "/copy/boot.json");
  boot_ = BootFile::take(folder_.path() + "/copy/boot.json")->boot().str();
  EXPECT_TRUE(host()->adopt().empty());
  auto next = BootFile::take(file);
  ASSERT_TRUE(next) << next.error().message;
  EXPECT_TRUE(next->continued());
  boot_ = next->boot().str();
  EXPECT_TRUE(adopt_one()->running());
}

}  // namespace
}  // namespace weir::test
