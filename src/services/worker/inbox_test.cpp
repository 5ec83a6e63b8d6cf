#include "weir/worker/inbox.hpp"

#include <gtest/gtest.h>

namespace weir::worker {
namespace {

Inbox::Said said(const std::string& id, event::Kind kind = event::Kind::detection) {
  return {CameraId::trusted("c"), {.event_id = id, .kind = kind}, {}};
}

TEST(Inbox, EventsAndActions_AreTakenInTheOrderOfTheCalls_AndTheFirstWakes) {
  Inbox inbox(10);
  EXPECT_EQ(inbox.put(said("1")), Inbox::Put::first);
  int done = 0;
  EXPECT_EQ(inbox.put([&] { ++done; }), Inbox::Put::waits);
  EXPECT_EQ(inbox.put(said("2")), Inbox::Put::waits);
  Inbox::Entries taken = inbox.take();
  ASSERT_EQ(taken.size(), 3u);
  EXPECT_EQ(std::get<Inbox::Said>(taken[0]).event.event_id, "1");
  std::get<Inbox::Action>(taken[1])();
  EXPECT_EQ(done, 1);
  EXPECT_EQ(std::get<Inbox::Said>(taken[2]).event.event_id, "2");
  EXPECT_TRUE(inbox.take().empty());
  EXPECT_EQ(inbox.put(said("3")), Inbox::Put::first);
}

TEST(Inbox, WhenItIsFull_AStatusStillFindsRoom_AndAnActionAlways) {
  Inbox inbox(2);
  inbox.put(said("1"));
  inbox.put(said("2"));
  EXPECT_EQ(inbox.put(said("3")), Inbox::Put::refused);
  EXPECT_EQ(inbox.put(said("4", event::Kind::status)), Inbox::Put::waits);
  EXPECT_EQ(inbox.put(said("5", event::Kind::status)), Inbox::Put::waits);
  EXPECT_EQ(inbox.put(said("6", event::Kind::status)), Inbox::Put::refused);
  EXPECT_EQ(inbox.put([] {}), Inbox::Put::waits);
  EXPECT_EQ(inbox.counters().queued, 4u);
  EXPECT_EQ(inbox.counters().dropped_for(Drop::inbox_full), 2u);
  EXPECT_EQ(inbox.take().size(), 5u);
  EXPECT_EQ(inbox.counters().queued, 0u);
  EXPECT_EQ(inbox.put(said("7")), Inbox::Put::first);
}

TEST(Inbox, OnceClosed_ItGivesWhatWaited_AndTakesNothingMore) {
  Inbox inbox(2);
  PublisherCounters counters;
  counters.published = 7;
  inbox.show(counters);
  inbox.put(said("1"));
  EXPECT_EQ(inbox.take(true).size(), 1u);
  EXPECT_EQ(inbox.put(said("2")), Inbox::Put::refused);
  EXPECT_EQ(inbox.put([] {}), Inbox::Put::refused);
  EXPECT_EQ(inbox.counters().published, 7u);
  EXPECT_EQ(inbox.counters().dropped_for(Drop::stopped), 1u);
  EXPECT_EQ(inbox.counters().dropped_for(Drop::inbox_full), 0u);
}

}  // namespace
}  // namespace weir::worker
