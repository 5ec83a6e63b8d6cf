#include "outbox.hpp"

#include <fmt/format.h>

#include <gtest/gtest.h>

namespace weir::rabbitmq {
namespace {

using Words = std::vector<std::string>;
const Error kLost{Errc::unavailable, "lost", "the connection is lost"};

// An outbox with a broker's end: what was written stands in `wire`.
struct Desk {
  PublicationPtr publish(std::initializer_list<std::string> ids) {
    auto publication = std::make_shared<Publication>();
    for (const std::string& id : ids) publication->events.push_back({.topic = "t", .routing_key = "k", .event_id = id});
    std::string name = publication->events.front().event_id;
    publication->answer = [this, name](const Result<std::vector<Confirmation>>& said) {
      answers.push_back(said ? fmt::format("{}:{}", name, said->size()) : name + ":" + said.error().reason);
    };
    outbox.add(publication);
    return publication;
  }
  void write_all() {
    while (const Outbox::Item* item = outbox.next()) {
      wire.push_back(item->event().event_id);
      outbox.written();
    }
  }
  Outbox outbox;
  Words wire, answers;
};

TEST(Outbox, ConfirmationsInAnyOrder_AnswerEachPublicationOnce) {
  Desk desk;
  desk.publish({"a", "b", "c"});
  desk.publish({"d"});
  desk.write_all();
  EXPECT_EQ(desk.wire, (Words{"a", "b", "c", "d"}));
  desk.outbox.confirmed(3, false);
  desk.outbox.confirmed(4, false);
  EXPECT_EQ(desk.answers, (Words{"d:1"}));
  desk.outbox.confirmed(3, false);  // a second time
  desk.outbox.confirmed(2, true);
  EXPECT_EQ(desk.answers, (Words{"d:1", "a:3"}));
  EXPECT_TRUE(desk.outbox.empty());
}

TEST(Outbox, AllUpToANumber_IncludesThoseOfSeveralPublications) {
  Desk desk;
  desk.publish({"a", "b"});
  desk.publish({"c", "d"});
  desk.write_all();
  desk.outbox.confirmed(3, true);
  EXPECT_EQ(desk.answers, (Words{"a:2"}));
  EXPECT_EQ(desk.outbox.unconfirmed(), 1u);
}

TEST(Outbox, AfterARefusal_EverythingFromTheLowestUnconfirmedOnIsWrittenAgain_InOrder) {
  Desk desk;
  desk.publish({"a", "b", "c", "d"});
  desk.write_all();
  desk.publish({"e"});
  desk.outbox.confirmed(1, false);
  desk.outbox.confirmed(3, false);
  EXPECT_EQ(desk.outbox.refused(4, false), 1);
  desk.wire.clear();
  desk.write_all();
  EXPECT_EQ(desk.wire, (Words{"b", "d", "e"}));
  EXPECT_EQ(desk.outbox.refused(2, true), 0) << "an answer to the earlier writing";
  desk.outbox.confirmed(4, true);
  EXPECT_TRUE(desk.answers.empty()) << "an answer to the earlier writing";
  desk.outbox.confirmed(7, true);
  EXPECT_EQ(desk.answers, (Words{"a:4", "e:1"}));
}

TEST(Outbox, Refusals_AreCountedForThePublicationThatMeetsThem) {
  Desk desk;
  desk.publish({"a"});
  desk.publish({"b"});
  desk.write_all();
  EXPECT_EQ(desk.outbox.refused(2, false), 1);
  desk.write_all();
  EXPECT_EQ(desk.outbox.refused(4, true), 2);
  desk.write_all();
  EXPECT_EQ(desk.outbox.refused(5, false), 2) << "the second one of a";
}

TEST(Outbox, AFailedPublication_IsAnsweredOnce_AndNothingMoreOfItIsWritten) {
  Desk desk;
  auto first = desk.publish({"a", "b"});
  desk.publish({"c"});
  ASSERT_NE(desk.outbox.next(), nullptr);
  desk.outbox.written();
  desk.outbox.fail(*first, kLost);
  desk.outbox.fail(*first, kLost);
  desk.write_all();
  EXPECT_EQ(desk.wire, (Words{"c"}));
  desk.outbox.confirmed(2, true);
  EXPECT_EQ(desk.answers, (Words{"a:lost", "c:1"}));
}

TEST(Outbox, ALostConnection_FailsAll_AndTheNextOneCountsAnew) {
  Desk desk;
  desk.publish({"a"});
  desk.publish({"b"});
  desk.write_all();
  desk.publish({"c"});
  desk.outbox.fail_all(kLost);
  desk.outbox.begin_again();
  EXPECT_EQ(desk.answers, (Words{"a:lost", "b:lost", "c:lost"}));
  desk.publish({"d"});
  desk.write_all();
  EXPECT_EQ(desk.wire.back(), "d");
  desk.outbox.confirmed(1, false);
  EXPECT_EQ(desk.answers.back(), "d:1");
}

}  // namespace
}  // namespace weir::rabbitmq
