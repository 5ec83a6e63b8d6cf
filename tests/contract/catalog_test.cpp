// What every catalog promises, over the fake, SQLite and a real PostgreSQL.
#include "stores.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

namespace weir::test {

class CatalogContract : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    if (!stores.unavailable.empty()) GTEST_SKIP() << stores.unavailable;
    stores.furnish(3);
    ASSERT_TRUE(run(c().add_tenant({t2, "Two"})));
    ASSERT_TRUE(run(c().add_site({s2, t2, "Other", {5, 5, 30}})));
  }
  template <class T>
  T run(boost::asio::awaitable<T> what) {
    return stores.run(std::move(what));
  }
  Catalog& c() { return *stores.catalog; }
  Stores stores{GetParam()};
  const TenantId t1 = TenantId::trusted("t1"), t2 = TenantId::trusted("t2");
  const SiteId s1 = SiteId::trusted("s1"), s2 = SiteId::trusted("s2");
};

TEST_P(CatalogContract, Tenants_AreUnique_Listed_AndRemovedOnlyWhenEmpty) {
  EXPECT_EQ(run(c().add_tenant({t1, "again"})).error().code, Errc::conflict);
  EXPECT_EQ(run(c().list_tenants({}, {}, 10))->size(), 2u);
  EXPECT_EQ(run(c().list_tenants(t2, {}, 10))->size(), 1u);
  EXPECT_EQ((*run(c().list_tenants({}, t1, 10)))[0].name, "Two");
  EXPECT_EQ(run(c().remove_tenant(t1)).error().code, Errc::unprocessable);
  ASSERT_TRUE(run(c().remove_site(s2, {})));
  EXPECT_TRUE(run(c().remove_tenant(t2)));
  EXPECT_EQ(run(c().remove_tenant(t2)).error().code, Errc::not_found);
}

TEST_P(CatalogContract, Sites_BelongToATenant) {
  EXPECT_EQ(run(c().add_site({SiteId::trusted("x"), TenantId::trusted("none"), ""})).error().code, Errc::not_found);
  EXPECT_EQ(run(c().add_site({s1, t2, ""})).error().code, Errc::conflict);
  EXPECT_EQ(run(c().show_site(s1, t2)).error().code, Errc::not_found);
  EXPECT_EQ(run(c().show_site(s1, t1))->name, "Site");
  EXPECT_EQ(run(c().list_sites(t2, {}, 10))->size(), 1u);
  EXPECT_EQ(run(c().remove_site(s1, {})).error().code, Errc::unprocessable);
  EXPECT_EQ(run(c().remove_site(s2, t1)).error().code, Errc::not_found);
}

TEST_P(CatalogContract, ASitesEnabledCameras_AreCounted) {
  EXPECT_EQ(*run(c().count_cameras(s2, {})), 0);
  for (const char* id : {"count-1", "count-2"}) ASSERT_TRUE(run(c().add_camera(camera_config(CameraId::trusted(id), "t2", "s2"))));
  auto off = camera_config(CameraId::trusted("count-3"), "t2", "s2");
  off.enabled = false;
  ASSERT_TRUE(run(c().add_camera(off)));
  EXPECT_EQ(*run(c().count_cameras(s2, {})), 2);
  EXPECT_EQ(*run(c().count_cameras(s2, t2)), 2);
  EXPECT_EQ(*run(c().count_cameras(s2, t1)), 0);
}

TEST_P(CatalogContract, Budget_IsSet_AndCutToItsCapacity) {
  auto site = run(c().set_budget(s2, t2, 3, 120, {}));
  ASSERT_TRUE(site);
  EXPECT_DOUBLE_EQ(site->budget.capacity, 3);
  EXPECT_LE(site->budget.tokens, 3);
  EXPECT_DOUBLE_EQ(run(c().set_budget(s2, {}, 3, 0, 1))->budget.tokens, 1);
  EXPECT_DOUBLE_EQ(run(c().show_site(s2, {}))->budget.tokens, 1);
  EXPECT_EQ(run(c().set_budget(s2, t1, 3, 1, {})).error().code, Errc::not_found);
}

TEST_P(CatalogContract, Cameras_AreStoredWhole_AndForeignIdsConflictWithoutDetail) {
  auto config = camera_config(CameraId::trusted("ü-1"), "t2", "s2");
  config.max_fps = 12.5;
  config.zones.push_back({7, "door", camera::ZoneKind::exclude, 5, {{0, 0}, {10, 0}, {5, 9}}});
  ASSERT_TRUE(run(c().add_camera(config)));
  auto read = run(c().show_camera(config.camera, t2));
  ASSERT_TRUE(read);
  EXPECT_EQ(json::to_text(camera::write_config(read->config, camera::Credentials::shown)),
            json::to_text(camera::write_config(config, camera::Credentials::shown)));
  EXPECT_GT(read->created_at, WallTime{});
  EXPECT_EQ(run(c().show_camera(config.camera, t1)).error().code, Errc::not_found);
  auto taken = run(c().add_camera(camera_config(config.camera)));
  EXPECT_EQ(taken.error().code, Errc::conflict);
  EXPECT_EQ(run(c().add_camera(camera_config(cam(9), "t1", "s2"))).error().code, Errc::not_found);
}

TEST_P(CatalogContract, CameraList_FiltersAndPages) {
  ASSERT_TRUE(run(c().add_camera(camera_config(CameraId::trusted("d1"), "t2", "s2"))));
  auto off = camera_config(CameraId::trusted("d2"), "t2", "s2");
  off.enabled = false;
  ASSERT_TRUE(run(c().add_camera(off)));
  CameraFilter filter;
  EXPECT_EQ(run(c().list_cameras(filter))->size(), 5u);
  filter.tenant = t2;
  EXPECT_EQ(run(c().list_cameras(filter))->size(), 2u);
  filter.enabled = true;
  EXPECT_EQ((*run(c().list_cameras(filter)))[0].config.camera.str(), "d1");
  filter = {};
  filter.site = s1;
  filter.limit = 2;
  auto page = run(c().list_cameras(filter));
  ASSERT_EQ(page->size(), 2u);
  filter.after = page->back().config.camera;
  EXPECT_EQ(run(c().list_cameras(filter))->size(), 1u);
}

// Written as text and read again, the third point of this triangle lies on the line through the other two.
camera::Config nearly_flat(const CameraId& id) {
  auto config = camera_config(id);
  double x = json::parse_text("9313.8820852148747")->as_double(), y = json::parse_text("9313.8820852148765")->as_double();
  config.zones.push_back({7, "thin", camera::ZoneKind::include, 0, {{0, 0}, {32768, 32768}, {x, y}}});
  return config;
}

TEST_P(CatalogContract, WhatCouldNotBeReadAgain_IsNotStored) {
  auto thin = nearly_flat(cam(9));
  ASSERT_TRUE(camera::read_config(camera::write_config(thin, camera::Credentials::shown))) << "acceptable as it is said";
  auto added = run(c().add_camera(thin));
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().code, Errc::invalid);
  EXPECT_EQ(added.error().details.at("field").as_string(), "zones[0].polygon");
  auto edited = run(c().edit_camera(
      cam(1), {}, [](const CameraRecord& r) -> Result<camera::Config> { return nearly_flat(r.config.camera); }));
  ASSERT_FALSE(edited);
  EXPECT_EQ(edited.error().code, Errc::invalid);
  EXPECT_EQ(run(c().list_cameras({}))->size(), 3u);
  EXPECT_TRUE(run(c().show_camera(cam(1), {}))->config.zones.empty());
}

TEST_P(CatalogContract, ARowThatCannotBeRead_HidesNoOther_SaysWhatIsWrong_AndCanBeRemoved) {
  if (!stores.meddle("UPDATE cameras SET config = '{\"camera_uuid\":\"c2\",\"from_the_future\":1}'"
                     " WHERE camera_uuid = 'c2'"))
    return;  // keeps values, not text
  CameraFilter filter;
  filter.limit = 2;
  auto page = run(c().list_cameras(filter));
  ASSERT_TRUE(page) << page.error().message;
  ASSERT_EQ(page->size(), 2u) << "a short page would mean that there are no more";
  EXPECT_EQ((*page)[0].config.camera, cam(1));
  EXPECT_EQ((*page)[1].config.camera, cam(3));
  auto shown = run(c().show_camera(cam(2), t1));
  ASSERT_FALSE(shown);
  EXPECT_EQ(shown.error().code, Errc::unprocessable);
  EXPECT_EQ(shown.error().reason, "bad_stored_config");
  EXPECT_NE(shown.error().message.find("tenant_id is required"), std::string::npos) << shown.error().message;
  EXPECT_EQ(run(c().remove_camera(cam(2), t2)).error().code, Errc::not_found);
  ASSERT_TRUE(run(c().remove_camera(cam(2), t1)));
  EXPECT_EQ(run(c().show_camera(cam(2), t1)).error().code, Errc::not_found);
  EXPECT_EQ(stores.ask(lease::Operation::acquire, owner("r1"), {cam(2), {}, false, "k"}).outcome,
            lease::Outcome::refused);
  EXPECT_TRUE(run(c().add_camera(camera_config(cam(2)))));
}

TEST_P(CatalogContract, CameraEdit_IsOneStep_AndARefusedOneChangesNothing) {
  auto rename = [](const CameraRecord& r) -> Result<camera::Config> {
    camera::Config next = r.config;
    next.name += "+";
    return next;
  };
  int done = 0;
  auto one = [&]() -> boost::asio::awaitable<void> {
    done += static_cast<bool>(co_await c().edit_camera(cam(1), {}, rename));
  };
  for (int n = 0; n < 20; ++n) boost::asio::co_spawn(stores.io, one(), boost::asio::detached);
  stores.io.restart();
  stores.io.run();
  EXPECT_EQ(done, 20);
  EXPECT_EQ(run(c().show_camera(cam(1), {}))->config.name, std::string(20, '+'));
  auto refuse = [](const CameraRecord&) -> Result<camera::Config> { return Error{Errc::unprocessable, "no", "no"}; };
  EXPECT_EQ(run(c().edit_camera(cam(1), {}, refuse)).error().reason, "no");
  EXPECT_EQ(run(c().edit_camera(cam(1), t2, rename)).error().code, Errc::not_found);
  EXPECT_EQ(run(c().show_camera(cam(1), {}))->config.name, std::string(20, '+'));
}

TEST_P(CatalogContract, Crashes_AreCountedForTheConfiguration_NotForTheSwitch) {
  auto edit = [&](std::function<void(camera::Config&)> change) {
    return *run(c().edit_camera(cam(1), {}, [change](const CameraRecord& r) -> Result<camera::Config> {
      camera::Config next = r.config;
      change(next);
      return next;
    }));
  };
  auto fresh = *run(c().show_camera(cam(1), {}));
  EXPECT_EQ(fresh.crashes, 0);
  EXPECT_EQ(fresh.configured_at, fresh.created_at);
  EXPECT_EQ(*run(c().count_crash(cam(1), {})), 1);
  EXPECT_EQ(*run(c().count_crash(cam(1), t1)), 2);
  EXPECT_EQ(run(c().count_crash(cam(1), t2)).error().code, Errc::not_found);
  EXPECT_EQ(run(c().count_crash(cam(9), {})).error().code, Errc::not_found);

  edit([](camera::Config& next) { next.enabled = false; });
  auto switched = edit([](camera::Config& next) { next.enabled = true; });
  EXPECT_EQ(switched.crashes, 2);
  EXPECT_EQ(switched.configured_at, fresh.configured_at);
  CameraFilter one;
  one.limit = 1;
  EXPECT_EQ((*run(c().list_cameras(one)))[0].crashes, 2);

  auto changed = edit([](camera::Config& next) { next.max_fps = 3; });
  EXPECT_EQ(changed.crashes, 0);
  EXPECT_GT(changed.configured_at, fresh.configured_at);
  auto read = *run(c().show_camera(cam(1), {}));
  EXPECT_EQ(read.crashes, 0);
  EXPECT_EQ(read.configured_at, changed.configured_at);
  EXPECT_EQ(read.updated_at, changed.updated_at);
}

TEST_P(CatalogContract, Runner_ThatTwoTenantsRegisterAtOnce_IsOneTenants) {
  for (int n = 0; n < 40; ++n) {
    RunnerId id = RunnerId::trusted(fmt::format("r{}", n));
    std::vector<TenantId> had;
    auto join = [&](TenantId tenant) -> boost::asio::awaitable<void> {
      Runner runner;
      runner.id = id;
      runner.tenant = tenant;
      runner.boot = BootId::trusted("boot-" + tenant.str());
      if (co_await c().register_runner(runner, "w", tenant)) had.push_back(tenant);
    };
    for (const TenantId& tenant : {t1, t2}) boost::asio::co_spawn(stores.io, join(tenant), boost::asio::detached);
    stores.io.restart();
    stores.io.run();
    ASSERT_EQ(had.size(), 1u);
    EXPECT_EQ(run(c().show_runner(id, {}))->tenant, had[0]);
  }
}

TEST_P(CatalogContract, Runner_RegistersAgain_WithoutLosingItsFlags) {
  Runner runner;
  runner.id = RunnerId::trusted("r1");
  runner.boot = BootId::trusted("boot-1");
  runner.address.host = "host-1";
  runner.capacity = 16;
  runner.capabilities = {"rtsp"};
  runner.models = {{"tflite", "a", true, {"person", "fire hydrant"}}, {"hog", "", true, {"person"}}};
  auto first = run(c().register_runner(runner, "w1"));
  ASSERT_TRUE(first);
  EXPECT_TRUE(first->live);
  EXPECT_EQ(first->capabilities, runner.capabilities);
  auto listed = run(c().list_runners({}, {}, 10));
  ASSERT_TRUE(listed && listed->size() == 1 && listed->front().models.size() == 2);
  EXPECT_EQ(listed->front().models[0].labels, runner.models[0].labels);
  EXPECT_TRUE(listed->front().models[0].is_default);
  ASSERT_TRUE(run(c().change_runner(runner.id, {}, {true, DrainMode::soft, 8})));
  EXPECT_EQ(run(c().register_runner(runner, "w1")).error().reason, "boot_known");
  runner.boot = BootId::trusted("boot-2");
  runner.address.host = "host-2";
  auto again = run(c().register_runner(runner, "w2"));
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->cordoned);
  EXPECT_EQ(again->drain, DrainMode::soft);
  EXPECT_EQ(again->address.host, "host-2");
  EXPECT_EQ(again->boot.str(), "boot-2");
  EXPECT_EQ(again->capacity, 8) << "the operator's word";
  EXPECT_TRUE(again->capacity_pinned);
  // Also where it is what the runner says; until the operator leaves it to the runner again.
  ASSERT_TRUE(run(c().change_runner(runner.id, {}, {{}, {}, 16})));
  runner.capacity = 20;
  runner.boot = BootId::trusted("boot-3");
  EXPECT_EQ(run(c().register_runner(runner, "w3"))->capacity, 16);
  auto freed = run(c().change_runner(runner.id, {}, {.unpin = true}));
  ASSERT_TRUE(freed);
  EXPECT_EQ(freed->capacity, 20) << "as it said last";
  EXPECT_FALSE(run(c().show_runner(runner.id, {}))->capacity_pinned);
  EXPECT_TRUE(run(c().show_runner(runner.id, {}))->cordoned) << "the other orders stay";
  runner.capacity = 24;
  runner.boot = BootId::trusted("boot-4");
  EXPECT_EQ(run(c().register_runner(runner, "w4"))->capacity, 24);
}

TEST_P(CatalogContract, Heartbeat_IsKept_AnswersTheOrders_AndUnknownRunnersAreNot) {
  Runner runner;
  runner.id = RunnerId::trusted("r1");
  runner.tenant = t1;
  ASSERT_TRUE(run(c().register_runner(runner, "")));
  EXPECT_EQ(*run(c().heartbeat(runner.id, t1, {{"cpu_pct", 41.2}}, 7)), (RunnerOrders{false, DrainMode::none, 40}));
  ASSERT_TRUE(run(c().change_runner(runner.id, {}, {true, DrainMode::hard, 3})));
  EXPECT_EQ(*run(c().heartbeat(runner.id, t1, {{"cpu_pct", 41.2}}, 7)), (RunnerOrders{true, DrainMode::hard, 3}));
  auto read = run(c().show_runner(runner.id, {}));
  EXPECT_EQ(read->streams_owned, 7);
  EXPECT_DOUBLE_EQ(read->heartbeat.at("cpu_pct").as_double(), 41.2);
  EXPECT_EQ(run(c().heartbeat(RunnerId::trusted("none"), {}, {}, 0)).error().code, Errc::not_found);
  EXPECT_EQ(run(c().heartbeat(runner.id, t2, {}, 0)).error().code, Errc::not_found);
  EXPECT_EQ(run(c().list_runners(t2, {}, 10))->size(), 0u);
  EXPECT_EQ(run(c().list_runners(t1, {}, 10))->size(), 1u);
}

TEST_P(CatalogContract, RunnerOfAllTenants_IsSeenByEach_AndCommandedByNone) {
  Runner runner;
  runner.id = RunnerId::trusted("r1");
  ASSERT_TRUE(run(c().register_runner(runner, "", {})));
  EXPECT_EQ(run(c().list_runners(t1, {}, 10))->size(), 1u);
  EXPECT_TRUE(run(c().show_runner(runner.id, t1)));
  EXPECT_EQ(run(c().heartbeat(runner.id, t1, {}, 7)).error().reason, "tenant_token");
  EXPECT_EQ(run(c().change_runner(runner.id, t1, {true})).error().code, Errc::forbidden);
  EXPECT_EQ(run(c().remove_runner(runner.id, t1)).error().code, Errc::forbidden);
  Runner bound = runner;
  bound.tenant = t1;
  EXPECT_EQ(run(c().register_runner(bound, "", t1)).error().code, Errc::conflict);
  auto still = run(c().show_runner(runner.id, {}));
  ASSERT_TRUE(still);
  EXPECT_TRUE(still->tenant.empty());
  EXPECT_FALSE(still->cordoned);
  EXPECT_EQ(still->streams_owned, 0);

  // A caller without a tenant may bind the runner to one; from then on it is that tenant's alone.
  ASSERT_TRUE(run(c().register_runner(bound, "", {})));
  EXPECT_TRUE(run(c().register_runner(bound, "", t1)));
  EXPECT_TRUE(run(c().heartbeat(runner.id, t1, {}, 7)));
  EXPECT_TRUE(run(c().change_runner(runner.id, t1, {true})));
  bound.tenant = t2;
  EXPECT_EQ(run(c().register_runner(bound, "", t2)).error().code, Errc::conflict);
  EXPECT_EQ(run(c().change_runner(runner.id, t2, {false})).error().code, Errc::not_found);
  EXPECT_EQ(run(c().remove_runner(runner.id, t2)).error().code, Errc::not_found);
  EXPECT_TRUE(run(c().remove_runner(runner.id, t1)));
}

TEST_P(CatalogContract, RunnerWithLeases_CannotBeRemoved) {
  Runner runner;
  runner.id = RunnerId::trusted("r1");
  ASSERT_TRUE(run(c().register_runner(runner, "")));
  auto got = stores.ask(lease::Operation::acquire, owner("r1"), {cam(1), {}, false, "k"});
  EXPECT_EQ(run(c().show_runner(runner.id, {}))->leases_held, 1);
  EXPECT_EQ(run(c().remove_runner(runner.id, {})).error().code, Errc::unprocessable);
  stores.ask(lease::Operation::release, owner("r1"), {cam(1), got.version});
  EXPECT_TRUE(run(c().remove_runner(runner.id, {})));
  EXPECT_EQ(run(c().show_runner(runner.id, {})).error().code, Errc::not_found);
}

INSTANTIATE_TEST_SUITE_P(Fake, CatalogContract, testing::Values(Kind::fake));
INSTANTIATE_TEST_SUITE_P(Sqlite, CatalogContract, testing::Values(Kind::sqlite));
INSTANTIATE_TEST_SUITE_P(Postgres, CatalogContract, testing::Values(Kind::postgres));

}  // namespace weir::test
