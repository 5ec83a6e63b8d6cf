// A control plane's life: it starts, answers, ends when told to, and comes back with what it knew. And a runner's end.
#include "fleet.hpp"
#include "stall.hpp"
#include "weir_process.hpp"
#include "where.hpp"

#include <gtest/gtest.h>

#include <sys/wait.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace weir::test {

TEST(Lifecycle, Sigterm_EndsCleanly_AndTheStateIsThereAfterwards) {
  TempDir folder;
  WeirProcess plane(folder.path(), "sqlite:" + folder.path() + "/weir.db");
  plane.furnish(2);
  EXPECT_EQ(plane.get("/readyz").status, 200);
  EXPECT_EQ(plane.terminate(), 0);
  plane.start();
  EXPECT_EQ(plane.get("/v1/cameras/cam-2").field("camera_uuid"), "cam-2");
}

TEST(Lifecycle, SecondControlPlaneOnOneFile_IsKeptOut) {
  TempDir folder;
  std::string database = "sqlite:" + folder.path() + "/weir.db";
  WeirProcess plane(folder.path(), database);
  std::string command = fmt::format("'{}' control-plane --db {} --listen 127.0.0.1:0 --auth-secret-file {}/auth.secret 2>&1",
                                    WEIR_BINARY, database, folder.path());
  FILE* pipe = ::popen(command.c_str(), "r");
  std::string output(4096, '\0');
  output.resize(std::fread(output.data(), 1, output.size(), pipe));
  EXPECT_EQ(WEXITSTATUS(::pclose(pipe)), 1);
  EXPECT_NE(output.find("in use by another control plane"), std::string::npos) << output;
}

TEST(Lifecycle, SettingsFileThatChanges_IsReadAgain_BySignalOrByItself_AndAMistakeIsRefused) {
  TempDir folder;
  std::string file = folder.path() + "/weir.yaml";
  auto write = [&](const std::string& text) {
    std::ofstream(file + ".new") << text;
    std::filesystem::rename(file + ".new", file);
  };
  write("log_level: info\n");
  WeirProcess plane(folder.path(), "sqlite:" + folder.path() + "/weir.db", {"--config", file});
  auto said = [&](const std::string& text) {
    return eventually(10s, [&] { return plane.log().find(text) != std::string::npos; });
  };
  ::kill(plane.pid(), SIGHUP);
  EXPECT_TRUE(said("nothing that takes effect at once has changed")) << plane.log();
  write("log_level: debug\nhttp_idle_timeout_s: 7\n");
  EXPECT_TRUE(said(R"("took_effect":"log_level","needs_restart":"http_idle_timeout_s")")) << plane.log();
  write("log_level: loud\n");
  EXPECT_TRUE(said("settings.refused")) << plane.log();
  EXPECT_EQ(plane.get("/readyz").status, 200);
  EXPECT_EQ(plane.terminate(), 0);
}

TEST(Lifecycle, ALogThatCannotBeWritten_IsSaid_AndRefusedWhereAPersonLooks) {
  TempDir folder;
  std::string logs = folder.path() + "/logs", err = folder.path() + "/err";
  std::filesystem::create_directories(logs + "/weir.log");  // a folder in the file's place: no user can write there
  WeirProcess plane(folder.path(), "sqlite:" + folder.path() + "/weir.db", {"--log-dir", logs});
  EXPECT_NE(plane.log().find("log.no_file"), std::string::npos) << plane.log();
  EXPECT_EQ(plane.get("/healthz").status, 200);
  int status = std::system(fmt::format("timeout 10 '{}' up --listen 127.0.0.1:0 --state-dir {}/state --log-dir {} >{} 2>&1",
                                       WEIR_BINARY, folder.path(), logs, err).c_str());
  EXPECT_EQ(WEXITSTATUS(status), 2);
  EXPECT_EQ(text_in_file(err), fmt::format("weir: cannot write {}/weir.log: Is a directory\n", logs));
}

TEST(Lifecycle, StartedWithoutStandardInputOrOutput_ACommandDoesItsWork) {
  TempDir folder;
  std::string out = folder.path() + "/out";
  auto weir = [&](const std::string& words) { return std::system(fmt::format("'{}' {}", WEIR_BINARY, words).c_str()); };
  EXPECT_EQ(WEXITSTATUS(weir(fmt::format("camera test rtsp://127.0.0.1:1/x <&- >{} 2>&1", out))), 1);
  EXPECT_NE(text_in_file(out).find("TCP_REFUSED"), std::string::npos) << text_in_file(out);
  EXPECT_EQ(weir(fmt::format("version >&- 2>{}", out)), 0) << "who closes it wants no answer";
  EXPECT_EQ(text_in_file(out), "");
}

TEST(Lifecycle, ARunnersEnd_IsThatOfAllItStarted_AndNotOfWhatItsShellStartedBefore) {
  TempDir folder;
  WeirProcess plane(folder.path(), "sqlite:" + folder.path() + "/weir.db");
  std::string program = folder.path() + "/weir", sidecar = folder.path() + "/sidecar";
  std::ofstream(program) << "#!/bin/sh\nsleep 300 >/dev/null 2>&1 &\necho $! >" + sidecar + "\n"
                         << "exec '" WEIR_BINARY "' \"$@\"\n";
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  Runner runner(program, "r1", folder.path() + "/r1",
                {"--control-plane-url", plane.url(), "--auth-secret-file", plane.folder() + "/auth.secret",
                 "--prom-manager-port", "0", "--prom-worker-port", "0"});
  int foreign = std::atoi(text_in_file(sidecar).c_str());
  ASSERT_GT(foreign, 0) << runner.log();
  EXPECT_TRUE(eventually(20s, [&] { return runner.has_worker_up() && !runner.workers().empty(); })) << runner.log();
  std::vector<int> workers = runner.workers();
  signal_all({runner.manager()}, SIGKILL);
  EXPECT_EQ(runner.wait(20s), 1) << runner.log();
  for (int pid : workers) EXPECT_TRUE(ended(pid)) << "left behind";
  EXPECT_TRUE(runner.logged("the last will was carried out")) << runner.log();
  EXPECT_FALSE(ended(foreign)) << "it was not the runner's to end";
  ::kill(foreign, SIGKILL);
}

}  // namespace weir::test
