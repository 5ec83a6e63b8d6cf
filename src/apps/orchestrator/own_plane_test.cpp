#include "own_plane.hpp"

#include "run.hpp"
#include "temp_files.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include <gtest/gtest.h>

namespace weir::apps {
namespace {

namespace asio = boost::asio;
using lease::Operation;
using lease::Outcome;

const SubjectId kLive = SubjectId::trusted("live");
const lease::Owner kMe{RunnerId::trusted("orch-1"), BootId::trusted("b1")};

class OwnPlaneTest : public testing::Test {
 protected:
  OwnPlaneTest() { open(); }
  void open() {
    plane_.reset();
    auto opened = OwnPlane::open(folder_.path() + "/state", kMe.runner, clock_);
    ASSERT_TRUE(opened) << opened.error().message;
    plane_ = *std::move(opened);
  }
  template <class T>
  T run(asio::awaitable<T> what) {
    return test::run(io_, std::move(what));
  }
  lease::Answer ask(Operation operation, lease::Ask what, const lease::Owner& who = kMe) {
    lease::Home home{TenantId::trusted("t"), SiteId::trusted("s")};
    auto answers = run(plane_->apply({operation, who, 30s, {std::move(what)}, {}, lease::Kind::stream, home}));
    EXPECT_TRUE(answers);
    return answers ? answers->at(0) : lease::Answer{};
  }
  lease::Answer take(const std::string& id = "live", const lease::Owner& who = kMe) {
    return ask(Operation::acquire, {SubjectId::trusted(id), {}, false, "k"}, who);
  }
  static event::Event told(const std::string& id, lease::Version version) {
    event::Event out{"status.topic", "publication.running.t.s.live", id, fmt::format(R"({{"event_id":"{}"}})", id)};
    out.stamp = event::Stamp{kLive, version};
    return out;
  }

  test::TempDir folder_;
  asio::io_context io_{1};
  RealClock clock_;
  std::unique_ptr<OwnPlane> plane_;
};

TEST_F(OwnPlaneTest, AStream_IsLeasedToldAndRemembered_AlsoByTheNextProcess) {
  EXPECT_EQ(run(plane_->record(kLive)).error().code, Errc::not_found);
  auto got = take();
  ASSERT_EQ(got.outcome, Outcome::granted);
  ASSERT_TRUE(run(plane_->tell({kLive, kMe, got.version, {{"run", "r1"}}, {{"state", "running"}}})));
  auto stale = run(plane_->tell({kLive, kMe, {got.version.n + 1}, {}, {}}));
  ASSERT_FALSE(stale);
  EXPECT_EQ(stale.error().reason, "stale_version");

  open();
  auto record = run(plane_->record(kLive));
  ASSERT_TRUE(record) << record.error().message;
  EXPECT_EQ(record->memory, (boost::json::object{{"run", "r1"}}));
  EXPECT_EQ(record->holder, kMe.runner);
  EXPECT_EQ(ask(Operation::renew, {kLive, got.version}).outcome, Outcome::renewed) << "the same boot goes on";
  EXPECT_EQ(take("live", {kMe.runner, BootId::trusted("b2")}).outcome, Outcome::held) << "another boot does not";
}

TEST_F(OwnPlaneTest, Records_AreAllThereAre) {
  for (int i = 0; i < 203; ++i) {
    StreamRecord each{.id = SubjectId::trusted(fmt::format("live-{:03}", i)), .tenant = TenantId::trusted("t")};
    each.site = SiteId::trusted("s");
    ASSERT_TRUE(run(plane_->streams().put_stream(std::move(each))));
  }
  auto records = run(plane_->records());
  ASSERT_TRUE(records);
  ASSERT_EQ(records->size(), 203u);
  EXPECT_EQ(records->back().id.str(), "live-202");
}

TEST_F(OwnPlaneTest, Events_AreFencedByTheLease) {
  auto got = take();
  EXPECT_TRUE(run(plane_->publish(told("e1", got.version))));
  EXPECT_TRUE(run(plane_->publish(told("e1", got.version)))) << "once more is no harm";
  auto stale = run(plane_->publish(told("e2", {got.version.n + 1})));
  ASSERT_FALSE(stale);
  EXPECT_EQ(stale.error().reason, "stale_version");
  auto page = run(plane_->events().read(0, 10));
  ASSERT_TRUE(page);
  ASSERT_EQ(page->events.size(), 1u);
  EXPECT_EQ(page->events[0].routing_key, "publication.running.t.s.live");
}

TEST_F(OwnPlaneTest, Orders_WaitForTheFollower_ComeInOrder_AndAreBounded) {
  ASSERT_TRUE(plane_->order({kLive, "stop"}));
  std::vector<StreamOrder> heard;
  std::optional<Status> ended;
  asio::cancellation_signal stop;
  auto follow = [&]() -> asio::awaitable<void> {
    ended = co_await plane_->follow([&](const StreamOrder& order) { heard.push_back(order); });
  };
  auto unharmed = [](const std::exception_ptr& failed) { EXPECT_FALSE(failed); };
  asio::co_spawn(io_, follow(), asio::bind_cancellation_slot(stop.slot(), unharmed));
  auto until = [&](auto holds) {
    for (int i = 0; i < 500 && !holds(); ++i) io_.run_one_for(10ms);
    return holds();
  };
  EXPECT_TRUE(until([&] { return heard.size() == 1; }));
  ASSERT_TRUE(plane_->order({kLive, "forward", false}));
  ASSERT_TRUE(plane_->order({kLive, "restart"}));
  ASSERT_TRUE(until([&] { return heard.size() == 3; }));
  EXPECT_EQ(heard[1].what, "forward");
  EXPECT_EQ(heard[1].forward, std::optional(false));
  EXPECT_EQ(heard[2].what, "restart");
  stop.emit(asio::cancellation_type::terminal);
  EXPECT_TRUE(until([&] { return ended.has_value(); }));

  for (size_t i = 0; i < OwnPlane::kOrdersMax; ++i) ASSERT_TRUE(plane_->order({kLive, "restart"}));
  EXPECT_EQ(plane_->order({kLive, "restart"}).error().code, Errc::too_many);
}

TEST_F(OwnPlaneTest, ASecondProcess_IsKeptOut) {
  auto second = OwnPlane::open(folder_.path() + "/state", RunnerId::trusted("orch-2"), clock_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().reason, "store_locked") << second.error().message;
}

TEST_F(OwnPlaneTest, ItsWatch_EndsWhenItIsCancelled) {
  asio::cancellation_signal stop;
  bool ended = false;
  asio::co_spawn(io_, plane_->run(), asio::bind_cancellation_slot(stop.slot(), [&](const std::exception_ptr& failed) {
                   EXPECT_FALSE(failed);
                   ended = true;
                 }));
  for (int i = 0; i < 5; ++i) io_.run_one_for(10ms);
  EXPECT_FALSE(ended);
  stop.emit(asio::cancellation_type::all);
  for (int i = 0; i < 500 && !ended; ++i) io_.run_one_for(10ms);
  EXPECT_TRUE(ended);
}

}  // namespace
}  // namespace weir::apps
