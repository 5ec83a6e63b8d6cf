#include "weir/cluster/link.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace weir::cluster {
namespace {

const Instant kNow{1000s};

// A link with what it asked for since it was last looked at, in words.
struct Talk {
  Link link = {};
  Instant now = kNow;
  LinkPolicy policy = {};
  std::string said = {};

  Talk& feed(const LinkEvent& event, double draw = 0) {
    LinkStep next = step(link, event, now, draw, policy);
    link = next.next;
    for (const LinkAction& each : next.actions) {
      if (const auto* tell = std::get_if<Tell>(&each)) said += std::string(tell->event.substr(7)) + " ";
      if (std::holds_alternative<Dial>(each)) said += "DIAL ";
      if (std::holds_alternative<HangUp>(each)) said += "HANGUP ";
      if (std::holds_alternative<AskState>(each)) said += "ASK ";
    }
    return *this;
  }
  Talk& pass(Duration d) {
    now += d;
    return *this;
  }
  std::string take() { return std::exchange(said, {}); }
};

Talk online() {
  Talk talk;
  talk.feed(Begun{}).feed(Opened{}).feed(Reported{}).take();
  return talk;
}

TEST(Link, IsOnlineAfterItsFirstStateReport) {
  Talk talk;
  EXPECT_EQ(talk.feed(Begun{}).take(), "connecting DIAL ");
  EXPECT_EQ(talk.link.state, LinkState::connecting);
  EXPECT_EQ(talk.feed(Opened{}).take(), "connected ASK ");
  EXPECT_EQ(talk.link.state, LinkState::connecting);
  EXPECT_EQ(talk.feed(Reported{}).take(), "online ");
  EXPECT_EQ(talk.link.state, LinkState::online);
  EXPECT_EQ(talk.feed(Reported{}).take(), "");
}

TEST(Link, ReportsKeepItOnline_AndSilenceOfTenSecondsEndsIt) {
  Talk talk = online();
  for (int n = 0; n < 20; ++n) talk.pass(9s).feed(Reported{}).feed(Late{});
  EXPECT_EQ(talk.take(), "");
  EXPECT_EQ(talk.pass(10s - 1us).feed(Late{}).take(), "");
  EXPECT_EQ(talk.pass(1us).feed(Late{}).take(), "HANGUP offline disconnected ");
  EXPECT_EQ(talk.link.state, LinkState::offline);
  EXPECT_EQ(talk.link.due, talk.now + 1s);
  EXPECT_EQ(talk.feed(Reported{}).take(), "") << "a report that comes too late is of a connection that is gone";
  EXPECT_EQ(talk.pass(1s).feed(Late{}).take(), "connecting DIAL ");
  EXPECT_EQ(talk.link.state, LinkState::reconnecting);
  EXPECT_EQ(talk.feed(Opened{}).feed(Reported{}).take(), "connected ASK online ");
  EXPECT_EQ(talk.link.state, LinkState::online);
}

TEST(Link, EndOfTheSocket_ReconnectsAfterAPause) {
  for (bool error : {true, false}) {
    Talk talk = online();
    EXPECT_EQ(talk.feed(Broken{"reset by peer", error}).take(),
              error ? "websocket_error offline disconnected " : "offline disconnected ");
    EXPECT_EQ(talk.link.state, LinkState::reconnecting);
    EXPECT_EQ(talk.feed(Late{}).take(), "") << "not before the pause is over";
    EXPECT_EQ(talk.pass(1s).feed(Late{}).take(), "connecting DIAL ");
  }
}

TEST(Link, PausesGrowToTenSeconds_AndNeverBeyond) {
  for (double draw : {0.0, 0.999999}) {
    Talk talk;
    talk.feed(Begun{});
    for (Duration pause : {1s, 2s, 4s, 8s, 8s, 8s}) {
      talk.feed(Broken{"refused"}, draw);
      EXPECT_EQ(talk.link.state, LinkState::reconnecting);
      EXPECT_GE(talk.link.due - talk.now, pause);
      EXPECT_LE(talk.link.due - talk.now, pause + 2s);
      talk.now = talk.link.due;
      talk.feed(Late{});
    }
  }
}

TEST(Link, OnlyAConnectionThatLasted_MakesThePauseShortAgain) {
  for (Duration lasted : {1s, 10s}) {
    Talk talk;
    talk.feed(Begun{});
    for (int n = 0; n < 3; ++n) {
      talk.feed(Broken{"refused"});
      talk.now = talk.link.due;
      talk.feed(Late{});
    }
    talk.feed(Opened{}).feed(Reported{}).pass(lasted).feed(Reported{}).feed(Broken{"gone"});
    EXPECT_EQ(talk.link.due - talk.now, lasted < 10s ? 8s : 1s);
  }
}

TEST(Link, DialWithoutAnAnswer_AndSocketWithoutAReport_AreHungUp) {
  Talk talk;
  talk.feed(Begun{}).take();
  EXPECT_EQ(talk.pass(10s).feed(Late{}).take(), "HANGUP websocket_error ");
  EXPECT_EQ(talk.link.state, LinkState::reconnecting);
  talk.now = talk.link.due;
  talk.feed(Late{}).feed(Opened{}).take();
  EXPECT_EQ(talk.pass(10s).feed(Late{}).take(), "HANGUP disconnected ");
  EXPECT_EQ(talk.link.state, LinkState::reconnecting);
}

TEST(Link, Closed_EndsInEveryState_UntilItBeginsAgain) {
  Talk talk = online();
  EXPECT_EQ(talk.feed(Closed{}).take(), "HANGUP offline disconnected ");
  EXPECT_EQ(talk.link.state, LinkState::closed);
  EXPECT_EQ(talk.link.due, Instant::max());
  EXPECT_EQ(talk.pass(1h).feed(Late{}).feed(Opened{}).feed(Reported{}).feed(Broken{"x"}).feed(Closed{}).take(), "");
  EXPECT_EQ(talk.feed(Begun{}).take(), "connecting DIAL ");
}

// Whatever comes in whatever order: one socket at most, online only with an open one, and always a time to come back.
TEST(Link, KeepsItsPromises_ForAnyEvents) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    std::mt19937 random(seed);
    auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    Talk talk;
    bool socket = false, told_online = false;
    for (int n = 0; n < 200; ++n) {
      talk.pass(std::chrono::milliseconds(below(6000)));
      const std::vector<LinkEvent> events = {Begun{}, Opened{}, Opened{}, Reported{}, Reported{}, Reported{},
                                             Broken{"x", below(2) == 0}, Late{}, Late{}, Closed{}};
      LinkEvent event = events[static_cast<size_t>(below(10))];
      if (std::holds_alternative<Closed>(event) && below(10) != 0) event = Late{};
      if (std::holds_alternative<Broken>(event)) socket = false;
      LinkStep next = step(talk.link, event, talk.now, below(1000) / 1000.0, talk.policy);
      for (const LinkAction& each : next.actions) {
        if (std::holds_alternative<HangUp>(each)) {
          ASSERT_TRUE(socket) << seed;
          socket = false;
        }
        if (std::holds_alternative<Dial>(each)) {
          ASSERT_FALSE(socket) << seed << ": a second socket";
          socket = true;
        }
        const auto* tell = std::get_if<Tell>(&each);
        if (tell == nullptr) continue;
        bool comes = tell->event == "worker:online", goes = tell->event == "worker:offline";
        ASSERT_FALSE(comes && told_online) << seed;
        ASSERT_FALSE(goes && !told_online) << seed;
        told_online = comes || (told_online && !goes);
      }
      talk.link = next.next;
      ASSERT_EQ(talk.link.state == LinkState::online, told_online) << seed;
      ASSERT_EQ(talk.link.socket != Link::Socket::none, socket) << seed;
      ASSERT_TRUE(!told_online || talk.link.socket == Link::Socket::open) << seed;
      bool closed = talk.link.state == LinkState::closed;
      ASSERT_TRUE(closed ? talk.link.due == Instant::max() : talk.link.due <= talk.now + 10s) << seed;
    }
  }
}

}  // namespace
}  // namespace weir::cluster
