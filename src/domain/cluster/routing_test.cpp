#include "weir/cluster/routing.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace weir::cluster {
namespace {

std::set<std::string> some(const std::string& name, int count) {
  std::set<std::string> out;
  for (int n = 0; n < count; ++n) out.insert(name + std::to_string(n));
  return out;
}
std::map<std::string, int> loads(const Routes& routes) {
  std::map<std::string, int> out;
  for (const auto& [worker, slave] : routes) ++out[slave];
  return out;
}
int moved(const Routes& before, const Routes& after) {
  return static_cast<int>(std::ranges::count_if(after, [&](const auto& each) {
    auto had = before.find(each.first);
    return had != before.end() && had->second != each.second;
  }));
}

TEST(Routing, EverySlaveGetsAsManyWorkersAsEveryOther_OrOneMore) {
  for (int workers = 0; workers <= 12; ++workers)
    for (int slaves = 1; slaves <= 5; ++slaves) {
      Routes routes = route(some("w", workers), some("s", slaves), {});
      EXPECT_EQ(routes.size(), static_cast<size_t>(workers));
      for (const auto& [slave, load] : loads(routes)) {
        EXPECT_GE(load, workers / slaves);
        EXPECT_LE(load, (workers + slaves - 1) / slaves) << workers << " workers on " << slaves;
      }
    }
  EXPECT_TRUE(route(some("w", 3), {}, {}).empty());
}

TEST(Routing, NothingMoves_WhereNothingChanged) {
  Routes routes = route(some("w", 7), some("s", 3), {});
  EXPECT_EQ(route(some("w", 7), some("s", 3), routes), routes);
}

TEST(Routing, OnlyWhatHasTo_Moves) {
  Routes routes = route(some("w", 8), some("s", 2), {});
  Routes joined = route(some("w", 8), some("s", 3), routes);
  EXPECT_EQ(moved(routes, joined), 2) << "the third slave gets two of the eight";
  std::set<std::string> left = some("s", 3);
  left.erase("s0");
  Routes after = route(some("w", 8), left, joined);
  EXPECT_EQ(moved(joined, after), loads(joined)["s0"]) << "only those of the slave that is gone";
  Routes grown = route(some("w", 9), left, after);
  EXPECT_EQ(moved(after, grown), 0);
}

TEST(Routing, WorkersThatAreGone_AndSlavesThatNobodyKnows_AreForgotten) {
  Routes routes = route({"w1"}, {"s1"}, {{"w1", "nobody"}, {"w0", "s1"}});
  EXPECT_EQ(routes, (Routes{{"w1", "s1"}}));
}

}  // namespace
}  // namespace weir::cluster
