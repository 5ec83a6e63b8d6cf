// `weir up` as a process: its output, its terminal, its runner and its program.
#include "up_testing.hpp"
#include "where.hpp"

#include "weir/base/clock.hpp"

namespace weir::test {
namespace {

TEST_F(WeirUpProcess, AStalledReaderOfItsOutput_StopsNothing_AndIsToldWhatItMissed) {
  Pipe out, err;
  UpProcess up(folder_, {}, {.out = out.writer(), .err = err.writer()});
  ASSERT_TRUE(eventually(20s, [&] { return out.reads("listening on ") && ready() && heartbeats() > 0; }))
      << err.read_all();
  furnish();
  out.fill();
  err.fill();
  add_camera("cam-1");  // a line on stdout
  up.signal(SIGHUP);    // and one in the log
  auto tried = [&] { return ask("events 'stream.#' --after 0").find("cam-1") != std::string::npos; };
  EXPECT_TRUE(eventually(20s, [&] { return HasFailure() || tried(); }));
  ASSERT_TRUE(answers_on()) << "it waits for the reader of its output";
  EXPECT_NE(ask("camera list").find("cam-1"), std::string::npos);
  out.read_all();
  err.read_all();
  add_camera("cam-2");
  up.signal(SIGHUP);
  EXPECT_TRUE(eventually(20s, [&] { return out.reads("cam-2: ") && err.reads("settings.reloaded"); }));
  EXPECT_TRUE(out.reads("weir: nobody read this output; lines dropped: ")) << out.read_all();
  EXPECT_TRUE(err.reads("\"log.dropped\"")) << err.read_all();
}

TEST_F(WeirUpProcess, ATerminalStoppedByCtrlS_StopsNothing_AndShowsTheTableWhenItGoesOn) {
  Terminal terminal;
  UpProcess up(folder_, {}, {.out = terminal.program(), .err = terminal.program()});
  ASSERT_TRUE(eventually(20s, [&] { return terminal.shows("No cameras yet") && ready() && heartbeats() > 0; }));
  furnish();
  terminal.stop();
  ASSERT_TRUE(answers_on()) << "it waits for its terminal";
  add_camera("yard-7");
  EXPECT_FALSE(terminal.shows("yard-7"));
  terminal.type('\x11');  // Ctrl-Q
  EXPECT_TRUE(eventually(20s, [&] { return terminal.shows("yard-7"); }));
  terminal.stop();
  up.signal(SIGTERM);
  EXPECT_EQ(up.wait(20s), 0) << "a stopped terminal must not keep it from ending";
}

TEST_F(WeirUpProcess, WhatDies_IsSaidAboveTheTable_WithWhatFollows) {
  Terminal terminal;
  UpProcess up(folder_, {}, {.out = terminal.program(), .err = terminal.program()});
  std::vector<int> workers;
  ASSERT_TRUE(eventually(20s, [&] {
    return terminal.shows("No cameras yet") && ready() && !(workers = up.children_with("shard")).empty();
  }));
  ::kill(workers.front(), SIGKILL);
  EXPECT_TRUE(eventually(20s, [&] { return terminal.shows("worker.crashed: exit code 137; another worker takes over"); }));
  ::kill(up.children_with("--manager").front(), SIGKILL);
  EXPECT_TRUE(eventually(20s, [&] { return terminal.shows("the runner ended with exit code 1: another one is started"); }));
}

TEST_F(WeirUpProcess, WhoseTerminalIsClosed_EndsCleanly_ButReadsItsSettingsAgainWhileItIsOpen) {
  auto terminal = std::make_unique<Terminal>();
  UpProcess up(folder_, {}, {.out = terminal->program(), .err = terminal->program()});
  ASSERT_TRUE(eventually(20s, [&] { return terminal->shows("No cameras yet") && ready() && heartbeats() > 0; }));
  up.signal(SIGHUP);
  EXPECT_TRUE(answers_on());
  terminal.reset();
  up.signal(SIGHUP);  // the kernel sends it to whatever ran in there
  EXPECT_EQ(up.wait(20s), 0);
}

TEST_F(WeirUpProcess, ARunnerThatCannotStart_IsShownWithItsExitCode_AndWhereTheLogIs) {
  std::string state = folder_.path() + "/state";
  fs::create_directory(state);
  std::ofstream(state + "/runner") << "where it wants a folder\n";
  Terminal terminal;
  UpProcess up(folder_, {}, {.out = terminal.program(), .err = terminal.program()});
  EXPECT_TRUE(eventually(20s, [&] {
    return terminal.shows(": the runner ended with exit code 1") && terminal.shows("It is started again in ") &&
           terminal.shows("; the log says why: " + state.substr(0, 20));
  }));
  up.signal(SIGTERM);
  EXPECT_EQ(up.wait(20s), 0);
}

TEST_F(WeirUpProcess, EverySettingInAFile_IsNoObstacleToItsRunner) {
  UpProcess up(folder_, {"--config", WEIR_SOURCE_DIR "/deploy/weir.sample.yaml"});
  EXPECT_TRUE(eventually(20s, [&] { return !url().empty() && ready(); })) << up.err();
  EXPECT_TRUE(answers_on()) << up.err();
  up.signal(SIGTERM);
  EXPECT_EQ(up.wait(20s), 0);
  EXPECT_EQ(up.err().find("runner.restarting"), std::string::npos) << up.err();
}

TEST_F(WeirUpProcess, AShellThatIsSetUpForAnotherRunner_DoesNotMisleadItsOwn) {
  const std::vector<std::string> names = {"API_KEY", "RUNNER_SITE", "RUNNER_TENANT"};
  for (const std::string& name : names) ::setenv(name.c_str(), "of-another-place", 1);
  UpProcess up(folder_, {});
  for (const std::string& name : names) ::unsetenv(name.c_str());
  ASSERT_TRUE(eventually(20s, [&] { return !url().empty() && ready() && heartbeats() > 0; })) << up.err();
  std::vector<int> managers = up.children_with("--manager");
  ASSERT_EQ(managers.size(), 1u);
  std::string environment = '\0' + text_of(fmt::format("/proc/{}/environ", managers.front()));
  for (const std::string& name : names) EXPECT_EQ(environment.find('\0' + name + '='), std::string::npos) << name;
}

TEST_F(WeirUpProcess, AnImportWhoseReaderHasLeft_IsCompleted_AndSaysThatItsReportWasLost) {
  UpProcess up(folder_, {});
  ASSERT_TRUE(eventually(20s, [&] { return !url().empty() && ready(); })) << up.err();
  std::string state = folder_.path() + "/state", file = folder_.path() + "/cameras.csv", err = folder_.path() + "/err";
  std::ofstream(file) << "camera_uuid,tenant_id,site_id,rtsp_url\nc1,t1,s1,rtsp://127.0.0.1:1/x\n"
                      << "c2,t1,s1,rtsp://127.0.0.1:1/x\nc3,t1,s1,rtsp://127.0.0.1:1/x\n";
  int importing = ::fork();
  if (importing == 0) {
    int ends[2];
    std::signal(SIGPIPE, SIG_DFL);
    if (::pipe(ends) != 0 || ::dup2(ends[1], 1) < 0 || ::close(ends[0]) != 0) ::_exit(126);
    ::dup2(::open(err.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600), 2);
    ::execl(WEIR_BINARY, WEIR_BINARY, "camera", "import", file.c_str(), "--create", "--state-dir", state.c_str(),
            nullptr);
    ::_exit(127);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(importing, &status, 0), importing);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << status;
  EXPECT_EQ(text_of(err), "weir: cannot write to standard output: Broken pipe\n");
  std::string cameras = ask("camera list");
  for (const char* camera : {"c1 ", "c2 ", "c3 "}) EXPECT_NE(cameras.find(camera), std::string::npos) << cameras;
}

TEST_F(WeirUpProcess, SimulatedCamerasOfAnEarlierOne_AreRemoved_AndNoOthers) {
  auto up = std::make_unique<UpProcess>(folder_, std::vector<std::string>());
  ASSERT_TRUE(eventually(20s, [&] { return !url().empty() && ready(); })) << up->err();
  ask("tenant add demo");
  ask("site add demo --tenant demo");
  for (const char* camera : {"--id demo-1 --name 'Simulated camera cam-1'", "--id demo-yard --name Yard", "--id gate"})
    ask(fmt::format("camera add --tenant demo --site demo {} rtsp://127.0.0.1:1/x", camera));
  up->signal(SIGKILL);  // as one with --demo, it takes nothing back
  up->wait(5s);
  fs::remove(folder_.path() + "/state/endpoint");
  up = std::make_unique<UpProcess>(folder_, std::vector<std::string>());
  ASSERT_TRUE(eventually(20s, [&] { return !url().empty() && ready(); })) << up->err();
  std::string cameras;
  auto removed = [&] { return (cameras = ask("camera list")).find("demo-1 ") == std::string::npos; };
  EXPECT_TRUE(eventually(20s, removed)) << cameras;
  for (const char* camera : {"demo-yard ", "gate "}) EXPECT_NE(cameras.find(camera), std::string::npos) << cameras;
  EXPECT_TRUE(eventually(20s, [&] {
    return ask("events 'camera.#' --after 0").find("camera.deleted.demo.demo.demo-1") != std::string::npos;
  }));
}

TEST_F(WeirUpProcess, ReplacedByAnUpgrade_ItStartsItsRunnerAgain_FromTheNewProgram) {
  std::string bin = folder_.path() + "/bin", program = bin + "/weir";
  fs::create_directory(bin);
  fs::copy_file(WEIR_BINARY, program);
  fs::copy_file(WEIR_WORKER, bin + "/weir-worker");
  UpProcess up(folder_, {}, {.program = program});
  std::vector<int> managers;
  ASSERT_TRUE(eventually(20s, [&] { return !(managers = up.children_with("--manager")).empty(); })) << up.err();
  auto kill_runner = [&] {
    auto runners = up.children_with("--runner-id");
    std::erase_if(runners, [&](int pid) { return pid == managers.front(); });
    ASSERT_EQ(runners.size(), 1u) << "the parent of the manager";
    ::kill(runners.front(), SIGKILL);
    ASSERT_TRUE(eventually(20s, [&] {
      auto now = up.children_with("--manager");
      bool another = !now.empty() && now != managers;
      if (another) managers = now;
      return another;
    })) << up.err();
  };
  auto manager_program = [&] { return fs::read_symlink(fmt::format("/proc/{}/exe", managers.front())).string(); };
  fs::copy_file(WEIR_BINARY, bin + "/weir.new");
  fs::rename(bin + "/weir.new", program);
  ASSERT_NO_FATAL_FAILURE(kill_runner());
  EXPECT_EQ(manager_program(), program);
  fs::remove(program);
  ASSERT_NO_FATAL_FAILURE(kill_runner());
  EXPECT_EQ(manager_program(), program + " (deleted)") << "without any file, from the one that runs";
}

}  // namespace
}  // namespace weir::test
