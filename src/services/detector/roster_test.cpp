#include "testing.hpp"

#include "log_lines.hpp"

#include <gtest/gtest.h>

namespace weir::detector {
namespace {

using namespace testing;

class RosterTest : public ::testing::Test {
 protected:
  void make(RosterSettings settings = {}) {
    roster_ = std::make_unique<Roster>(io_, clock_, cameras_, models_, sightings_, metrics_, std::move(settings),
                                       [] { return 0.5; });
  }
  void SetUp() override {
    models_.files["http://plane/7"] = model("aaa");
    make();
  }
  void pass(Duration time) { clock_.run(clock_.now() + time); }
  std::optional<cluster::CameraConnection> about(const std::string& id) {
    for (cluster::CameraConnection& each : roster_->connections())
      if (each.subscription.text() == id) return each;
    return std::nullopt;
  }
  bool online(const std::string& id) { return about(id) && about(id)->online; }
  static Sighting sighting(const std::string& id, const std::string& label = "car") {
    return {CameraId::trusted(id), WallTime{1h}, {{label, 0.8, {1, 2, 3, 4}}}};
  }

  asio::io_context io_{1};
  VirtualClock clock_{io_};
  FakeCameras cameras_;
  FakeModels models_{clock_};
  Sightings sightings_{[] {}};
  net::Metrics metrics_;
  std::unique_ptr<Roster> roster_;
};

TEST_F(RosterTest, Subscription_BeginsWithItsModel_AndIsOnlineWithItsCamera) {
  cluster::Subscribe given = wanted("d;c");
  given.crop = cluster::Crop{10, 20, 110, 70};
  cameras_.dark.insert("d;c");
  roster_->obey(given);
  ASSERT_TRUE(about("d;c")) << "it is reported before its model is there";
  EXPECT_FALSE(online("d;c"));
  EXPECT_TRUE(cameras_.running.empty());
  pass(1s);
  const link::Source& source = cameras_.running.at("d;c");
  EXPECT_EQ(source.config.rtsp_url, given.rtsp_url);
  EXPECT_EQ(source.config.model.detector, "tflite");
  EXPECT_EQ(source.config.model.name, "aaa");
  EXPECT_EQ(source.config.site.str(), "recorder.example");
  ASSERT_TRUE(source.config.crop);
  EXPECT_EQ(source.config.crop->width, 100);
  EXPECT_EQ(source.config.crop->height, 50);
  EXPECT_FALSE(online("d;c"));
  cameras_.dark.clear();
  EXPECT_TRUE(online("d;c"));
  EXPECT_EQ(about("d;c")->crop, given.crop);
  EXPECT_EQ(about("d;c")->model_id, 7);
  EXPECT_EQ(roster_->models(), std::set<std::string>{"aaa"});
}

TEST_F(RosterTest, TheSameAgain_ChangesNothing_UnlessItsLinkLeadsToAnotherModelByNow) {
  roster_->obey(wanted("d;c"));
  pass(1s);
  models_.files["http://plane/7?fresh"] = model("aaa");
  roster_->obey(wanted("d;c", "http://plane/7?fresh"));
  pass(1s);
  EXPECT_EQ(cameras_.happened, std::vector<std::string>{"add d;c"});
  models_.files["http://plane/7?later"] = model("bbb");
  roster_->obey(wanted("d;c", "http://plane/7?later"));
  pass(1s);
  EXPECT_EQ(cameras_.happened, (std::vector<std::string>{"add d;c", "change d;c"}));
  EXPECT_EQ(cameras_.running.at("d;c").config.model.name, "bbb");
}

TEST_F(RosterTest, AnythingElseThatDiffers_BeginsItAnew_AndWhatWasSeenBeforeIsDropped) {
  roster_->obey(wanted("d;c"));
  pass(1s);
  cluster::Subscribe other = wanted("d;c");
  other.model_id = 8;
  sightings_.put(sighting("d;c"));
  roster_->obey(other);
  EXPECT_TRUE(sightings_.take().empty());
  EXPECT_FALSE(roster_->result_of(sighting("d;c"))) << "its model is not there yet";
  pass(1s);
  EXPECT_EQ(cameras_.happened, (std::vector<std::string>{"add d;c", "remove d;c", "add d;c"}));
}

TEST_F(RosterTest, Unsubscribed_ItIsGone_AlsoWhileItsModelIsOnItsWay) {
  roster_->obey(wanted("d;c"));
  roster_->obey(cluster::Unsubscribe{*cluster::Identifier::parse("d;c")});
  pass(1s);
  EXPECT_TRUE(cameras_.happened.empty());
  roster_->obey(wanted("d;c"));
  pass(1s);
  roster_->obey(cluster::Unsubscribe{*cluster::Identifier::parse("d;c")});
  EXPECT_EQ(cameras_.happened, (std::vector<std::string>{"add d;c", "remove d;c"}));
  EXPECT_TRUE(roster_->connections().empty());
  EXPECT_FALSE(roster_->result_of(sighting("d;c")));
  roster_->obey(cluster::Unsubscribe{*cluster::Identifier::parse("d;c")});  // of nothing
}

TEST_F(RosterTest, OneCameraForTwoDisplays_IsTwoCameras) {
  roster_->obey(wanted("d1;c"));
  roster_->obey(wanted("d2;c"));
  pass(1s);
  EXPECT_EQ(cameras_.running.size(), 2u);
  cameras_.pictures["d1;c"] = std::make_shared<Still>("older", WallTime{1s});
  cameras_.pictures["d2;c"] = std::make_shared<Still>("newer", WallTime{2s});
  EXPECT_EQ(roster_->latest("c")->to_jpeg(1, 1), "newer");
  EXPECT_TRUE(roster_->knows("c"));
  EXPECT_FALSE(roster_->knows("d1;c"));
  EXPECT_EQ(roster_->latest("x"), nullptr);
}

TEST_F(RosterTest, HostThatDoesNotAnswer_IsAskedAgain_ARefusalIsNot) {
  models_.failures.assign(2, Error{Errc::unavailable, "refused", "nobody answers"});
  roster_->obey(wanted("d;c"));
  pass(10s);
  EXPECT_EQ(models_.asked.size(), 3u);
  EXPECT_TRUE(online("d;c"));
  test::LogLines lines;
  roster_->obey(wanted("d;other", "http://plane/expired"));
  pass(10min);
  EXPECT_EQ(models_.asked.size(), 4u);
  EXPECT_FALSE(online("d;other"));
  EXPECT_NE(lines.all().find("signature_expired"), std::string::npos) << lines.all();
  roster_->obey(wanted("d;other"));  // with a fresh link
  pass(1s);
  EXPECT_TRUE(online("d;other"));
}

TEST_F(RosterTest, SlowAnswerToAnOldQuestion_DoesNotCount) {
  models_.takes = 10s;
  models_.files["http://plane/8"] = model("bbb");
  roster_->obey(wanted("d;c"));
  pass(5s);
  roster_->obey(wanted("d;c", "http://plane/8"));
  pass(7s);
  EXPECT_TRUE(cameras_.running.empty()) << "the first answer has come";
  pass(10s);
  EXPECT_EQ(cameras_.running.at("d;c").config.model.name, "bbb");
}

TEST_F(RosterTest, WithSnapshotAndInterval_PicturesAreFetched_FromHostsThatMayBeAsked) {
  cluster::Subscribe given = wanted("d;c");
  given.snapshot_url = Secret("http://user:pw@camera.example:8081/s.jpg");
  roster_->obey(given);
  pass(1s);
  EXPECT_FALSE(cameras_.running.at("d;c").snapshots) << "without an interval there is no asking again";
  given.snapshot_every = 5000ms;
  roster_->obey(given);
  pass(1s);
  const link::Source& source = cameras_.running.at("d;c");
  EXPECT_TRUE(source.snapshots);
  EXPECT_EQ(source.config.snapshot->interval_s, 5);
  EXPECT_TRUE(source.config.rtsp_url.empty());

  make({.snapshot_hosts = *HostList::parse("camera.example:80")});
  cameras_.running.clear();
  test::LogLines lines;
  roster_->obey(given);
  pass(1s);
  EXPECT_TRUE(cameras_.running.empty());
  EXPECT_TRUE(about("d;c"));
  EXPECT_NE(lines.all().find("detector_snapshot_hosts"), std::string::npos) << lines.all();
  EXPECT_EQ(lines.all().find("pw"), std::string::npos) << lines.all();
}

TEST_F(RosterTest, AddressThatIsNoCameras_IsNotDialled) {
  for (const char* url : {"http://host/x", "file:///etc/passwd", "nothing", "rtmp://host/x"}) {
    cluster::Subscribe given = wanted("d;c");
    given.rtsp_url = Secret(url);
    roster_->obey(given);
    pass(1s);
    EXPECT_TRUE(cameras_.running.empty()) << url;
    EXPECT_TRUE(models_.asked.empty()) << url;
    EXPECT_FALSE(online("d;c"));
  }
}

TEST_F(RosterTest, MoreThanItsBound_IsRefused_AndWhatItHasGoesOn) {
  make({.subscriptions_max = 2});
  for (const char* id : {"d;a", "d;b", "d;c"}) roster_->obey(wanted(id));
  pass(1s);
  EXPECT_EQ(roster_->connections().size(), 2u);
  roster_->obey(wanted("d;a"));
  EXPECT_EQ(roster_->connections().size(), 2u);
}

TEST_F(RosterTest, Result_HasTheModelAsItWasNamed_AndTheFieldsThatItsLabelsMean) {
  models_.files["http://plane/7"].facts.fields = *cluster::read_field_mapping(R"({"bodyType":{"car":"sedan"}})");
  roster_->obey(wanted("d;c"));
  pass(1s);
  auto result = roster_->result_of(sighting("d;c"));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->subscription.text(), "d;c");
  EXPECT_EQ(result->model_id, 7);
  EXPECT_EQ(result->model_name, "cars");
  EXPECT_EQ(result->detection.body_type, "sedan");
  EXPECT_EQ(result->timestamp, WallTime{1h});
  ASSERT_EQ(result->boxes.size(), 1u);
  EXPECT_EQ(result->boxes[0].label, "car");
  EXPECT_EQ(roster_->result_of(sighting("d;c", "dog"))->detection, cluster::Detection{});
}

TEST(DetectorSightings, WhereNobodyTakesThem_TheOldestIsDropped_AndWhoPutsTheFirstWakes) {
  int woken = 0;
  Sightings sightings([&] { ++woken; }, 2);
  for (const char* id : {"a", "b", "c"}) sightings.put({CameraId::trusted(id)});
  EXPECT_EQ(woken, 1);
  EXPECT_EQ(sightings.dropped(), 1u);
  auto taken = sightings.take();
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_EQ(taken[0].camera.str(), "b");
  sightings.put({CameraId::trusted("d")});
  EXPECT_EQ(woken, 2);
}

}  // namespace
}  // namespace weir::detector
