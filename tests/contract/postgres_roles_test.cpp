// What the roles of deploy/postgres/roles.sql may do, beside everything that the contract suites do as weir_plane.
#include "stores.hpp"

#include "../../src/adapters/postgres/schema.hpp"

namespace weir::test {

namespace {

class PostgresRoles : public ::testing::Test {
 protected:
  void SetUp() override {
    auto server = PostgresServer::shared();
    SKIP_WITHOUT_POSTGRES(server);
    auto made = (*server)->new_database_with_roles();
    ASSERT_TRUE(made) << made.error().message;
    roles_ = *made;
  }
  Result<std::unique_ptr<postgres::PostgresStore>> open() {
    return postgres::PostgresStore::open({.url = Secret(roles_.plane), .pool_size = 1});
  }
  static std::string refusal(const std::string& url, const std::string& sql) {
    try {
      postgres::Connection(url, 2s, 2s).script(sql, 2s);
    } catch (const postgres::PgFailure& failure) {
      return failure.sqlstate;
    }
    return "done";
  }
  PostgresServer::Roles roles_;
};

}  // namespace

TEST_F(PostgresRoles, AControlPlanesRole_IsToldWhoMustMakeTheTables_AndServesOnceTheyAreThere) {
  auto early = open();
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().reason, "old_schema");
  EXPECT_NE(early.error().message.find("weir store migrate"), std::string::npos) << early.error().message;
  auto steps = postgres::bring_up_to_date(Secret(roles_.owner));
  ASSERT_TRUE(steps) << steps.error().message;
  EXPECT_EQ(steps->before, 0);
  EXPECT_EQ(steps->now, postgres::newest_step());
  boost::asio::io_context io;
  auto store = open();
  ASSERT_TRUE(store) << store.error().message;
  auto pinged = run(io, (*store)->catalog().ping());
  EXPECT_TRUE(pinged) << pinged.error().message;
  EXPECT_EQ(postgres::bring_up_to_date(Secret(roles_.owner))->before, steps->now);
}

TEST_F(PostgresRoles, NoneButTheOwner_ChangesTables_AndTheBackupsRoleChangesNothingAtAll) {
  ASSERT_TRUE(postgres::bring_up_to_date(Secret(roles_.owner)));
  for (const std::string& url : {roles_.plane, roles_.backup}) {
    for (const char* sql : {"CREATE TABLE mine()", "DROP TABLE leases", "ALTER TABLE leases ADD COLUMN mine int",
                            "TRUNCATE leases", "CREATE SCHEMA mine", "CREATE TEMPORARY TABLE mine()"})
      EXPECT_EQ(refusal(url, sql), postgres::kMayNot) << url << ": " << sql;
  }
  EXPECT_EQ(refusal(roles_.plane, "UPDATE sites SET tokens = 1"), "done");
  for (const char* sql : {"UPDATE sites SET tokens = 1", "DELETE FROM leases", "SELECT nextval('lease_counter')",
                          "SELECT weir_open_epoch(1)"})
    EXPECT_EQ(refusal(roles_.backup, sql), postgres::kMayNot) << sql;
  auto copy = postgres::read_store(Secret(roles_.backup));
  EXPECT_TRUE(copy) << copy.error().message;
}

}  // namespace weir::test
