// Three processes `weir cluster` that share a real Redis: what a crash of the master, an emptied Redis and a master that
// was frozen leave of it.
#include "cluster_house.hpp"

#include "weir/base/clock.hpp"

#include <cstdio>

namespace weir::test {
namespace {

class ClusterRedis : public ClusterHouse {
 protected:
  void SetUp() override {
    if (std::string why = start_redis(); !why.empty()) GTEST_SKIP() << why;
    ClusterHouse::SetUp();
  }
  void start_three() {
    for (const char* id : {"one", "two", "three"}) start(id);
  }
};

TEST_F(ClusterRedis, EveryProcessShowsTheCluster_AndOutlivesItsMaster_AndItsRedis) {
  const std::vector<std::string> both{"d1;cam-a", "d2;cam-b"};
  display("d1", "cam-a");
  display("d2", "cam-b");
  start_three();
  ASSERT_TRUE(eventually(25s, [&] { return !master().empty() && all_active(master(), both); })) << report();
  std::string first = master();
  for (const auto& [id, process] : processes_)
    EXPECT_TRUE(eventually(10s, [&] {
      json::object said = state(id);
      return !said.empty() && said.at("totalSlaves").to_number<int>() == 3 && said.at("assignments").as_object().size() == 2 &&
             all_active(id, both);
    })) << id << report();

  // Redis is restarted and has forgotten everything: the tables are made anew, under the same epoch.
  std::string epoch = ask_redis("get master-election:epoch");
  ASSERT_FALSE(epoch.empty());
  ASSERT_TRUE(redis_->restart_empty());
  EXPECT_TRUE(eventually(15s, [&] {
    return ask_redis("hlen worker:connections") == "2" && ask_redis("hlen worker:desired_subscriptions") == "2" &&
           ask_redis("hlen worker:actual_subscriptions") == "2" && ask_redis("hlen master-election:slaves") == "3" &&
           ask_redis("hlen worker:assignments") == "2";
  })) << report();
  EXPECT_EQ(ask_redis("get master-election:epoch"), epoch);
  EXPECT_TRUE(eventually(10s, [&] { return ask_redis("xlen worker:detections") > std::string("0"); })) << report();

  // The master is killed: another one has everything running again.
  Instant killed = boot_now();
  processes_[first]->signal(SIGKILL);
  processes_[first]->wait();
  processes_.erase(first);
  EXPECT_TRUE(eventually(15s, [&] {
    std::string next = master();
    return !next.empty() && all_active(next, both);
  })) << report();
  std::printf("NOTE: a detector cluster was without a master that knew its workers for %.1f s\n",
              seconds(boot_now() - killed));
  EXPECT_TRUE(eventually(5s, [&] { return std::stoll(ask_redis("get master-election:epoch")) > std::stoll(epoch); }));

  for (const char* key : {"worker:connections", "worker:desired_subscriptions", "worker:actual_subscriptions"})
    EXPECT_EQ(ask_redis(fmt::format("hgetall {}", key)).find("canary"), std::string::npos);
}

TEST_F(ClusterRedis, AMasterThatWasFrozen_WritesNothingWhenItGoesOn) {
  display("d1", "cam-a");
  start_three();
  ASSERT_TRUE(eventually(25s, [&] { return !master().empty() && all_active(master(), {"d1;cam-a"}); })) << report();
  std::string first = master();
  std::unique_ptr<Program> frozen = std::move(processes_[first]);
  processes_.erase(first);
  std::string epoch = ask_redis("get master-election:epoch");
  frozen->signal(SIGSTOP);
  ASSERT_TRUE(eventually(20s, [&] { return !master().empty() && all_active(master(), {"d1;cam-a"}); })) << report();
  ASSERT_TRUE(eventually(5s, [&] { return ask_redis("get master-election:epoch") > epoch; }));
  // An emptied Redis compares nothing, so nothing but the frozen process itself keeps it from writing then.
  ASSERT_TRUE(redis_->restart_empty());
  frozen->signal(SIGCONT);
  EXPECT_TRUE(eventually(10s, [&] { return frozen->log().find("master-lost") != std::string::npos; })) << frozen->log();
  EXPECT_TRUE(eventually(10s, [&] { return ask_redis("get master-election:epoch") > epoch; })) << report();
  EXPECT_TRUE(eventually(10s, [&] { return ask_redis("hlen worker:connections") == "2"; })) << report();
  EXPECT_EQ(ask_redis("hvals worker:connections").find("\"processId\":\"" + first + "\""), std::string::npos);
  EXPECT_TRUE(eventually(10s, [&] {
    processes_.try_emplace(first, nullptr);
    json::object said = state(first);
    return !said.empty() && !said.at("isMaster").as_bool() && said.at("totalWorkers").to_number<int>() == 2;
  })) << frozen->log();
  processes_.erase(first);
}

}  // namespace
}  // namespace weir::test
