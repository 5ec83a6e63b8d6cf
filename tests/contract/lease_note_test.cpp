// What an owner says of its lease is kept for its tenure, and changes nothing of the lease.
#include "lease_store.hpp"

namespace weir::test {
namespace {

class LeaseNoteContract : public LeaseStoreContract {
 protected:
  LeaseView note(LeaseWord word, const TenantId& tenant = {}) { return *stores.run(stores.leases->note(word, tenant)); }
  static LeaseWord word(int camera, Version grant) { return {.subject = cam(camera), .grant = grant}; }
  static LeaseWord heartbeat(int camera, Version grant, boost::json::object stats) {
    LeaseWord out = word(camera, grant);
    out.heartbeat = true;
    out.stats = std::move(stats);
    return out;
  }
};
INSTANTIATE_TEST_SUITE_P(Fake, LeaseNoteContract, testing::Values(Kind::fake));
INSTANTIATE_TEST_SUITE_P(Sqlite, LeaseNoteContract, testing::Values(Kind::sqlite));
INSTANTIATE_TEST_SUITE_P(Postgres, LeaseNoteContract, testing::Values(Kind::postgres));

TEST_P(LeaseNoteContract, EachWord_ChangesWhatItNames) {
  auto got = acquire(a, 1);
  EXPECT_EQ(show(1).note, LeaseNote{});
  LeaseWord first = word(1, got.grant);
  first.shard = "shard-1";
  first.config_version = "c'1";
  first.zone_version = "z1";
  EXPECT_EQ(note(first).note.shard, "shard-1");
  EXPECT_EQ(show(1).note.heard, WallTime{}) << "no heartbeat yet";
  WallTime before = wall_now();
  LeaseView heard = note(heartbeat(1, got.grant, {{"fps", 5}, {"text", "a'b\"ü"}}));
  EXPECT_EQ(heard.note.shard, "shard-1");
  EXPECT_EQ(heard.note.config_version, "c'1");
  EXPECT_EQ(heard.note.zone_version, "z1");
  EXPECT_EQ(heard.note.stats, (boost::json::object{{"fps", 5}, {"text", "a'b\"ü"}}));
  EXPECT_GE(heard.note.heard, before - 1s);
  LeaseWord bare = word(1, got.grant);
  bare.heartbeat = true;
  LeaseView again = note(bare);
  EXPECT_GE(again.note.heard, heard.note.heard);
  EXPECT_EQ(again.note.stats, heard.note.stats) << "a heartbeat without statistics leaves those of the last";
  EXPECT_EQ(show(1).note, again.note);
  auto listed = *stores.run(stores.leases->list({}));
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_EQ(listed[0].note, again.note);
}

TEST_P(LeaseNoteContract, Words_LeaveTheLeaseAsItIs) {
  auto got = acquire(a, 1);
  lease::LeaseRow before = show(1).row;
  LeaseView after = note(heartbeat(1, got.grant, {}));
  EXPECT_EQ(after.row, before) << "nothing was renewed";
  EXPECT_EQ(renew(a, 1, got.version).outcome, Outcome::renewed);
}

TEST_P(LeaseNoteContract, Note_EndsWithItsTenure_AndSurvivesRenewalAndRotation) {
  auto got = acquire(a, 1);
  note(heartbeat(1, got.grant, {{"n", 1}}));
  auto rotated = rotate(a, 1, got.version, "r");
  EXPECT_EQ(renew(a, 1, rotated.version).outcome, Outcome::renewed);
  EXPECT_EQ(show(1).note.stats, (boost::json::object{{"n", 1}}));
  ASSERT_EQ(release(a, 1, rotated.version).outcome, Outcome::released);
  EXPECT_EQ(note(heartbeat(1, got.grant, {{"n", 2}})).note.stats, (boost::json::object{{"n", 1}})) << "it was over";
  auto next = acquire(b, 1, "k2");
  EXPECT_EQ(show(1).note, LeaseNote{});
  LeaseView late = note(heartbeat(1, got.grant, {{"n", 3}}));
  EXPECT_EQ(late.row.grant, next.grant) << "the answer says who has it now";
  EXPECT_EQ(late.note, LeaseNote{});
  note(heartbeat(1, next.grant, {{"n", 4}}));
  EXPECT_EQ(show(1).note.stats, (boost::json::object{{"n", 4}}));
}

TEST_P(LeaseNoteContract, AnotherTenantsLease_AndAnUnknownOne_AreNotFound) {
  auto got = acquire(a, 1);
  auto foreign = stores.run(stores.leases->note(heartbeat(1, got.grant, {{"n", 1}}), TenantId::trusted("t2")));
  ASSERT_FALSE(foreign);
  EXPECT_EQ(foreign.error().code, Errc::not_found);
  EXPECT_EQ(show(1).note, LeaseNote{});
  EXPECT_FALSE(stores.run(stores.leases->note(heartbeat(99, got.grant, {}), {})));
}

}  // namespace
}  // namespace weir::test
