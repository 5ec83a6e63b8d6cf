#include "runner_manager.hpp"

#include "common/api.hpp"
#include "runner_parent.hpp"
#include "temp_files.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

namespace weir::apps {
namespace {

TEST(RunnerPolicy, IsWhatTheSettingsSay) {
  Arguments arguments({}, {{"readiness_quorum_pct", "50"}, {"lease_ttl_s", "7"}, {"lease_renew_interval_s", "1.5"},
                           {"lease_retry_interval_s", "3"}, {"rollout", "bluegreen"}, {"grace_timeout_s", "9"},
                           {"capacity_streams", "21"}, {"target_streams_per_shard", "5"}, {"max_workers", "6"},
                           {"drain_batch", "2"}, {"drain_interval_s", "0.5"}}, {});
  auto settings = arguments.settings();
  ASSERT_TRUE(settings) << settings.error().message;
  runner::Policy policy = policy_of(*settings);
  EXPECT_EQ(policy.quorum_pct, 50);
  EXPECT_EQ(policy.lease.ttl, 7s);
  EXPECT_EQ(policy.lease.renew_every, 1500ms);
  EXPECT_EQ(policy.poll, 3s);
  EXPECT_EQ(policy.rollout, rollout::Mode::bluegreen);
  EXPECT_EQ(policy.rollout_times.drain_within, 9s);
  EXPECT_EQ(policy.capacity, 21);
  EXPECT_EQ(policy.shard_size, 5);
  EXPECT_EQ(policy.workers_max, 6);
  EXPECT_EQ(policy.drain_batch, 2);
  EXPECT_EQ(policy.drain_interval, 500ms);
}

TEST(RunnerOptions, WithoutASetting_WeirUrlNamesTheControlPlane) {
  test::TempDir folder;
  auto options = [&](std::map<std::string, std::string> flags) {
    flags.emplace("state_dir", folder.path());
    auto settings = Arguments({}, std::move(flags), {}).settings();
    EXPECT_TRUE(settings);
    return runner_options(*settings, "");
  };
  ::unsetenv("WEIR_URL");
  ASSERT_FALSE(options({}));
  EXPECT_NE(options({}).error().message.find("--control-plane-url or WEIR_URL is needed"), std::string::npos);
  ::setenv("WEIR_URL", "http://plane.example:8080", 1);
  EXPECT_EQ(options({})->control_plane, "http://plane.example:8080");
  EXPECT_EQ(options({{"control_plane_url", "http://other.example"}})->control_plane, "http://other.example");
  std::ofstream(endpoint_file(folder.path())) << "http://127.0.0.1:1\n";
  EXPECT_EQ(options({})->control_plane, "http://127.0.0.1:1") << "the `weir up` of the folder that was named";
  ::unsetenv("WEIR_URL");
}

}  // namespace
}  // namespace weir::apps
