// Sixteen cameras on one worker, five of them broken in five ways: the other eleven do not notice.
#include "shard.hpp"
#include "stall.hpp"

#include "weir/base/clock.hpp"
#include "weir/base/json.hpp"

#include <gtest/gtest.h>

namespace weir::test {
namespace {

TEST(WorkerLoad, FiveBrokenCamerasOfSixteen_LeaveTheElevenOthersAtFullRate) {
  if (part("footage/vtest.avi").empty() || part("lib/libtensorflowlite_c.so").empty())
    GTEST_SKIP() << "footage or model could not be fetched";
  TempDir folder;
  Camsim camsim(folder, std::vector<std::string>(16, "fps=10,keyframe_s=1"));
  WeirProcess plane(folder.path(), "sqlite:" + folder.path() + "/weir.db");
  plane.furnish(16);
  Manager manager(plane, "runner-1");
  boost::json::array sources;
  std::vector<std::string> names;
  for (int n = 1; n <= 16; ++n) {
    names.push_back(fmt::format("cam-{}", n));
    ASSERT_TRUE(manager.acquire(names.back()));
    boost::json::object more;
    if (n > 4) more["model"] = boost::json::object{{"detector", "none"}};
    sources.push_back(manager.source(names.back(), camsim.url(names.back()), std::move(more)));
  }
  WorkerProcess worker(folder, "worker", manager.config(std::move(sources)));
  ASSERT_TRUE(eventually(20s, [&] { return worker.state().at("delivering").as_int64() == 16; })) << worker.child().log();

  const std::vector<boost::json::object> faults = {{{"kind", "stall"}},
                                                   {{"kind", "unauthorized"}},
                                                   {{"kind", "garbage"}},
                                                   {{"kind", "drop"}, {"hold", true}},
                                                   {{"kind", "black_hole"}}};
  for (size_t i = 0; i < faults.size(); ++i) camsim.fault(names[11 + i], faults[i]);
  std::map<std::string, double> received;
  Instant began = boot_now();
  for (int n = 0; n < 11; ++n) received[names[static_cast<size_t>(n)]] = worker.number(names[static_cast<size_t>(n)], "received");

  Duration length = long_run() ? Duration(600s) : Duration(60s);
  Instant renew_at{};
  double oldest = 0;
  eventually(length + 30s, [&] {
    if (boot_now() > renew_at) {
      renew_at = boot_now() + 15s;
      boost::json::array leases;
      for (const std::string& name : names)
        if (manager.renew(name)) leases.push_back(manager.lease(name));
      EXPECT_EQ(worker.post("/leases", {{"items", leases}}).status, 200);
    }
    boost::json::object state = worker.state();
    for (const auto& camera : state.at("cameras").as_array())
      if (received.contains(std::string(camera.at("camera_uuid").as_string())))
        oldest = std::max(oldest, camera.at("last_frame_age_s").to_number<double>());
    return boot_now() - began > length;
  });
  for (const auto& [name, before] : received) {
    double rate = (worker.number(name, "received") - before) / seconds(boot_now() - began);
    EXPECT_NEAR(rate, 10.0, 0.3) << name;
    EXPECT_EQ(worker.number(name, "dials"), 1) << name;
    EXPECT_EQ(worker.number(name, "errors"), 0) << name;
  }
  EXPECT_LT(oldest, 3.0) << "seconds without a picture";
  for (size_t i = 0; i < faults.size(); ++i) EXPECT_GT(worker.number(names[11 + i], "errors"), 0) << names[11 + i];
  EXPECT_GT(worker.number("cam-1", "inferred"), 10);
}

}  // namespace
}  // namespace weir::test
