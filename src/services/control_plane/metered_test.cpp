#include "metered.hpp"
#include "scripted_store.hpp"

#include <boost/asio/co_spawn.hpp>

#include <gtest/gtest.h>

#include <map>
#include <regex>

namespace weir::control_plane {
namespace {

class MeteredStore : public testing::Test {
 protected:
  template <class T>
  void run(Async<T> call) {
    bool ended = false;
    auto wait = [&]() -> boost::asio::awaitable<void> {
      (void)co_await std::move(call);
      ended = true;
    };
    boost::asio::co_spawn(io_, wait(), [](std::exception_ptr failure) { EXPECT_FALSE(failure); });
    clock_.run(clock_.now() + 1min);
    EXPECT_TRUE(ended);
  }
  // How often each operation was counted.
  std::map<std::string, int> counted() const {
    std::string text = metrics_.text();
    std::regex line("weir_store_seconds_count\\{operation=\"(\\w+)\"\\} (\\d+)");
    std::map<std::string, int> out;
    for (std::sregex_iterator at(text.begin(), text.end(), line), end; at != end; ++at)
      out[(*at)[1]] = std::stoi((*at)[2]);
    return out;
  }

  boost::asio::io_context io_;
  VirtualClock clock_{io_};
  net::Metrics metrics_;
  ScriptedStore store_;
};

TEST_F(MeteredStore, ACall_IsTimedUnderItsName_AlsoOneThatFails) {
  MeteredEventLog events(store_, metrics_, clock_);
  EXPECT_TRUE(counted().empty()) << "what nobody asked for is not shown";
  store_.read_takes = [&] { return clock_.wait(2s); };
  run(events.read(0, 1));
  run(events.read(0, 1));
  EXPECT_EQ(counted(), (std::map<std::string, int>{{"read_events", 2}}));
  EXPECT_NE(metrics_.text().find("weir_store_seconds_sum{operation=\"read_events\"} 4\n"), std::string::npos)
      << metrics_.text();
}

TEST_F(MeteredStore, EveryOperation_HasTheNameThatDashboardsKnow) {
  MeteredLeaseStore leases(store_, metrics_, clock_);
  for (auto each : {lease::Operation::acquire, lease::Operation::renew, lease::Operation::release}) {
    lease::Batch batch;
    batch.operation = each;
    run(leases.apply(batch));
  }
  run(leases.tick());
  run(leases.revoke({}, {}));
  run(leases.release_all({}, ""));
  run(leases.take_expired(1));
  run(leases.list({}));
  run(leases.show({}, {}));
  run(leases.note({}, {}));
  run(leases.consume({}, {}, {}));
  MeteredEventLog events(store_, metrics_, clock_);
  run(events.append({}, {}));
  run(events.announce({}));
  run(events.read(0, 1));
  run(events.newest());
  run(events.trim({}, 1));
  MeteredKeys keys(store_, metrics_, clock_);
  run(keys.add_key({}, ""));
  run(keys.list_keys({}, {}, 1));
  run(keys.revoke_key({}, {}));
  run(keys.find_key(""));
  MeteredHealth health(store_, metrics_, clock_);
  run(health.ping());
  MeteredSites sites(store_, metrics_, clock_);
  run(sites.add_tenant({}));
  run(sites.list_tenants({}, {}, 1));
  run(sites.remove_tenant({}));
  run(sites.add_site({}));
  run(sites.list_sites({}, {}, 1));
  run(sites.show_site({}, {}));
  run(sites.count_cameras({}, {}));
  run(sites.remove_site({}, {}));
  run(sites.set_budget({}, {}, 1, 1, {}));
  MeteredCameras cameras(store_, metrics_, clock_);
  run(cameras.add_camera({}));
  run(cameras.list_cameras({}));
  run(cameras.show_camera({}, {}));
  run(cameras.edit_camera({}, {}, {}));
  run(cameras.remove_camera({}, {}));
  run(cameras.count_crash({}, {}));
  MeteredRunners runners(store_, metrics_, clock_);
  run(runners.register_runner({}, "", {}));
  run(runners.heartbeat({}, {}, {}, 0));
  run(runners.list_runners({}, {}, 1));
  run(runners.show_runner({}, {}));
  run(runners.change_runner({}, {}, {}));
  run(runners.remove_runner({}, {}));

  std::map<std::string, int> known;
  for (const char* name :
       {"acquire", "renew", "release", "tick", "revoke", "release_all", "take_expired", "list_leases", "show_lease",
        "note_lease",
        "consume", "append_events", "announce_events", "read_events", "newest_event", "trim_events", "add_key",
        "list_keys", "revoke_key", "find_key", "ping", "add_tenant", "list_tenants", "remove_tenant", "add_site",
        "list_sites", "show_site", "count_cameras", "remove_site", "set_budget", "add_camera", "list_cameras",
        "show_camera", "edit_camera", "remove_camera", "count_crash", "register_runner", "heartbeat", "list_runners",
        "show_runner", "change_runner", "remove_runner"})
    known[name] = 1;
  EXPECT_EQ(counted(), known);
}

}  // namespace
}  // namespace weir::control_plane
