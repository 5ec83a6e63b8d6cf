#include "weir/cluster/desired.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace weir::cluster {
namespace {

const TenantId kOne = TenantId::trusted("t1"), kTwo = TenantId::trusted("t2");

struct House {
  std::vector<DisplayRow> displays{{.id = "d1", .tenant = kOne, .camera = "c1", .playlist = "p1"}};
  std::vector<CameraRow> cameras{
      {.id = "c1", .tenant = kOne, .by_cluster = true, .rtsp_url = Secret("rtsp://u:p@h/1")}};
  std::vector<PlaylistRow> playlists{{.id = "p1", .tenant = kOne, .model = 7}};
  std::vector<ModelRow> models{{.id = 7, .name = "vehicles", .checksum = "abc"}};
  std::vector<AdHocRow> ad_hoc = {};

  Desired desired() const { return desire({displays, cameras, playlists, models, ad_hoc}); }
  std::string reason() const {
    Desired made = desired();
    return made.subscriptions.empty() && made.left_out.size() == 1 ? made.left_out[0].reason : "a subscription";
  }
};

TEST(Desired, DisplayWithCameraAndPlaylist_AsksForOneSubscription) {
  House house;
  house.displays[0].crop = Crop{1, 2, 3, 4};
  house.displays[0].created_at = WallTime(5s);
  house.cameras[0].snapshot_url = Secret("http://h/s.jpg");
  house.cameras[0].snapshot_every = std::chrono::milliseconds(500);
  Desired made = house.desired();
  EXPECT_TRUE(made.left_out.empty());
  ASSERT_EQ(made.subscriptions.size(), 1u);
  DesiredSubscription expected{.id = {"d1", "c1"}, .tenant = kOne, .rtsp_url = Secret("rtsp://u:p@h/1"),
                               .snapshot_url = Secret("http://h/s.jpg"),
                               .snapshot_every = std::chrono::milliseconds(500), .model_id = 7,
                               .model_name = "vehicles", .model_checksum = "abc", .crop = Crop{1, 2, 3, 4},
                               .created_at = WallTime(5s)};
  EXPECT_TRUE(made.subscriptions.at("d1;c1") == expected);
}

TEST(Desired, DisplayThatYieldsNone_IsNamedWithTheReason) {
  struct Case {
    const char* reason;
    void (*change)(House&);
  };
  for (const Case& each : std::vector<Case>{
           {"the display has no camera", [](House& h) { h.displays[0].camera = ""; }},
           {"the display has no playlist", [](House& h) { h.displays[0].playlist = ""; }},
           {"the display's camera does not exist", [](House& h) { h.cameras.clear(); }},
           {"the display's playlist does not exist", [](House& h) { h.playlists.clear(); }},
           {"the display's camera or playlist belongs to another tenant", [](House& h) { h.cameras[0].tenant = kTwo; }},
           {"the display's camera or playlist belongs to another tenant",
            [](House& h) { h.playlists[0].tenant = kTwo; }},
           {"the camera is processed by runners, not by the cluster",
            [](House& h) { h.cameras[0].by_cluster = false; }},
           {"the camera is disabled", [](House& h) { h.cameras[0].enabled = false; }},
           {"the camera has no stream address", [](House& h) { h.cameras[0].rtsp_url = {}; }},
           {"the playlist has no model", [](House& h) { h.playlists[0].model.reset(); }},
           {"the model does not exist", [](House& h) { h.models.clear(); }},
           {"the model belongs to another tenant", [](House& h) { h.models[0].tenant = kTwo; }},
           {"the id of the display or of its camera has a semicolon in it, or is none",
            [](House& h) { h.displays[0].id = "d;1"; }}}) {
    House house;
    each.change(house);
    EXPECT_EQ(house.reason(), each.reason);
  }
}

TEST(Desired, AdHocSubscription_AsksByItself) {
  House house;
  house.displays.clear();
  house.ad_hoc = {{.identifier = "own;c1", .tenant = kOne, .model = 7},
                  {.identifier = "own;elsewhere", .tenant = kOne, .rtsp_url = Secret("rtsp://x/1"), .model = 7}};
  Desired made = house.desired();
  EXPECT_TRUE(made.left_out.empty());
  EXPECT_EQ(made.subscriptions.at("own;c1").rtsp_url, Secret("rtsp://u:p@h/1")) << "the camera's row has the address";
  EXPECT_EQ(made.subscriptions.at("own;elsewhere").rtsp_url, Secret("rtsp://x/1"));
}

TEST(Desired, AdHocSubscriptionThatYieldsNone_IsNamedWithTheReason) {
  struct Case {
    AdHocRow row;
    const char* reason;
  };
  for (const Case& each : std::vector<Case>{
           {{.identifier = "nonsense"}, "Invalid subscription identifier format: it must be displayId;cameraId"},
           {{.identifier = "d;x", .tenant = kOne, .model = 7},
            "neither the subscription nor a camera's row has a stream address"},
           {{.identifier = "d;c1", .tenant = kTwo, .model = 7}, "the camera belongs to another tenant"},
           {{.identifier = "d;c1", .tenant = kOne, .model = 8}, "the model does not exist"}}) {
    House house;
    house.displays.clear();
    house.ad_hoc = {each.row};
    EXPECT_EQ(house.reason(), each.reason);
  }
}

TEST(Desired, TheDisplaysRowWins_OverAnAdHocSubscriptionOfTheSameName) {
  House house;
  house.ad_hoc = {{.identifier = "d1;c1", .tenant = kOne, .rtsp_url = Secret("rtsp://other/1"), .model = 7}};
  Desired made = house.desired();
  ASSERT_EQ(made.subscriptions.size(), 1u);
  EXPECT_EQ(made.subscriptions.at("d1;c1").rtsp_url, Secret("rtsp://u:p@h/1"));
  EXPECT_EQ(made.left_out, (std::vector<LeftOut>{{"d1;c1", "another row asks for the same subscription"}}));
}

TEST(Desired, RevisionChangesWithWhatAWorkerIsTold_AndWithNothingElse) {
  DesiredSubscription was{.id = {"d", "c"}, .rtsp_url = Secret("rtsp://h/1"), .model_id = 1, .model_name = "m",
                          .model_checksum = "x"};
  auto changed = [&was](auto change) {
    DesiredSubscription copy = was;
    change(copy);
    return copy.revision() != was.revision();
  };
  EXPECT_TRUE(changed([](auto& d) { d.rtsp_url = Secret("rtsp://h/2"); }));
  EXPECT_TRUE(changed([](auto& d) { d.snapshot_url = Secret("http://h"); }));
  EXPECT_TRUE(changed([](auto& d) { d.snapshot_every = std::chrono::milliseconds(1); }));
  EXPECT_TRUE(changed([](auto& d) { d.model_id = 2; }));
  EXPECT_TRUE(changed([](auto& d) { d.model_name = "n"; }));
  EXPECT_TRUE(changed([](auto& d) { d.model_checksum = "y"; }));
  EXPECT_TRUE(changed([](auto& d) { d.crop = Crop{0, 0, 1, 1}; }));
  EXPECT_FALSE(changed([](auto& d) { d.created_at += 1s; }));
}

// Every display and every ad-hoc subscription yields a subscription or a reason, in whatever order the rows come.
TEST(Desired, AccountsForEveryRow) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    auto tenant = [&] { return below(6) == 0 ? kTwo : kOne; };
    House house{.displays = {}, .cameras = {}, .playlists = {}, .models = {}};
    for (int n = below(12); n > 0; --n)
      house.cameras.push_back({.id = fmt::format("c{}", n), .tenant = tenant(), .enabled = below(5) != 0,
                               .by_cluster = below(4) != 0, .rtsp_url = Secret("rtsp://h/1")});
    for (int n = below(5); n > 0; --n)
      house.playlists.push_back({.id = fmt::format("p{}", n), .tenant = tenant(), .model = below(3)});
    for (int n = below(3); n > 0; --n) house.models.push_back({.id = n, .name = "m"});
    for (int n = below(30); n > 0; --n)
      house.displays.push_back({.id = fmt::format("d{}", n), .tenant = tenant(),
                                .camera = fmt::format("c{}", below(12)), .playlist = fmt::format("p{}", below(5))});
    for (int n = below(10); n > 0; --n)
      house.ad_hoc.push_back({.identifier = fmt::format("a{};c{}", n, below(12)), .tenant = tenant(),
                              .model = below(3)});
    Desired made = house.desired();
    ASSERT_EQ(made.subscriptions.size() + made.left_out.size(), house.displays.size() + house.ad_hoc.size());
    std::ranges::shuffle(house.displays, random);
    std::ranges::shuffle(house.cameras, random);
    ASSERT_TRUE(house.desired().subscriptions == made.subscriptions) << "seed " << seed;
  }
}

}  // namespace
}  // namespace weir::cluster
