// LeaseStoreContract: the fixture for the tests of what every lease store promises: a store with three cameras, and
// short calls for its questions. One thread.
#pragma once

#include "stall.hpp"
#include "stores.hpp"

namespace weir::test {

using lease::Operation;
using lease::Outcome;
using lease::Refusal;
using lease::Version;

class LeaseStoreContract : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    if (!stores.unavailable.empty()) GTEST_SKIP() << stores.unavailable;
    stores.furnish(3);
  }
  lease::Answer acquire(const lease::Owner& who, int camera, std::string key = "k", Duration ttl = 10s) {
    return stores.ask(Operation::acquire, who, {cam(camera), {}, false, std::move(key)}, ttl);
  }
  lease::Answer renew(const lease::Owner& who, int camera, Version version, Duration ttl = 10s) {
    return stores.ask(Operation::renew, who, {cam(camera), version}, ttl);
  }
  lease::Answer rotate(const lease::Owner& who, int camera, Version version, std::string key) {
    return stores.ask(Operation::renew, who, {cam(camera), version, true, std::move(key)});
  }
  lease::Answer release(const lease::Owner& who, int camera, Version version, bool avoid = false) {
    return stores.ask(Operation::release, who, {cam(camera), version, false, {}, avoid});
  }
  LeaseView show(int camera) { return *stores.run(stores.leases->show(cam(camera), {})); }
  void live_runner(const std::string& id, const std::string& boot = "", const std::string& will = "", int capacity = 40) {
    Runner runner;
    runner.id = RunnerId::trusted(id);
    runner.boot = BootId::trusted(boot);
    runner.capacity = capacity;
    ASSERT_TRUE(stores.run(stores.catalog->register_runner(runner, will)));
  }
  // Waits for the condition and ticks meanwhile: lease time moves only when the store is asked to tick, as a control
  // plane does.
  bool eventually_ticking(const std::function<bool()>& condition) {
    return eventually(10s, [&] {
      EXPECT_TRUE(stores.run(stores.leases->tick()));
      return condition();
    });
  }

  Stores stores{GetParam()};
  const lease::Owner a = owner("runner-a"), b = owner("runner-b");
};

}  // namespace weir::test
