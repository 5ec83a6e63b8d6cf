// One process below the real weir-keeper: its end, its deadline, what it may be told, and what a keeper costs.
#include "keeper_rig.hpp"

#include <thread>

namespace weir::test {
namespace {

class Keeper : public KeeperRig {};

TEST_F(Keeper, TheChildsExitCode_IsAnswered_AndNothingIsLeftBehind) {
  auto kept = start(spec("exit 7"));
  EXPECT_EQ(kept->name(), "demo.worker");
  EXPECT_EQ(wait(kept), 7);
  EXPECT_EQ(wait(kept), 7) << "asked again";
  EXPECT_FALSE(kept->running());
  EXPECT_EQ(files(), 0u);
  EXPECT_EQ(wait(start(spec("kill -9 $$"))), 128 + SIGKILL);
  EXPECT_EQ(wait(start(spec("exit 0"))), 0);
}

TEST_F(Keeper, AGrandchild_KeepsItAlive_UntilItIsGone) {
  auto kept = start(spec("sleep 600 & echo $!; exit 3"));
  int grandchild = pids(1)[0];
  ASSERT_TRUE(eventually(20s, [&] { return files() == 4; })) << "record, lock, socket, and the child's end";
  EXPECT_TRUE(kept->running());
  auto successor = try_start(spec("exit 0"));
  ASSERT_FALSE(successor);
  EXPECT_EQ(successor.error().reason, "kept_alive");
  auto extended = run(io_, kept->extend(8, for_all(boot_now() + 600s)));
  ASSERT_FALSE(extended);
  EXPECT_EQ(extended.error().reason, "ended") << "what the child left behind is not extended";
  ::kill(grandchild, SIGKILL);
  EXPECT_EQ(wait(kept), 3);
}

TEST_F(Keeper, WhatTheChildLeftBehind_IsKilledAfterTheStopGrace) {
  stop_grace_ = 200ms;
  auto kept = start(spec("sleep 600 & echo $!; exit 3"));
  EXPECT_EQ(wait(kept), 3);
  EXPECT_TRUE(dead(pids(1)[0]));
}

TEST_F(Keeper, AtTheDeadline_EverythingBelowIsKilled_AlsoInASessionOfItsOwn) {
  auto kept = start(
      spec("trap '' TERM HUP; sleep 600 & setsid sh -c 'echo $$; sleep 600 & echo $!; wait' & echo $! $$; wait"));
  std::vector<int> all = pids(4);
  Instant until = boot_now() + 500ms;
  ASSERT_TRUE(run(io_, kept->extend(8, for_all(until))));
  EXPECT_EQ(wait(kept), 128 + SIGKILL);
  EXPECT_GE(boot_now(), until);
  EXPECT_LT(boot_now(), until + 10s);
  for (int pid : all) EXPECT_TRUE(dead(pid)) << pid;
}

TEST_F(Keeper, AnExtension_MovesTheDeadline_AndALowerVersionIsRefused) {
  Instant first_end = boot_now() + 3s;
  auto kept = start(spec("exec sleep 600", 3s));
  Instant later = boot_now() + 600s;
  ASSERT_TRUE(run(io_, kept->extend(9, for_all(later))));
  EXPECT_EQ(kept->version(), 9);
  EXPECT_EQ(kept->ends_at(), later);
  auto stale = run(io_, kept->extend(8, for_all(later + 600s)));
  ASSERT_FALSE(stale);
  EXPECT_EQ(stale.error().reason, "stale_version");
  ASSERT_TRUE(eventually(20s, [&] { return boot_now() > first_end + 500ms; }));
  EXPECT_TRUE(kept->running());
  EXPECT_EQ(adopt_one()->version(), 9) << "the next process knows it";
  EXPECT_EQ(adopt_one()->ends_at(), later);
  ASSERT_TRUE(run(io_, kept->extend(10, for_all(boot_now()))));
  EXPECT_EQ(wait(kept), 128 + SIGKILL) << "a later version may bring the deadline closer";
}

TEST_F(Keeper, AnOrderToStop_LetsTheChildSayHowItEnds_AndKillsWhatDoesNot) {
  auto kept = start(spec("trap 'exit 5' TERM; echo $$; while :; do sleep 0.05; done"));
  pids(1);
  kept->stop();
  EXPECT_EQ(wait(kept), 5);
  stop_grace_ = 300ms;
  std::filesystem::remove(output());
  kept = start(spec("trap '' TERM; setsid sleep 600 & echo $!; while :; do sleep 0.05; done"));
  int grandchild = pids(1)[0];
  kept->stop();
  EXPECT_EQ(wait(kept), 128 + SIGKILL);
  EXPECT_TRUE(dead(grandchild));
}

TEST_F(Keeper, TheSignalsOfATerminalOrAServiceManager_DoNotEndIt) {
  auto kept = start(spec("echo $$; exec sleep 600"));
  int child = pids(1)[0], keeper = keeper_pid();
  EXPECT_EQ(::getsid(keeper), keeper);
  for (int signal : {SIGHUP, SIGINT, SIGTERM, SIGPIPE}) ::kill(keeper, signal);
  ASSERT_TRUE(run(io_, kept->extend(7, for_all(boot_now() + 600s)))) << "it answers after them";
  ::kill(child, SIGTERM);
  EXPECT_EQ(wait(kept), 128 + SIGTERM) << "the child has the signals of a new program";
}

TEST_F(Keeper, StoppedPastItsDeadline_ItHearsWhatWasSaidMeanwhile_BeforeItKills) {
  auto kept = start(spec("exec sleep 600"));
  Instant until = boot_now() + 2s;
  ASSERT_TRUE(run(io_, kept->extend(8, for_all(until))));
  ::kill(keeper_pid(), SIGSTOP);
  auto unheard = run(io_, kept->extend(8, for_all(boot_now() + 600s)));
  ASSERT_FALSE(unheard) << "nobody answers within a second";
  EXPECT_EQ(unheard.error().reason, "kept_silent");
  ASSERT_TRUE(eventually(20s, [&] { return boot_now() > until + 100ms; }));
  ::kill(keeper_pid(), SIGCONT);
  EXPECT_TRUE(run(io_, kept->extend(8, for_all(boot_now() + 600s))));
  EXPECT_TRUE(kept->running());
}

TEST_F(Keeper, TheDocument_IsReadAtDescriptor3_AndStandsNowhereElse) {
  KeptSpec what = spec("cat /dev/fd/3; echo; echo \"$GREETING,$WEIR_TEST_KEY,\"; echo ready; exec sleep 600");
  what.document = Secret("s3cret-d0c");
  what.environment = {{"GREETING", "hello there"}};
  what.unset = {"WEIR_TEST_KEY"};
  ::setenv("WEIR_TEST_KEY", "wk_secret", 1);
  ::setenv("GREETING", "replaced", 1);
  auto kept = start(what);
  ASSERT_TRUE(eventually(20s, [&] { return said().ends_with("ready\n"); }));
  EXPECT_EQ(said(), "s3cret-d0c\nhello there,,\nready\n");
  std::string children = text_in_file(fmt::format("/proc/{0}/task/{0}/children", keeper_pid()));
  for (int pid : {keeper_pid(), std::stoi(children)})
    for (const char* file : {"cmdline", "environ", "status", "stat"})
      EXPECT_EQ(text_in_file(fmt::format("/proc/{}/{}", pid, file)).find("s3cret-d0c"), std::string::npos) << file;
  EXPECT_EQ(text_in_file(folder_.path() + "/kept/demo.worker.record").find("s3cret-d0c"), std::string::npos);
  auto keeper_has_it = [&] {
    std::error_code closed_meanwhile;
    for (const auto& each : std::filesystem::directory_iterator(fmt::format("/proc/{}/fd", keeper_pid())))
      if (std::filesystem::read_symlink(each.path(), closed_meanwhile).string().find("memfd") != std::string::npos) return true;
    return false;
  };
  EXPECT_TRUE(eventually(20s, [&] { return !keeper_has_it(); })) << "the keeper closes it once the child has begun";
}

// The child's own lease socket, played by the test: hears one line and answers it.
class LeaseSocketOfAChild {
 public:
  explicit LeaseSocketOfAChild(const std::string& path, std::string answer) : fd_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    path.copy(at.sun_path, sizeof at.sun_path - 1);
    EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
    EXPECT_EQ(::listen(fd_, 1), 0);
    serving_ = std::thread([this, answer = std::move(answer) + "\n"] {
      int peer = ::accept(fd_, nullptr, nullptr);
      for (char c = 0; ::recv(peer, &c, 1, 0) == 1 && c != '\n';) heard_ += c;
      ::send(peer, answer.data(), answer.size(), MSG_NOSIGNAL);
      ::close(peer);
    });
  }
  std::string heard() {
    serving_.join();
    ::close(fd_);
    return heard_;
  }

 private:
  int fd_;
  std::string heard_;
  std::thread serving_;
};

TEST_F(Keeper, WhereTheChildHasALeaseSocket_BothAreExtended) {
  KeptSpec what = spec("exec sleep 600");
  what.lease_socket = folder_.path() + "/lease.sock";
  auto kept = start(what);
  auto alone = run(io_, kept->extend(7, for_all(boot_now() + 700s)));
  ASSERT_FALSE(alone) << "the child does not listen yet";
  EXPECT_EQ(alone.error().reason, "kept_silent");
  Instant until = boot_now() + 700s, keep = until + 100s;
  std::string line = fmt::format(R"({{"version":8,"valid_until_us":{},"keep_until_us":{}}})",
                                 until.time_since_epoch().count(), keep.time_since_epoch().count());
  LeaseSocketOfAChild child(what.lease_socket, line);
  EXPECT_TRUE(run(io_, kept->extend(8, {until, keep})));
  EXPECT_EQ(child.heard(), line);
  EXPECT_EQ(kept->ends_at(), keep) << "the keeper leaves the child alone for as long as it may keep its connections";
}

TEST_F(Keeper, WhereTheChildKnowsItsDeadline_TheKeeperKillsItOnlyLater) {
  backstop_ = 1s;
  KeptSpec what = spec("exec sleep 600", 500ms);
  what.lease_socket = folder_.path() + "/lease.sock";
  auto kept = start(what);
  EXPECT_EQ(wait(kept), 128 + SIGKILL);
  EXPECT_GE(boot_now(), what.valid_until + 1s);
}

TEST_F(Keeper, AnswersTheProtocolOfALeaseSocket_AlsoWhileManyHoldConnectionsOpen) {
  auto kept = start(spec("exec sleep 600"));
  std::vector<int> idle;
  for (int i = 0; i < 20; ++i) {
    idle.push_back(connected(socket_path()));
    EXPECT_NE(say(idle.back(), "{}").find(R"("version":7)"), std::string::npos);
  }
  int peer = connected(socket_path());
  EXPECT_NE(say(peer, "nonsense").find("bad_request"), std::string::npos);
  EXPECT_NE(say(peer, R"({"version":"9"})").find("bad_request"), std::string::npos);
  EXPECT_NE(say(peer, R"({"version":9,"valid_until_us":900000000000000})").find(R"("version":9)"), std::string::npos);
  EXPECT_NE(say(peer, R"({"version":8,"valid_until_us":900000000000000})").find("stale_version"), std::string::npos);
  EXPECT_EQ(say(peer, std::string(4000, 'x')), "") << "a line without end ends the connection";
  idle.push_back(peer);
  for (int fd : idle) ::close(fd);
  EXPECT_TRUE(run(io_, kept->extend(9, for_all(boot_now() + 600s))));
}

TEST_F(Keeper, WhatCannotBeStarted_IsAnErrorThatNamesIt_AndLeavesNothing) {
  KeptSpec missing = spec("exit 0");
  missing.command = {"/nowhere/worker"};
  auto none = try_start(missing);
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("/nowhere/worker"), std::string::npos);
  KeptSpec silent = spec("exit 0");
  silent.output = "/nowhere/output";
  none = try_start(silent);
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("/nowhere/output"), std::string::npos);
  for (const char* name : {"", "a/b", "a b", "../a"}) {
    KeptSpec bad = spec("exit 0");
    bad.name = name;
    EXPECT_FALSE(try_start(bad)) << name;
  }
  KeeperSettings astray = settings();
  astray.keeper = "/nowhere/weir-keeper";
  none = run(io_, (*KeeperHost::create(io_, astray))->start(spec("exit 0")));
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("/nowhere/weir-keeper"), std::string::npos);
  EXPECT_EQ(files(), 0u);
  astray.folder = folder_.path() + "/" + std::string(90, 'x');
  EXPECT_FALSE(KeeperHost::create(io_, astray));
  std::ofstream(folder_.path() + "/script") << "#!/nowhere/sh\n";
  std::filesystem::permissions(folder_.path() + "/script", std::filesystem::perms::owner_all);
  KeptSpec broken = spec("exit 0");
  broken.command = {folder_.path() + "/script"};
  EXPECT_EQ(wait(start(broken)), 127);
  EXPECT_NE(said().find("weir-keeper: cannot start"), std::string::npos) << said();
}

double kilobytes(const std::string& rollup, const std::string& name) {
  size_t at = rollup.find("\n" + name + ":");
  return at == std::string::npos ? 0 : std::atof(rollup.c_str() + at + name.size() + 2);
}

TEST_F(Keeper, TwoHundred_AreSmall) {
  constexpr int kCount = 200;
  sync_records_ = false;  // the disk's time is not the keeper's
  std::vector<std::unique_ptr<Kept>> all;
  auto one = host();
  Instant begun = boot_now();
  for (int i = 0; i < kCount; ++i) {
    KeptSpec what = spec("exec sleep 600");
    what.name = fmt::format("s{}.worker", i);
    what.command = {"/bin/sleep", "600"};
    auto kept = run(io_, one->start(what));
    ASSERT_TRUE(kept) << kept.error().message;
    all.push_back(*std::move(kept));
  }
  double each_ms = seconds(boot_now() - begun) * 1000 / kCount;
  for (auto& kept : all) ASSERT_TRUE(run(io_, kept->extend(8, for_all(boot_now() + 600s))));
  double rss = 0, pss = 0, own = 0;
  for (int i = 0; i < kCount; ++i) {
    std::string rollup = text_in_file(fmt::format("/proc/{}/smaps_rollup", keeper_pid(fmt::format("s{}.worker", i))));
    rss += kilobytes(rollup, "Rss") / kCount;
    pss += kilobytes(rollup, "Pss") / kCount;
    own += kilobytes(rollup, "Private_Dirty") / kCount;
  }
  std::printf("NOTE: %d keepers: each %.0f kB resident, %.0f kB of it as its share, %.0f kB its own; started in %.1f "
              "ms\n", kCount, rss, pss, own, each_ms);
  EXPECT_GT(rss, 0);
  EXPECT_LT(pss, 400);
  EXPECT_LT(rss, 2000);
  for (auto& kept : all) kept->kill();
  for (auto& kept : all) EXPECT_EQ(wait(kept), 128 + SIGKILL);
  EXPECT_EQ(files(), 0u);
}

}  // namespace
}  // namespace weir::test
