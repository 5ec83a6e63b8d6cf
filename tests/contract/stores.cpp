#include "stores.hpp"

#include "../../src/adapters/postgres/connection.hpp"
#include "../../src/adapters/sqlite/db.hpp"

namespace weir::test {

CameraId cam(int n) { return CameraId::trusted(fmt::format("c{}", n)); }
lease::Owner owner(const std::string& runner, const std::string& boot) {
  return {RunnerId::trusted(runner), BootId::trusted(boot)};
}
camera::Config camera_config(const CameraId& id, const std::string& tenant, const std::string& site) {
  camera::Config config;
  config.camera = id;
  config.tenant = TenantId::trusted(tenant);
  config.site = SiteId::trusted(site);
  config.rtsp_url = Secret("rtsp://user:secret@camera.example/stream");
  return config;
}

Stores::Stores(Kind kind) {
  if (kind == Kind::fake) {
    fake = std::make_unique<FakeStore>(wall_now);
    leases = fake.get();
    catalog = fake.get();
    events = fake.get();
    keys = fake.get();
  } else if (kind == Kind::sqlite) {
    auto opened = sqlite::SqliteStore::open({folder.path() + "/weir.db"});
    EXPECT_TRUE(opened) << (opened ? "" : opened.error().message);
    sqlite = *std::move(opened);
    leases = sqlite.get();
    catalog = &sqlite->catalog();
    events = sqlite.get();
    keys = sqlite.get();
  } else {
    auto server = PostgresServer::shared();
    if (!server) {
      EXPECT_EQ(server.error().reason, "no_postgres") << server.error().message;  // or it is there and does not start
      unavailable = server.error().message;
      return;
    }
    auto roles = (*server)->new_database_with_roles();
    EXPECT_TRUE(roles) << (roles ? "" : roles.error().message);
    database = roles->owner;
    EXPECT_TRUE(postgres::bring_up_to_date(Secret(database)));
    auto opened = postgres::PostgresStore::open({Secret(roles->plane)});
    EXPECT_TRUE(opened) << (opened ? "" : opened.error().message);
    postgres = *std::move(opened);
    leases = postgres.get();
    catalog = &postgres->catalog();
    events = postgres.get();
    keys = postgres.get();
  }
}

void Stores::furnish(int cameras) {
  ASSERT_TRUE(run(catalog->add_tenant({TenantId::trusted("t1"), "One"})));
  ASSERT_TRUE(run(catalog->add_site({SiteId::trusted("s1"), TenantId::trusted("t1"), "Site", {2, 2, 60}})));
  for (int n = 1; n <= cameras; ++n) ASSERT_TRUE(run(catalog->add_camera(camera_config(cam(n)))));
}

bool Stores::meddle(const char* sql) {
  if (sqlite) weir::sqlite::Db(folder.path() + "/weir.db", false).script(sql);
  if (postgres) weir::postgres::Connection(database, 2s, 2s).script(sql, 2s);
  return fake == nullptr;
}

lease::Answer Stores::ask(lease::Operation operation, const lease::Owner& who, lease::Ask what, Duration ttl) {
  auto answers = run(leases->apply({operation, who, ttl, {what}}));
  EXPECT_TRUE(answers) << (answers ? "" : answers.error().message);
  if (!answers) return {};
  EXPECT_EQ(answers->size(), 1u);
  return (*answers)[0];
}

}  // namespace weir::test
