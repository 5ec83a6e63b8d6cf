// The lease of a detector cluster, and the cameras that the cluster processes: who is heard, over every store.
#include "lease_store.hpp"

namespace weir::test {

namespace {
const ClusterId kCluster = ClusterId::trusted("default"), kOther = ClusterId::trusted("second");
}  // namespace

class ClusterLeaseContract : public LeaseStoreContract {
 protected:
  lease::Answer ask(Operation operation, const lease::Owner& who, lease::Ask what, TenantId home = {},
                    TenantId tenant = {}, Duration ttl = 10s) {
    auto answers = stores.run(stores.leases->apply(
        {operation, who, ttl, {std::move(what)}, tenant, lease::Kind::cluster, {std::move(home), {}}}));
    EXPECT_TRUE(answers);
    return answers ? answers->at(0) : lease::Answer{};
  }
  // The master's version of the cluster's lease.
  Version take(const lease::Owner& who, const ClusterId& cluster = kCluster, TenantId home = {}) {
    lease::Answer got = ask(Operation::acquire, who, {cluster, {}, false, "k"}, std::move(home));
    EXPECT_EQ(got.outcome, Outcome::granted);
    return got.version;
  }
  Version rotate_cluster(const lease::Owner& who, Version version, const ClusterId& cluster = kCluster) {
    std::string key = fmt::format("r{}", version.n);
    lease::Answer got = ask(Operation::renew, who, {cluster, version, true, key});
    EXPECT_EQ(got.outcome, Outcome::rotated);
    return got.version;
  }
  void configure(int camera, const std::function<void(camera::Config&)>& change) {
    auto edited = stores.run(
        stores.catalog->edit_camera(cam(camera), {}, [&](const CameraRecord& present) -> Result<camera::Config> {
          camera::Config next = present.config;
          change(next);
          return next;
        }));
    ASSERT_TRUE(edited) << edited.error().message;
  }
  void give_to_cluster(int camera, const ClusterId& cluster = kCluster) {
    configure(camera, [&](camera::Config& config) {
      config.processing = camera::Processing::cluster;
      config.cluster = cluster;
    });
  }
  void give_to_runners(int camera) {
    configure(camera, [](camera::Config& config) { config.processing = camera::Processing::lease; });
  }
  Confirmation say(const lease::Owner& who, int camera, Version version, TenantId tenant = {}) {
    std::string id = fmt::format("e{}", ++said_);
    event::Event event{"detections.topic", "detections.t1.s1." + cam(camera).str(), id,
                       fmt::format(R"({{"event_id":"{}"}})", id)};
    event.stamp = event::Stamp{cam(camera), version};
    auto answers = stores.run(stores.events->append({event}, {who.runner, who.boot, std::move(tenant)}));
    EXPECT_TRUE(answers) << (answers ? "" : answers.error().message);
    return answers ? answers->at(0) : Confirmation::stale;
  }
  using enum Confirmation;
  int said_ = 0;
};

TEST_P(ClusterLeaseContract, ACluster_IsMadeByItsFirstAcquire_AndServesEveryTenantUnlessItNamesOne) {
  EXPECT_FALSE(stores.run(stores.leases->show(kCluster, {})));
  Version version = take(a);
  auto shown = stores.run(stores.leases->show(kCluster, {}));
  ASSERT_TRUE(shown);
  EXPECT_EQ(shown->row.kind, lease::Kind::cluster);
  EXPECT_EQ(shown->row.owner, a);
  EXPECT_TRUE(shown->row.tenant.empty());
  EXPECT_EQ(ask(Operation::acquire, b, {kCluster, {}, false, "k"}).outcome, Outcome::held);
  EXPECT_EQ(ask(Operation::renew, a, {kCluster, version}).outcome, Outcome::renewed);
  const TenantId tenant = TenantId::trusted("t1");
  lease::Answer bound = ask(Operation::acquire, b, {kCluster, {}, false, "k"}, tenant, tenant);
  EXPECT_EQ(bound.why, Refusal::taken) << "a tenant's token does not take what serves all";
  EXPECT_EQ(ask(Operation::acquire, a, {cam(1), {}, false, "k"}).why, Refusal::taken);
  EXPECT_EQ(ask(Operation::release, a, {kCluster, version}).outcome, Outcome::released);
  EXPECT_GT(take(b), version);
  LeaseFilter filter;
  filter.kind = lease::Kind::cluster;
  EXPECT_EQ(stores.run(stores.leases->list(filter))->size(), 1u);
}

TEST_P(ClusterLeaseContract, AClusterThatFallsSilent_IsTakenByAnotherProcess) {
  ask(Operation::acquire, a, {kCluster, {}, false, "k"}, {}, {}, 1ms);
  lease::Answer taken;
  ASSERT_TRUE(eventually_ticking([&] {
    taken = ask(Operation::acquire, b, {kCluster, {}, false, "k"});
    return taken.outcome == Outcome::granted;
  }));
  EXPECT_TRUE(taken.stolen);
}

TEST_P(ClusterLeaseContract, ACamerasEvents_AreAccepted_UnderTheVersionOfItsClustersLease) {
  Version old = take(a);
  give_to_cluster(1);
  EXPECT_EQ(say(a, 1, old), accepted) << "the camera never had a version";
  EXPECT_EQ(say(a, 2, old), stale) << "a camera that runners take";
  EXPECT_EQ(say(b, 1, old), stale) << "not the master";
  EXPECT_EQ(say({a.runner, {}}, 1, old), accepted) << "a token without a boot";
  EXPECT_EQ(say(a, 1, old, TenantId::trusted("t1")), accepted);
  EXPECT_EQ(say(a, 1, old, TenantId::trusted("t2")), stale);
  EXPECT_EQ(say(a, 1, {old.n + 1}), stale);
  EXPECT_EQ(acquire(a, 1).why, Refusal::disabled);

  Version rotated = rotate_cluster(a, old);
  EXPECT_EQ(say(a, 1, old), stale);
  EXPECT_EQ(say(a, 1, rotated), accepted);
  ask(Operation::release, a, {kCluster, rotated});
  EXPECT_EQ(say(a, 1, rotated), stale);
  Version next = take(b);
  EXPECT_EQ(say(a, 1, rotated), stale) << "a master that was replaced";
  EXPECT_EQ(say(b, 1, next), accepted);

  std::vector<StoredEvent> kept = stores.run(stores.events->read(0, 100))->events;
  ASSERT_FALSE(kept.empty());
  EXPECT_EQ(kept.back().tenant.str(), "t1") << "the camera's tenant, not the cluster's";
}

TEST_P(ClusterLeaseContract, ACameraOfACluster_IsSpokenForByThatClusterAlone) {
  Version first = take(a), second = take(b, kOther);
  give_to_cluster(1);
  give_to_cluster(2, kOther);
  give_to_cluster(3, ClusterId::trusted("nobody"));
  EXPECT_EQ(say(a, 1, first), accepted);
  EXPECT_EQ(say(b, 1, second), stale);
  EXPECT_EQ(say(b, 2, second), accepted);
  EXPECT_EQ(say(a, 3, first), stale);
  give_to_cluster(3, cam(2));
  EXPECT_EQ(say(b, 3, second), stale) << "a camera is no cluster";
}

TEST_P(ClusterLeaseContract, AnotherTenantsCluster_IsNotHeard) {
  Version foreign = take(a, kCluster, TenantId::trusted("t2")), own = take(b, kOther, TenantId::trusted("t1"));
  give_to_cluster(1);
  give_to_cluster(2, kOther);
  EXPECT_EQ(say(a, 1, foreign), stale);
  EXPECT_EQ(say(b, 2, own), accepted);
}

TEST_P(ClusterLeaseContract, ACameraThatRunnersLose_IsTheClusters_OnceItsVersionIsAboveTheCameras) {
  Version cluster = take(a);
  Version held = acquire(b, 1).version;
  EXPECT_EQ(say(b, 1, held), accepted);
  EXPECT_EQ(say(a, 1, cluster), stale) << "runners take it";
  give_to_cluster(1);
  EXPECT_GT(show(1).row.version, held);
  EXPECT_TRUE(show(1).row.revoked);
  EXPECT_EQ(show(1).row.cluster, kCluster);
  EXPECT_EQ(say(b, 1, held), stale);
  EXPECT_EQ(say(b, 1, show(1).row.version), stale);
  EXPECT_EQ(say(a, 1, cluster), stale) << "it would fall below the runner's";
  Version rotated = rotate_cluster(a, cluster);
  EXPECT_GT(rotated, show(1).row.version);
  EXPECT_EQ(say(a, 1, rotated), accepted);
}

TEST_P(ClusterLeaseContract, ACameraThatComesBackToRunners_GetsAGrantAboveAllThatTheClusterUsed) {
  acquire(b, 1);
  give_to_cluster(1);
  Version cluster = take(a);
  EXPECT_EQ(say(a, 1, cluster), accepted);
  give_to_runners(1);
  EXPECT_EQ(say(a, 1, cluster), stale);
  Version left = show(1).row.version;
  EXPECT_GT(left, cluster);
  lease::Answer granted = acquire(b, 1);
  EXPECT_EQ(granted.outcome, Outcome::granted);
  EXPECT_GT(granted.version, left);
  EXPECT_FALSE(granted.previous) << "no tenure from before the cluster's time is continued";
  EXPECT_EQ(say(b, 1, granted.version), accepted);
  EXPECT_EQ(say(a, 1, cluster), stale);
}

TEST_P(ClusterLeaseContract, VersionsNeverFall_WhenACameraChangesItsCluster_OrIsSwitchedOff) {
  Version second = take(b, kOther), first = take(a);
  ASSERT_GT(first, second);
  give_to_cluster(1);
  EXPECT_EQ(say(a, 1, first), accepted);
  give_to_cluster(1, kOther);
  EXPECT_EQ(say(a, 1, first), stale);
  EXPECT_EQ(say(b, 1, second), stale) << "the first cluster used a later version";
  EXPECT_EQ(say(b, 1, second = rotate_cluster(b, second, kOther)), accepted);

  configure(1, [](camera::Config& config) { config.enabled = false; });
  EXPECT_EQ(say(b, 1, second), stale);
  EXPECT_TRUE(show(1).row.cluster.empty());
  configure(1, [](camera::Config& config) { config.cluster = kCluster; });
  configure(1, [](camera::Config& config) { config.enabled = true; });
  EXPECT_EQ(say(a, 1, first), stale);
  EXPECT_EQ(say(a, 1, rotate_cluster(a, first)), accepted);
}

TEST_P(ClusterLeaseContract, ARemovedCamera_IsSpokenForByNobody_AlsoWhenItIsAddedAgain) {
  give_to_cluster(1);
  Version cluster = take(a);
  EXPECT_EQ(say(a, 1, cluster), accepted);
  ASSERT_TRUE(stores.run(stores.catalog->remove_camera(cam(1), {})));
  EXPECT_EQ(say(a, 1, cluster), stale);
  camera::Config again = camera_config(cam(1));
  again.processing = camera::Processing::cluster;
  ASSERT_TRUE(stores.run(stores.catalog->add_camera(again)));
  EXPECT_EQ(say(a, 1, cluster), stale);
  EXPECT_EQ(say(a, 1, rotate_cluster(a, cluster)), accepted);
}

TEST_P(ClusterLeaseContract, TheStatusAfterALoss_IsLeftOut_WhereTheClusterMayHaveSpoken) {
  acquire(b, 1);
  acquire(b, 2);
  give_to_cluster(1);
  give_to_cluster(2);
  auto announce = [&](const std::string& id, int camera) {
    event::Event told{"status.topic", "stream.status.t1.s1.c", id, fmt::format(R"({{"event_id":"{}"}})", id)};
    told.stamp = event::Stamp{cam(camera), show(camera).row.version};
    ASSERT_TRUE(stores.run(stores.events->announce({told})));
  };
  announce("first", 1);
  take(a);
  announce("second", 2);
  auto kept = stores.run(stores.events->read(0, 100))->events;
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_NE(kept[0].payload.find("first"), std::string::npos);
}

TEST_P(ClusterLeaseContract, AnIdThatIsAClusters_IsNoCamerasAndNoStreams) {
  take(a);
  auto camera = stores.run(stores.catalog->add_camera(camera_config(kCluster)));
  ASSERT_FALSE(camera);
  EXPECT_EQ(camera.error().code, Errc::conflict);
  auto stream = stores.run(stores.catalog->put_stream({.id = kCluster, .tenant = TenantId::trusted("t1")}));
  ASSERT_FALSE(stream);
  EXPECT_EQ(stream.error().code, Errc::conflict);
}

INSTANTIATE_TEST_SUITE_P(Fake, ClusterLeaseContract, testing::Values(Kind::fake));
INSTANTIATE_TEST_SUITE_P(Sqlite, ClusterLeaseContract, testing::Values(Kind::sqlite));
INSTANTIATE_TEST_SUITE_P(Postgres, ClusterLeaseContract, testing::Values(Kind::postgres));

}  // namespace weir::test
