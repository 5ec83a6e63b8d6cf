// Settings of a runner that change while it runs: no camera is touched, whatever they are.
#include "fault_proxy.hpp"
#include "fleet.hpp"
#include "stall.hpp"
#include "where.hpp"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace weir::test {
namespace {

void write(const std::string& file, const std::string& text) {
  std::ofstream(file + ".new") << text;
  std::filesystem::rename(file + ".new", file);
}

TEST(RunnerSettings, AnotherAddressAndAnotherTtl_TakeEffectAtOnce_AndNoCameraIsTouched) {
  if (!fleet_needs().empty()) GTEST_SKIP() << fleet_needs();
  RunnerFleet fleet(FleetOptions{.camera = {{"max_fps", 5}}});
  FaultProxy old_way(fleet.plane().url()), new_way(fleet.plane().url());
  std::string file = fleet.folder().path() + "/runner.yaml";
  auto settings = [&](const FaultProxy& way, int ttl) {
    return fmt::format("control_plane_url: {}\nlease_ttl_s: {}\nlease_renew_interval_s: 1\n", way.url(), ttl);
  };
  write(file, settings(old_way, 3));
  Runner runner(WEIR_BINARY, "r1", fleet.folder().path() + "/r1",
                {"--config", file, "--auth-secret-file", fleet.folder().path() + "/auth.secret", "--prom-manager-port",
                 "0", "--prom-worker-port", "0", "--models-dir", part("models"), "--library-dir", part("lib")});
  auto all_stream = [&] {
    return std::ranges::all_of(fleet.cameras(), [&](const std::string& camera) { return runner.streams(camera); });
  };
  ASSERT_TRUE(eventually(20s, all_stream)) << runner.log();
  auto versions = fleet.versions();
  int worker = runner.worker_of("cam-1");
  auto dials = [&] { return fleet.camsim().dials().at("dials").as_array().size(); };
  size_t dialled = dials();

  write(file, settings(new_way, 20));
  ASSERT_TRUE(eventually(10s, [&] { return runner.log().find("settings.reloaded") != std::string::npos; }))
      << runner.log();
  EXPECT_NE(runner.log().find(R"("took_effect":"control_plane_url, lease_ttl_s","needs_restart":"")"),
            std::string::npos)
      << runner.log();
  // A runner that still used the old address would lose its leases and publish nothing from now on.
  old_way.cut();
  for (const std::string& camera : fleet.cameras())
    EXPECT_TRUE(eventually(10s, [&] { return runner.number(camera, "lease_valid_s") > 10; })) << camera;
  fleet.history().read(fleet.plane());
  auto heard = fleet.history().captures("cam-1").size();
  EXPECT_TRUE(eventually(10s,
                         [&] {
                           fleet.history().read(fleet.plane());
                           return fleet.history().captures("cam-1").size() > heard + 5;
                         }))
      << "its events come by the new way\n"
      << runner.log();
  EXPECT_EQ(fleet.versions(), versions);
  EXPECT_EQ(runner.worker_of("cam-1"), worker);
  EXPECT_EQ(dials(), dialled);
  fleet.history().expect_one_voice();
  // The last will goes to the new address, too.
  signal_all({runner.manager()}, SIGKILL);
  EXPECT_TRUE(eventually(5s, [&] { return fleet.owner_of("cam-1").empty(); })) << runner.log();
}

TEST(RunnerSettings, SecretsOfTheEnvironment_DoNotReachWorkers) {
  if (!fleet_needs().empty()) GTEST_SKIP() << fleet_needs();
  const std::vector<std::string> secrets = {"API_KEY", "DATABASE_URL", "PGPASSWORD", "WEIR_TOKEN"};
  RunnerFleet fleet(FleetOptions{.cameras = 1});
  for (const std::string& name : secrets) ::setenv(name.c_str(), "", 1);
  Runner& runner = fleet.add("r1");
  for (const std::string& name : secrets) ::unsetenv(name.c_str());
  ASSERT_TRUE(eventually(20s, [&] { return runner.has_worker_up() && !runner.workers().empty(); })) << runner.log();
  auto environment = [](int pid) { return '\0' + text_in_file(fmt::format("/proc/{}/environ", pid)); };
  const std::string given = environment(runner.parent()), passed_on = environment(runner.workers().front());
  for (const std::string& name : secrets) {
    std::string entry = '\0' + name + '=';
    EXPECT_NE(given.find(entry), given.npos) << name;
    EXPECT_EQ(passed_on.find(entry), passed_on.npos) << name;
  }
}

TEST(RunnerSettings, WhatCannotBeReadAgain_IsRefused_BeforeAnythingStarts) {
  TempDir folder;
  std::string file = folder.path() + "/file", pipe = folder.path() + "/pipe", err = folder.path() + "/err";
  std::ofstream(file) << "\n";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (std::string option : {"--config", "--token-file"})
    for (const std::string& path : {std::string("-"), std::string("/dev/stdin"), pipe}) {
      std::string command = fmt::format("timeout 10 '{}' runner --url http://127.0.0.1:1 --state-dir {}/r",
                                        WEIR_BINARY, folder.path());
      int status = std::system(fmt::format("{} {} {} <{} 2>{}", command, option, path, file, err).c_str());
      EXPECT_EQ(WEXITSTATUS(status), 2) << option << " " << path;
      EXPECT_EQ(text_in_file(err),
                fmt::format("weir: {} {} is read again while the runner runs: give a file\n", option, path));
    }
}

}  // namespace
}  // namespace weir::test
