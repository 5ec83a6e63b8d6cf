// What detector clusters shall look at: models, playlists, displays and ad-hoc subscriptions, over every store.
#include "stores.hpp"

namespace weir::test {

namespace {

const TenantId kTenant = TenantId::trusted("t1"), kForeign = TenantId::trusted("t2");

PlaylistRecord playlist(const std::string& id, ModelId model, const std::string& tenant = "t1") {
  return {PlaylistId::trusted(id), TenantId::trusted(tenant), "the " + id, model};
}
DisplayRecord display(const std::string& id, const std::string& camera = "", const std::string& shows = "",
                      const std::string& tenant = "t1") {
  return {DisplayId::trusted(id), TenantId::trusted(tenant), "the " + id, CameraId::trusted(camera),
          PlaylistId::trusted(shows)};
}
SubscriptionRecord subscription(const std::string& id, ModelId model, const std::string& tenant = "t1") {
  auto parts = parts_of(id);
  EXPECT_TRUE(parts) << id;
  return {SubscriptionId::trusted(id), TenantId::trusted(tenant), parts ? parts->camera : CameraId(), model};
}

}  // namespace

class DisplayContract : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    if (!stores.unavailable.empty()) GTEST_SKIP() << stores.unavailable;
    stores.furnish(3);
    ASSERT_TRUE(run(catalog().add_tenant({kForeign, "Two"})));
  }
  template <class T>
  T run(boost::asio::awaitable<T> what) {
    return stores.run(std::move(what));
  }
  Catalog& catalog() { return *stores.catalog; }
  ModelId model(const std::string& tenant = "t1") {
    auto added = run(catalog().put_model({.tenant = TenantId::trusted(tenant), .name = "yolo"}, Put::add));
    EXPECT_TRUE(added) << (added ? "" : added.error().message);
    return added ? added->id : 0;
  }
  void give_to_cluster(int camera, const std::string& cluster = "default") {
    auto edited = run(catalog().edit_camera(cam(camera), {}, [&](const CameraRecord& r) -> Result<camera::Config> {
      camera::Config next = r.config;
      next.processing = camera::Processing::cluster;
      next.cluster = ClusterId::trusted(cluster);
      return next;
    }));
    ASSERT_TRUE(edited) << edited.error().message;
  }
  std::vector<DesiredSubscription> desired(const std::string& cluster = "default", TenantId tenant = {},
                                           const std::string& after = "", int limit = 100) {
    auto found = run(catalog().list_desired(ClusterId::trusted(cluster), std::move(tenant),
                                            SubscriptionId::trusted(after), limit));
    EXPECT_TRUE(found) << (found ? "" : found.error().message);
    return found ? *found : std::vector<DesiredSubscription>();
  }
  std::vector<std::string> desired_ids(const std::string& cluster = "default", TenantId tenant = {}) {
    std::vector<std::string> ids;
    for (const DesiredSubscription& each : desired(cluster, std::move(tenant))) ids.push_back(each.id.str());
    return ids;
  }
  template <class T>
  static void expect_error(const Result<T>& answer, Errc code, const std::string& reason) {
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, code);
    EXPECT_EQ(answer.error().reason, reason);
  }
  using Ids = std::vector<std::string>;
  Stores stores{GetParam()};
};

TEST_P(DisplayContract, Models_AreNumbered_AndKeepTheirFileWhenTheyChange) {
  ModelRecord wanted{.id = 7, .tenant = kTenant, .name = "yolo", .metadata = {{"labels", "a\"b"}}};
  wanted.file = ModelFile{"yolo.onnx", std::string(64, 'a'), 5'000'000'000};
  auto added = run(catalog().put_model(wanted, Put::add));
  ASSERT_TRUE(added) << added.error().message;
  EXPECT_EQ(added->file, wanted.file);
  EXPECT_NE(added->created_at, WallTime{});
  EXPECT_EQ(model(), 8);
  expect_error(run(catalog().put_model(wanted, Put::add)), Errc::conflict, "model_exists");

  auto changed = run(catalog().put_model({.id = 7, .name = "other", .metadata = {{"x", 1}}}, Put::replace));
  ASSERT_TRUE(changed) << changed.error().message;
  auto shown = run(catalog().show_model(7, kTenant));
  ASSERT_TRUE(shown);
  EXPECT_EQ(shown->name, "other");
  EXPECT_EQ(shown->tenant, kTenant);
  EXPECT_EQ(shown->file, wanted.file);
  EXPECT_EQ(shown->metadata, (boost::json::object{{"x", 1}}));
  EXPECT_EQ(shown->created_at, added->created_at);
  EXPECT_FALSE(run(catalog().show_model(8, {}))->file);

  expect_error(run(catalog().put_model({.id = 9, .name = "x"}, Put::replace)), Errc::not_found, "model_not_found");
  expect_error(run(catalog().put_model({.id = 7, .tenant = kForeign, .name = "x"}, Put::replace)), Errc::not_found,
               "model_not_found");
  expect_error(run(catalog().put_model({.id = 7, .tenant = kForeign, .name = "x"}, Put::add)), Errc::conflict,
               "model_exists");
  expect_error(run(catalog().put_model({.tenant = TenantId::trusted("t9"), .name = "x"}, Put::add)), Errc::not_found,
               "tenant_not_found");
  ASSERT_TRUE(run(catalog().put_model({.id = kModelIdMax, .tenant = kTenant, .name = "last"}, Put::add)));
  expect_error(run(catalog().put_model({.tenant = kTenant, .name = "x"}, Put::add)), Errc::unprocessable,
               "no_model_id");
}

TEST_P(DisplayContract, AModelsFile_IsReplaced_AndNothingElseOfTheModel) {
  ModelId id = model();
  auto before = run(catalog().show_model(id, {}));
  ASSERT_TRUE(before);
  for (const char* name : {"first.onnx", "second.onnx"}) {
    ModelFile file{name, std::string(64, name[0]), 4'294'967'296};
    auto changed = run(catalog().set_model_file(id, kTenant, file));
    ASSERT_TRUE(changed) << changed.error().message;
    EXPECT_EQ(changed->file, file);
    EXPECT_GE(changed->updated_at, before->updated_at);
    auto shown = run(catalog().show_model(id, {}));
    ASSERT_TRUE(shown);
    EXPECT_EQ(shown->file, file);
    EXPECT_EQ(shown->name, before->name);
    EXPECT_EQ(shown->created_at, before->created_at);
  }
  ModelFile third{"third.onnx", std::string(64, 't'), 3};
  expect_error(run(catalog().set_model_file(id, kForeign, third)), Errc::not_found, "model_not_found");
  expect_error(run(catalog().set_model_file(id + 1, {}, third)), Errc::not_found, "model_not_found");
  EXPECT_EQ(run(catalog().show_model(id, {}))->file->name, "second.onnx");
}

TEST_P(DisplayContract, Lists_ComeInOrder_InPages_AndByTenant) {
  ModelId one = model(), two = model(), foreign = model("t2");
  EXPECT_EQ(run(catalog().list_models(kTenant, 0, 10))->size(), 2u);
  EXPECT_EQ(run(catalog().list_models({}, one, 1))->at(0).id, two);
  EXPECT_EQ(run(catalog().list_models({}, two, 10))->at(0).id, foreign);
  for (const char* id : {"b", "a", "c"}) {
    ASSERT_TRUE(run(catalog().put_playlist(playlist(id, one), Put::add)));
    ASSERT_TRUE(run(catalog().put_display(display(id), Put::add)));
    ASSERT_TRUE(run(catalog().put_subscription(subscription(std::string(id) + ";c1", one))));
  }
  EXPECT_EQ(run(catalog().list_playlists({}, PlaylistId::trusted("a"), 1))->at(0).id.str(), "b");
  EXPECT_EQ(run(catalog().list_displays({}, DisplayId::trusted("b"), 10))->at(0).id.str(), "c");
  EXPECT_EQ(run(catalog().list_subscriptions({}, SubscriptionId::trusted("a;c1"), 1))->at(0).id.str(), "b;c1");
  EXPECT_TRUE(run(catalog().list_playlists(kForeign, {}, 10))->empty());
  EXPECT_TRUE(run(catalog().list_displays(kForeign, {}, 10))->empty());
  EXPECT_TRUE(run(catalog().list_subscriptions(kForeign, {}, 10))->empty());
}

TEST_P(DisplayContract, APlaylist_NamesAModelOfItsTenant) {
  ModelId own = model(), foreign = model("t2");
  expect_error(run(catalog().put_playlist(playlist("p", foreign), Put::add)), Errc::not_found, "model_not_found");
  auto added = run(catalog().put_playlist(playlist("p", own), Put::add));
  ASSERT_TRUE(added) << added.error().message;
  EXPECT_EQ(added->name, "the p");
  expect_error(run(catalog().put_playlist(playlist("p", own), Put::add)), Errc::conflict, "playlist_exists");
  expect_error(run(catalog().put_playlist(playlist("p", foreign, "t2"), Put::add)), Errc::conflict, "playlist_exists");
  expect_error(run(catalog().put_playlist(playlist("p", foreign, "t2"), Put::replace)), Errc::not_found,
               "playlist_not_found");
  ModelId other = model();
  ASSERT_TRUE(run(catalog().put_playlist(playlist("p", other), Put::replace)));
  EXPECT_EQ(run(catalog().show_playlist(PlaylistId::trusted("p"), kTenant))->model, other);
  expect_error(run(catalog().show_playlist(PlaylistId::trusted("p"), kForeign)), Errc::not_found, "playlist_not_found");
  expect_error(run(catalog().remove_playlist(PlaylistId::trusted("p"), kForeign)), Errc::not_found,
               "playlist_not_found");
  ASSERT_TRUE(run(catalog().remove_playlist(PlaylistId::trusted("p"), kTenant)));
  expect_error(run(catalog().remove_playlist(PlaylistId::trusted("p"), {})), Errc::not_found, "playlist_not_found");
}

TEST_P(DisplayContract, ADisplay_NamesACameraAndAPlaylistOfItsTenant_OrNone) {
  ModelId own = model(), foreign = model("t2");
  ASSERT_TRUE(run(catalog().put_playlist(playlist("p", own), Put::add)));
  ASSERT_TRUE(run(catalog().put_playlist(playlist("q", foreign, "t2"), Put::add)));
  auto added = run(catalog().put_display(display("d"), Put::add));
  ASSERT_TRUE(added) << added.error().message;
  EXPECT_TRUE(added->camera.empty());
  EXPECT_TRUE(added->playlist.empty());
  expect_error(run(catalog().put_display(display("d"), Put::add)), Errc::conflict, "display_exists");
  expect_error(run(catalog().put_display(display("d", "c9"), Put::replace)), Errc::not_found, "camera_not_found");
  expect_error(run(catalog().put_display(display("d", "c1", "q"), Put::replace)), Errc::not_found,
               "playlist_not_found");
  expect_error(run(catalog().put_display(display("e", "c1", "q", "t2"), Put::add)), Errc::not_found,
               "camera_not_found");
  ASSERT_TRUE(run(catalog().put_display(display("d", "c1", "p"), Put::replace)));
  auto shown = run(catalog().show_display(DisplayId::trusted("d"), kTenant));
  ASSERT_TRUE(shown);
  EXPECT_EQ(shown->camera, cam(1));
  EXPECT_EQ(shown->playlist.str(), "p");
  EXPECT_EQ(shown->created_at, added->created_at);
  expect_error(run(catalog().show_display(DisplayId::trusted("d"), kForeign)), Errc::not_found, "display_not_found");
  expect_error(run(catalog().remove_display(DisplayId::trusted("d"), kForeign)), Errc::not_found, "display_not_found");
  ASSERT_TRUE(run(catalog().remove_display(DisplayId::trusted("d"), {})));
  expect_error(run(catalog().put_display(display("d"), Put::replace)), Errc::not_found, "display_not_found");
}

TEST_P(DisplayContract, WhatSomebodyNames_IsNotRemoved_AndTheAnswerSaysWho) {
  ModelId used = model(), ad_hoc = model();
  ASSERT_TRUE(run(catalog().put_playlist(playlist("p", used), Put::add)));
  ASSERT_TRUE(run(catalog().put_display(display("d", "c1", "p"), Put::add)));
  ASSERT_TRUE(run(catalog().put_subscription(subscription("x;c1", ad_hoc))));
  auto refused = run(catalog().remove_model(used, {}));
  expect_error(refused, Errc::conflict, "model_in_use");
  EXPECT_NE(refused.error().message.find("playlist p"), std::string::npos) << refused.error().message;
  expect_error(run(catalog().remove_model(ad_hoc, {})), Errc::conflict, "model_in_use");
  expect_error(run(catalog().remove_playlist(PlaylistId::trusted("p"), {})), Errc::conflict, "playlist_in_use");
  expect_error(run(catalog().remove_model(used, kForeign)), Errc::not_found, "model_not_found");
  ASSERT_TRUE(run(catalog().remove_display(DisplayId::trusted("d"), {})));
  ASSERT_TRUE(run(catalog().remove_playlist(PlaylistId::trusted("p"), {})));
  ASSERT_TRUE(run(catalog().remove_model(used, {})));
  ASSERT_TRUE(run(catalog().remove_subscription(SubscriptionId::trusted("x;c1"), {})));
  ASSERT_TRUE(run(catalog().remove_model(ad_hoc, {})));
}

TEST_P(DisplayContract, ACameraThatIsRemoved_LeavesItsDisplays_AndEndsItsSubscriptions) {
  ModelId one = model();
  ASSERT_TRUE(run(catalog().put_playlist(playlist("p", one), Put::add)));
  ASSERT_TRUE(run(catalog().put_display(display("d", "c1", "p"), Put::add)));
  ASSERT_TRUE(run(catalog().put_subscription(subscription("x;c1", one))));
  ASSERT_TRUE(run(catalog().put_subscription(subscription("x;c2", one))));
  ASSERT_TRUE(run(catalog().remove_camera(cam(1), {})));
  auto left = run(catalog().show_display(DisplayId::trusted("d"), {}));
  ASSERT_TRUE(left) << left.error().message;
  EXPECT_TRUE(left->camera.empty());
  EXPECT_EQ(left->playlist.str(), "p");
  auto subscriptions = run(catalog().list_subscriptions({}, {}, 10));
  ASSERT_EQ(subscriptions->size(), 1u);
  EXPECT_EQ(subscriptions->at(0).camera, cam(2));
}

TEST_P(DisplayContract, ATenantWithModelsOrDisplays_IsNotRemoved) {
  ModelId one = model("t2");
  expect_error(run(catalog().remove_tenant(kForeign)), Errc::unprocessable, "tenant_not_empty");
  ASSERT_TRUE(run(catalog().remove_model(one, {})));
  ASSERT_TRUE(run(catalog().put_display(display("d", "", "", "t2"), Put::add)));
  expect_error(run(catalog().remove_tenant(kForeign)), Errc::unprocessable, "tenant_not_empty");
  ASSERT_TRUE(run(catalog().remove_display(DisplayId::trusted("d"), {})));
  EXPECT_TRUE(run(catalog().remove_tenant(kForeign)));
}

TEST_P(DisplayContract, ASubscription_IsMadeAnew_UnderItsIdentifier) {
  ModelId one = model(), two = model(), foreign = model("t2");
  SubscriptionRecord wanted = subscription("x;c1", one);
  wanted.options.snapshot_url = Secret("http://user:secret@camera.example/s.jpg");
  wanted.options.snapshot_interval_ms = 500;
  wanted.options.crop_x1 = wanted.options.crop_y1 = 1;
  wanted.options.crop_x2 = wanted.options.crop_y2 = 9;
  ASSERT_TRUE(run(catalog().put_subscription(wanted)));
  auto kept = run(catalog().list_subscriptions(kTenant, {}, 10));
  ASSERT_EQ(kept->size(), 1u);
  EXPECT_EQ(write_options(kept->at(0).options), write_options(wanted.options));
  EXPECT_EQ(kept->at(0).options.snapshot_url, wanted.options.snapshot_url);
  ASSERT_TRUE(run(catalog().put_subscription(subscription("x;c1", two))));
  kept = run(catalog().list_subscriptions(kTenant, {}, 10));
  ASSERT_EQ(kept->size(), 1u);
  EXPECT_EQ(kept->at(0).model, two);
  EXPECT_FALSE(kept->at(0).options.snapshot_url);

  expect_error(run(catalog().put_subscription(subscription("x;c1", foreign, "t2"))), Errc::conflict,
               "subscription_exists");
  expect_error(run(catalog().put_subscription(subscription("x;c9", one))), Errc::not_found, "camera_not_found");
  expect_error(run(catalog().put_subscription(subscription("x;c2", foreign))), Errc::not_found, "model_not_found");
  expect_error(run(catalog().remove_subscription(SubscriptionId::trusted("x;c1"), kForeign)), Errc::not_found,
               "subscription_not_found");
  auto gone = run(catalog().remove_subscription(SubscriptionId::trusted("x;c1"), kTenant));
  ASSERT_TRUE(gone);
  EXPECT_EQ(gone->model, two);
  EXPECT_TRUE(run(catalog().list_subscriptions({}, {}, 10))->empty());
}

TEST_P(DisplayContract, WhatAClusterShallDo_IsDisplaysWithCameraAndPlaylist_AndAdHocSubscriptions) {
  ModelId one = model(), two = model();
  ASSERT_TRUE(run(catalog().put_playlist(playlist("p", one), Put::add)));
  ASSERT_TRUE(run(catalog().put_display(display("d1", "c1", "p"), Put::add)));
  ASSERT_TRUE(run(catalog().put_display(display("d2", "c2", "p"), Put::add)));
  ASSERT_TRUE(run(catalog().put_display(display("no-camera", "", "p"), Put::add)));
  ASSERT_TRUE(run(catalog().put_display(display("no-playlist", "c1"), Put::add)));
  ASSERT_TRUE(run(catalog().put_subscription(subscription("x;c1", two))));
  ASSERT_TRUE(run(catalog().put_subscription(subscription("x;c3", two))));
  EXPECT_EQ(desired_ids(), Ids()) << "runners take all cameras";
  give_to_cluster(1);
  give_to_cluster(2);
  give_to_cluster(3, "second");
  EXPECT_EQ(desired_ids(), (Ids{"d1;c1", "d2;c2", "x;c1"}));
  EXPECT_EQ(desired_ids("second"), Ids{"x;c3"});
  EXPECT_EQ(desired_ids("default", kTenant).size(), 3u);
  EXPECT_EQ(desired_ids("default", kForeign), Ids());
  EXPECT_EQ(desired("default", {}, "d1;c1", 1).at(0).id.str(), "d2;c2") << "in pages";

  DesiredSubscription of_display = desired()[0], ad_hoc = desired()[2];
  EXPECT_FALSE(of_display.ad_hoc);
  EXPECT_EQ(of_display.camera.camera, cam(1));
  EXPECT_EQ(of_display.camera.rtsp_url, camera_config(cam(1)).rtsp_url);
  EXPECT_EQ(of_display.model.id, one);
  EXPECT_EQ(of_display.model.name, "yolo");
  EXPECT_EQ(of_display.created_at, run(catalog().show_display(DisplayId::trusted("d1"), {}))->created_at);
  EXPECT_TRUE(ad_hoc.ad_hoc);
  EXPECT_EQ(ad_hoc.model.id, two);

  ASSERT_TRUE(run(catalog().put_subscription(subscription("d1;c1", two))));
  EXPECT_EQ(desired().size(), 3u) << "one subscription a name";
  EXPECT_TRUE(desired()[0].ad_hoc);
  EXPECT_EQ(desired()[0].model.id, two);

  auto disabled = run(catalog().edit_camera(cam(1), {}, [](const CameraRecord& r) -> Result<camera::Config> {
    camera::Config next = r.config;
    next.enabled = false;
    return next;
  }));
  ASSERT_TRUE(disabled);
  EXPECT_EQ(desired_ids(), Ids{"d2;c2"});
}

TEST_P(DisplayContract, ADesiredSubscription_SaysAboveWhichVersionItsClusterIsHeard) {
  ModelId one = model();
  ASSERT_TRUE(run(catalog().put_subscription(subscription("x;c1", one))));
  lease::Answer held = stores.ask(lease::Operation::acquire, owner("r1"), {.subject = cam(1), .key = "k"});
  give_to_cluster(1);
  EXPECT_GT(desired().at(0).above, held.version);
  EXPECT_EQ(desired().at(0).above, run(stores.leases->show(cam(1), {}))->row.version);
}

TEST_P(DisplayContract, WhatASubscriptionLeavesOut_IsTheCameras) {
  ModelId one = model();
  auto edited = run(catalog().edit_camera(cam(1), {}, [](const CameraRecord& r) -> Result<camera::Config> {
    camera::Config next = r.config;
    next.processing = camera::Processing::cluster;
    next.snapshot = camera::Snapshot{Secret("http://camera.example/own.jpg"), 2.5};
    next.crop = camera::Crop{10, 20, 100, 200};
    return next;
  }));
  ASSERT_TRUE(edited) << edited.error().message;
  ASSERT_TRUE(run(catalog().put_subscription(subscription("x;c1", one))));
  SubscriptionOptions options = desired().at(0).options;
  EXPECT_EQ(options.snapshot_url, Secret("http://camera.example/own.jpg"));
  EXPECT_EQ(options.snapshot_interval_ms, 2500);
  EXPECT_EQ(write_options(options).substr(write_options(options).find("\"crop_x1")),
            R"("crop_x1":10,"crop_y1":20,"crop_x2":110,"crop_y2":220})");
  SubscriptionRecord own = subscription("x;c1", one);
  own.options.snapshot_url = Secret("http://other.example/s.jpg");
  ASSERT_TRUE(run(catalog().put_subscription(own)));
  options = desired().at(0).options;
  EXPECT_EQ(options.snapshot_url, own.options.snapshot_url);
  EXPECT_FALSE(options.snapshot_interval_ms) << "the camera's interval is for the camera's address";
  EXPECT_EQ(options.crop_x2, 110);
}

TEST_P(DisplayContract, ACameraThatCannotBeRead_HidesNoOtherSubscription) {
  ModelId one = model();
  for (int n = 1; n <= 3; ++n) {
    give_to_cluster(n);
    ASSERT_TRUE(run(catalog().put_subscription(subscription(fmt::format("x;c{}", n), one))));
  }
  if (!stores.meddle("UPDATE cameras SET config = '{\"from\":\"elsewhere\"}' WHERE camera_uuid = 'c1'")) return;
  EXPECT_EQ(desired_ids(), (Ids{"x;c2", "x;c3"}));
  EXPECT_EQ(desired("default", {}, "", 1).at(0).id.str(), "x;c2");
}

INSTANTIATE_TEST_SUITE_P(Fake, DisplayContract, testing::Values(Kind::fake));
INSTANTIATE_TEST_SUITE_P(Sqlite, DisplayContract, testing::Values(Kind::sqlite));
INSTANTIATE_TEST_SUITE_P(Postgres, DisplayContract, testing::Values(Kind::postgres));

}  // namespace weir::test
