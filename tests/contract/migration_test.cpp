// Stores that an older Weir has written are opened, and go on as if they had been written by this one; and the place in
// a database where a new one is made.
#include "stores.hpp"

#include "../../src/adapters/postgres/schema.hpp"
#include "../../src/adapters/sqlite/schema.hpp"

namespace weir::test {

namespace {

constexpr size_t kSqliteBefore = 2, kPostgresBefore = 3;  // the steps of the first Weir with events

// One camera that r1 holds, its lease run out, as that Weir wrote them.
constexpr const char* kRows[] = {
    "INSERT INTO tenants VALUES ('t1', 'One', 5)",
    "INSERT INTO sites VALUES ('s1', 't1', 'Site', 1, 1, 1, 0, 5)",
    R"sql(INSERT INTO cameras VALUES ('c1', 't1', 's1', true,
      '{"camera_uuid":"c1","tenant_id":"t1","site_id":"s1","rtsp_url":"rtsp://camera.example/x"}', 5, 7))sql",
    "INSERT INTO leases VALUES ('c1', 't1', 's1', true, 'r1', 'b1', 1099511627777, 1099511627777, 'k', -5, 6000000,"
    " false, false, '', 0, 5)",
    R"sql(INSERT INTO cameras VALUES ('c7', 't1', 's1', true,
      '{"camera_uuid":"c7","tenant_id":"t1","site_id":"s1","rtsp_url":"rtsp://camera.example","processing":"cluster"}',
      5, 7))sql",
    "INSERT INTO leases VALUES ('c7', 't1', 's1', false, '', '', 0, 0, '', 0, 0, true, false, '', 0, 5)",
};

void expect_usable(boost::asio::io_context& io, LeaseStore& leases, Catalog& catalog, EventLog& events) {
  auto camera = run(io, catalog.show_camera(cam(1), {}));
  ASSERT_TRUE(camera) << camera.error().message;
  EXPECT_EQ(camera->crashes, 0);
  EXPECT_EQ(camera->configured_at, WallTime(Duration(7)));
  EXPECT_EQ(*run(io, catalog.count_crash(cam(1), {})), 1);
  auto expired = run(io, leases.take_expired(10));
  ASSERT_TRUE(expired) << expired.error().message;
  ASSERT_EQ(expired->size(), 1u);
  EXPECT_EQ((*expired)[0].owner, owner("r1", "b1"));
  EXPECT_TRUE(run(io, catalog.add_camera(camera_config(cam(2)))));
  EXPECT_EQ(run(io, leases.show(cam(7), {}))->row.cluster.str(), "default");
  EXPECT_TRUE(run(io, leases.show(cam(1), {}))->row.cluster.empty());
  EXPECT_TRUE(run(io, events.announce({{"control.topic", "camera.created.t1.s1.c2", "e", "{}"}})));
  EXPECT_EQ(run(io, events.read(0, 10))->events.size(), 1u);
}

// The steps of the last Weir that noted the version whose expiry it had told, and nothing of a will but the death.
constexpr size_t kSqliteTold = 4, kPostgresTold = 5;
constexpr const char* kToldRows[] = {
    "INSERT INTO leases VALUES ('c1', 't1', 's1', true, 'r1', 'b1', 1099511627777, 1099511627777, 'k', -5, 6000000,"
    " false, false, '', 0, 5, 1099511627777)",
    "INSERT INTO leases VALUES ('c2', 't1', 's1', true, 'r1', 'b1', 1099511627778, 1099511627778, 'k', -5, 6000000,"
    " false, false, '', 0, 5, 1099511627776)",
    "INSERT INTO leases VALUES ('c3', 't1', 's1', true, 'r2', 'b2', 1099511627779, 1099511627775, '', -5, 6000000,"
    " true, false, '', 0, 5, 0)",
    "INSERT INTO boots VALUES ('r2', 'b2', 'hash', true, 5)",
};

void expect_nothing_told_twice(boost::asio::io_context& io, LeaseStore& leases) {
  auto expired = run(io, leases.take_expired(10));
  ASSERT_TRUE(expired) << expired.error().message;
  ASSERT_EQ(expired->size(), 1u);
  EXPECT_EQ((*expired)[0].subject, cam(2));
  auto again = run(io, leases.release_all(owner("r2", "b2"), "hash"));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_TRUE(again->empty());
}

}  // namespace

TEST(Migration, SqliteFileThatNotedExpiriesByVersion_GoesOnWithoutTellingThemAgain) {
  TempDir folder;
  std::string path = folder.path() + "/weir.db";
  {
    sqlite::Db db(path, false);
    sqlite::migrate(db, kSqliteTold);
    for (const char* sql : kToldRows) db.script(sql);
  }
  boost::asio::io_context io;
  auto store = sqlite::SqliteStore::open({path});
  ASSERT_TRUE(store) << store.error().message;
  expect_nothing_told_twice(io, **store);
}

TEST(Migration, PostgresDatabaseThatNotedExpiriesByVersion_GoesOnWithoutTellingThemAgain) {
  auto server = PostgresServer::shared();
  SKIP_WITHOUT_POSTGRES(server);
  auto url = (*server)->new_database();
  ASSERT_TRUE(url);
  {
    postgres::Connection connection(*url, 2s, 2s);
    postgres::migrate(connection, kPostgresTold);
    for (const char* sql : kToldRows) connection.script(sql, 2s);
  }
  boost::asio::io_context io;
  auto store = postgres::PostgresStore::open({Secret(*url)});
  ASSERT_TRUE(store) << store.error().message;
  expect_nothing_told_twice(io, **store);
}

TEST(Migration, SqliteFileOfAnOlderWeir_IsBroughtUpToDate) {
  TempDir folder;
  std::string path = folder.path() + "/weir.db";
  {
    sqlite::Db db(path, false);
    sqlite::migrate(db, kSqliteBefore);
    for (const char* sql : kRows) db.script(sql);
  }
  boost::asio::io_context io;
  auto store = sqlite::SqliteStore::open({path});
  ASSERT_TRUE(store) << store.error().message;
  expect_usable(io, **store, (*store)->catalog(), **store);
}

TEST(Migration, PostgresDatabaseOfAnOlderWeir_IsBroughtUpToDate) {
  auto server = PostgresServer::shared();
  SKIP_WITHOUT_POSTGRES(server);
  auto url = (*server)->new_database();
  ASSERT_TRUE(url);
  {
    postgres::Connection connection(*url, 2s, 2s);
    postgres::migrate(connection, kPostgresBefore);
    for (const char* sql : kRows) connection.script(sql, 2s);
  }
  boost::asio::io_context io;
  auto store = postgres::PostgresStore::open({Secret(*url)});
  ASSERT_TRUE(store) << store.error().message;
  expect_usable(io, **store, (*store)->catalog(), **store);
}

TEST(PostgresStore, SchemaThatTheUrlNames_IsTheOneThatIsUsed) {
  auto server = PostgresServer::shared();
  SKIP_WITHOUT_POSTGRES(server);
  auto url = (*server)->new_database();
  ASSERT_TRUE(url);
  postgres::Connection beside(*url, 2s, 2s);
  beside.script("CREATE SCHEMA apart", 2s);
  std::string options = (url->find('?') == url->npos ? "?" : "&") + std::string("options=-csearch_path%3Dapart");
  auto store = postgres::PostgresStore::open({Secret(*url + options)});
  ASSERT_TRUE(store) << store.error().message;
  boost::asio::io_context io;
  auto added = run(io, (*store)->catalog().add_tenant({TenantId::trusted("t1"), "One"}));
  ASSERT_TRUE(added) << added.error().message;
  EXPECT_EQ(beside.script("SELECT tenant_id FROM apart.tenants", 2s).text(0, 0), "t1");
  EXPECT_THROW(beside.script("SELECT FROM public.tenants", 2s), postgres::PgFailure);
}

}  // namespace weir::test
