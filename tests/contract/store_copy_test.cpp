// What a store holds can be read while it is used, carried into the other kind, and comes back the same.
#include "stores.hpp"

#include "../../src/adapters/postgres/connection.hpp"
#include "../../src/adapters/sqlite/schema.hpp"

#include "weir/postgres/copy.hpp"
#include "weir/sqlite/copy.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <set>

namespace weir::test {

namespace {

using Names = std::set<std::string>;

// What a copy leaves out on purpose: events, and what a new store makes anew.
const Names kLeftOut = {"events", "event_state", "store_state", "expiry_state", "weir_schema", "sqlite_sequence",
                       "pictures", "lease_notes"};

Names copied_or_left_out() {
  Names names = kLeftOut;
  for (std::string_view each : kStoreTables) names.emplace(each);
  return names;
}

// Rows stand in no order, and a whole number may be written with a point.
StoreContents comparable(StoreContents contents) {
  for (StoreTable& table : contents.tables) {
    for (auto& row : table.rows)
      for (std::string& cell : row)
        if (cell.size() > 2 && cell.ends_with(".0")) cell.resize(cell.size() - 2);
    std::ranges::sort(table.rows);
  }
  return contents;
}

// Something in every table.
void fill(Stores& stores) {
  stores.furnish(4);
  auto granted = stores.ask(lease::Operation::acquire, owner("r1"), {.subject = cam(1), .key = "k1"});
  ASSERT_EQ(granted.outcome, lease::Outcome::granted);
  stores.ask(lease::Operation::acquire, owner("r2", "b2"), {.subject = cam(2), .key = "k'\"\\{},ü"});
  Runner runner{.id = RunnerId::trusted("r1")};
  runner.boot = BootId::trusted("b1");
  ASSERT_TRUE(stores.run(stores.catalog->register_runner(runner, "will", {})));
  ASSERT_TRUE(stores.run(stores.leases->revoke(cam(2), {})));
  ASSERT_TRUE(stores.run(stores.leases->consume(SiteId::trusted("s1"), {}, BudgetUse{cam(1), granted.grant})));
  ASSERT_TRUE(stores.run(stores.keys->add_key({.id = KeyId::trusted("key1"), .name = "n"}, "hash1")));
  ApiKey of_tenant{.id = KeyId::trusted("key2"), .tenant = TenantId::trusted("t1")};
  ASSERT_TRUE(stores.run(stores.keys->add_key(of_tenant, "hash2")));
  StreamRecord stream{.id = SubjectId::trusted("live"), .tenant = TenantId::trusted("t1"), .site = SiteId::trusted("s1")};
  stream.wishes = {{"forward", true}};
  ASSERT_TRUE(stores.run(stores.catalog->put_stream(stream)));
  ModelRecord model{.id = 7, .tenant = TenantId::trusted("t1"), .name = "yolo", .metadata = {{"a", "b"}}};
  ASSERT_TRUE(stores.run(stores.catalog->put_model(model, Put::add)));
  PlaylistRecord playlist{PlaylistId::trusted("p"), TenantId::trusted("t1"), "", 7};
  ASSERT_TRUE(stores.run(stores.catalog->put_playlist(playlist, Put::add)));
  DisplayRecord display{DisplayId::trusted("d"), TenantId::trusted("t1"), "", cam(3), PlaylistId::trusted("p")};
  ASSERT_TRUE(stores.run(stores.catalog->put_display(display, Put::add)));
  DisplayRecord bare{DisplayId::trusted("bare"), TenantId::trusted("t1")};
  ASSERT_TRUE(stores.run(stores.catalog->put_display(bare, Put::add)));
  SubscriptionRecord subscription{SubscriptionId::trusted("d;c4"), TenantId::trusted("t1"), cam(4), 7};
  ASSERT_TRUE(stores.run(stores.catalog->put_subscription(subscription)));
}

void expect_same(const StoreContents& a, const StoreContents& b) {
  StoreContents left = comparable(a), right = comparable(b);
  ASSERT_EQ(left.tables.size(), right.tables.size());
  for (size_t i = 0; i < left.tables.size(); ++i) {
    EXPECT_EQ(left.tables[i].columns, right.tables[i].columns) << left.tables[i].name;
    EXPECT_EQ(left.tables[i].rows, right.tables[i].rows) << left.tables[i].name;
  }
}

}  // namespace

TEST(StoreCopy, EveryTableOfSqlite_IsCopied_OrLeftOutOnPurpose) {
  TempDir folder;
  sqlite::Db db(folder.path() + "/weir.db", false);
  sqlite::migrate(db);
  sqlite::Query q = db.query("SELECT name FROM sqlite_schema WHERE type = 'table'");
  Names known = copied_or_left_out();
  while (q.next()) EXPECT_TRUE(known.contains(q.text(0))) << q.text(0);
}

TEST(StoreCopy, EveryTableOfPostgres_IsCopied_OrLeftOutOnPurpose) {
  Stores stores(Kind::postgres);
  if (!stores.unavailable.empty()) GTEST_SKIP() << stores.unavailable;
  postgres::Connection c(stores.database, 2s, 2s);
  postgres::Rows rows =
      c.script("SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace", 2s);
  ASSERT_GT(rows.size(), 0);
  Names known = copied_or_left_out();
  for (int i = 0; i < rows.size(); ++i) EXPECT_TRUE(known.contains(rows.text(i, 0))) << rows.text(i, 0);
}

TEST(StoreCopy, ContentsOfSqlite_ThroughPostgresAndABackup_AreTheSame) {
  Stores stores(Kind::sqlite);
  Stores other(Kind::postgres);
  if (!other.unavailable.empty()) GTEST_SKIP() << other.unavailable;
  fill(stores);
  auto read = sqlite::read_store(stores.folder.path() + "/weir.db");  // the store is open
  ASSERT_TRUE(read) << read.error().message;
  for (std::string_view name : kStoreTables) EXPECT_GT(read->contents.count(name), 0u) << name;
  EXPECT_FALSE(read->seal);

  other.postgres.reset();
  {
    auto claimed = postgres::ClaimedDatabase::claim(Secret(other.database));
    ASSERT_TRUE(claimed) << claimed.error().message;
    auto empty = claimed->contents();
    ASSERT_TRUE(empty) << empty.error().message;
    EXPECT_TRUE(empty->empty());
    Status replaced = claimed->replace(read->contents);
    ASSERT_TRUE(replaced) << replaced.error().message;
    Status committed = claimed->commit();
    ASSERT_TRUE(committed) << committed.error().message;
  }
  auto carried = postgres::read_store(Secret(other.database));
  ASSERT_TRUE(carried) << carried.error().message;
  expect_same(read->contents, *carried);
  EXPECT_EQ(read->contents.state, carried->state);

  std::string file = stores.folder.path() + "/copy.backup";
  Status written = sqlite::write_backup(file, *carried, "it is a backup");
  ASSERT_TRUE(written) << written.error().message;
  struct stat about {};
  ASSERT_EQ(::stat(file.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
  EXPECT_EQ(sqlite::write_backup(file, *carried, "another").error().reason, "file_exists");
  auto back = sqlite::read_store(file);
  ASSERT_TRUE(back) << back.error().message;
  expect_same(read->contents, back->contents);
  EXPECT_EQ(read->contents.state, back->contents.state);

  // The copy works as a store: a runner that held a camera goes on with it.
  auto opened = postgres::PostgresStore::open({Secret(other.database)});
  ASSERT_TRUE(opened) << opened.error().message;
  auto shown = other.run((*opened)->show(cam(1), {}));
  ASSERT_TRUE(shown) << shown.error().message;
  EXPECT_EQ(shown->row.owner, owner("r1"));
  other.leases = opened->get();
  lease::Ask mine{.subject = cam(1), .version = shown->row.version}, free{.subject = cam(3), .key = "k"};
  EXPECT_EQ(other.ask(lease::Operation::renew, owner("r1"), mine).outcome, lease::Outcome::renewed);
  EXPECT_GT(other.ask(lease::Operation::acquire, owner("r9"), free).version,
            lease::Version::make(carried->state.epoch, carried->state.counter));
}

TEST(StoreCopy, PostgresThatAControlPlaneTicks_IsNotClaimed) {
  Stores stores(Kind::postgres);
  if (!stores.unavailable.empty()) GTEST_SKIP() << stores.unavailable;
  std::atomic<bool> over = false;
  std::thread ticking([&] {
    boost::asio::io_context io;
    while (!over) EXPECT_TRUE(run(io, stores.leases->tick()));
  });
  auto claimed = postgres::ClaimedDatabase::claim(Secret(stores.database));
  over = true;
  ticking.join();
  ASSERT_FALSE(claimed);
  EXPECT_EQ(claimed.error().reason, "store_in_use");
}

TEST(StoreCopy, SqliteFileInUse_IsNotClaimed_AndASealedOneIsNotServed) {
  TempDir folder;
  std::string path = folder.path() + "/weir.db";
  {
    auto store = sqlite::SqliteStore::open({path});
    ASSERT_TRUE(store) << store.error().message;
    EXPECT_EQ(sqlite::ClaimedFile::claim(path).error().reason, "store_locked");
  }
  {
    auto claimed = sqlite::ClaimedFile::claim(path);
    ASSERT_TRUE(claimed) << claimed.error().message;
    ASSERT_TRUE(claimed->seal({"it was moved to the moon", "moon"}));
  }
  auto refused = sqlite::SqliteStore::open({path});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("it was moved to the moon"), std::string::npos) << refused.error().message;
  {
    // What an older Weir looks at: a schema beyond any that it knows.
    sqlite::Db db(path, true);
    sqlite::Query q = db.query("PRAGMA user_version");
    ASSERT_TRUE(q.next());
    EXPECT_GT(q.integer(0), 1'000'000);
  }
  EXPECT_EQ(sqlite::read_store(path)->seal->moved_to, "moon");
  {
    auto claimed = sqlite::ClaimedFile::claim(path);
    ASSERT_TRUE(claimed && claimed->unseal());
  }
  EXPECT_TRUE(sqlite::SqliteStore::open({path}));
}

TEST(StoreCopy, SqliteFileThatIsReplaced_IsKept_AlsoADamagedOne) {
  Stores stores(Kind::sqlite);
  fill(stores);
  std::string source = stores.folder.path() + "/weir.db", path = stores.folder.path() + "/other.db";
  auto contents = sqlite::read_store(source);
  ASSERT_TRUE(contents) << contents.error().message;
  std::ofstream(path) << "this is no database, whatever its name says";
  {
    auto claimed = sqlite::ClaimedFile::claim(path);
    ASSERT_TRUE(claimed) << claimed.error().message;
    EXPECT_EQ(sqlite::read_store(path).error().reason, "store_unreadable");
    Status replaced = claimed->replace(contents->contents, path + ".kept");
    ASSERT_TRUE(replaced) << replaced.error().message;
  }
  EXPECT_TRUE(text_in_file(path + ".kept").starts_with("this is no database"));
  {
    auto opened = sqlite::SqliteStore::open({path});
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_TRUE(stores.run((*opened)->catalog().add_tenant({TenantId::trusted("t2"), "Two"})));
  }
  {
    auto claimed = sqlite::ClaimedFile::claim(path);
    ASSERT_TRUE(claimed && claimed->replace(contents->contents, path + ".second"));
  }
  EXPECT_EQ(sqlite::read_store(path)->contents.count("tenants"), 1u);
  EXPECT_EQ(sqlite::read_store(path + ".second")->contents.count("tenants"), 2u);
}

TEST(StoreCopy, SqliteFileOfAnOlderWeir_IsReadAsThisOneWouldWriteIt) {
  TempDir folder;
  std::string path = folder.path() + "/weir.db";
  {
    sqlite::Db db(path, false);
    sqlite::migrate(db, 2);
    db.script("INSERT INTO tenants VALUES ('t1', 'One', 5); INSERT INTO boots VALUES ('r2', 'b2', 'hash', 1, 5)");
  }
  auto read = sqlite::read_store(path);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->contents.tables.size(), kStoreTables.size());
  auto boots = std::ranges::find(read->contents.tables, "boots", &StoreTable::name);
  EXPECT_EQ(boots->rows, (std::vector<std::vector<std::string>>{{"r2", "b2", "hash", "1", "5", "0"}}));
  EXPECT_EQ(boots->columns.back(), "will_after");
}

}  // namespace weir::test
