// What the embedded store keeps in memory agrees with its file, also when somebody else is in the file.
#include "stores.hpp"

#include "../../src/adapters/sqlite/db.hpp"

#include "weir/sqlite/core.hpp"

namespace weir::test {

TEST(SqliteCore, GroupThatCannotBegin_TakesNothingBackOfTheGroupBefore) {
  TempDir folder;
  std::string path = folder.path() + "/weir.db";
  sqlite::Core core(path, {}, wall_now);
  core.begin();
  ASSERT_TRUE(core.add_tenant({TenantId::trusted("t1"), ""}));
  ASSERT_TRUE(core.add_site({SiteId::trusted("s1"), TenantId::trusted("t1"), ""}));
  for (int n = 1; n <= 3; ++n) ASSERT_TRUE(core.add_camera(camera_config(cam(n))));
  core.commit();
  auto grant = [&](int n) {
    core.begin();
    auto answers = core.apply({lease::Operation::acquire, owner("runner-a"), 10s, {{cam(n), {}, false, "k"}}});
    core.commit();
    EXPECT_EQ(answers[0].outcome, lease::Outcome::granted);
    return answers[0].version;
  };
  lease::Version one = grant(1), two = grant(2);
  EXPECT_GT(two, one);
  const lease::StoreState before = core.state();
  {
    sqlite::Db other(path, false);  // somebody's VACUUM
    other.script("BEGIN IMMEDIATE");
    EXPECT_THROW(core.begin(), std::runtime_error);
    EXPECT_NO_THROW(core.rollback());
    EXPECT_TRUE(core.state() == before) << "the counter is " << core.state().counter << ", not " << before.counter;
  }
  EXPECT_GT(grant(3), two);
}

}  // namespace weir::test
