// What every store promises about API keys, over the fake, SQLite and a real PostgreSQL.
#include "stores.hpp"

namespace weir::test {

class KeysContract : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    if (!stores.unavailable.empty()) GTEST_SKIP() << stores.unavailable;
    for (const TenantId& tenant : {t1, t2}) ASSERT_TRUE(run(stores.catalog->add_tenant({tenant, "A tenant"})));
  }
  template <class T>
  T run(boost::asio::awaitable<T> what) {
    return stores.run(std::move(what));
  }
  static ApiKey key(const std::string& id, const TenantId& tenant = {}) {
    return {KeyId::trusted(id), "The " + id, "runner", "runner-" + id, tenant};
  }
  Keys& k() { return *stores.keys; }
  std::vector<std::string> listed(const TenantId& tenant = {}, const std::string& after = "", int limit = 10) {
    auto keys = run(k().list_keys(tenant, KeyId::trusted(after), limit));
    EXPECT_TRUE(keys);
    std::vector<std::string> ids;
    for (const ApiKey& each : *keys) ids.push_back(each.id.str());
    return ids;
  }
  using Ids = std::vector<std::string>;
  Stores stores{GetParam()};
  const TenantId t1 = TenantId::trusted("t1"), t2 = TenantId::trusted("t2");
};

TEST_P(KeysContract, Key_IsFoundByItsHash_Whole) {
  auto added = run(k().add_key(key("a", t1), "hash-a"));
  ASSERT_TRUE(added);
  EXPECT_LT(std::chrono::abs(wall_now() - added->created_at), 1min);
  EXPECT_EQ(added->last_used_at, WallTime{});
  auto found = run(k().find_key("hash-a"));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->id.str(), "a");
  EXPECT_EQ(found->name, "The a");
  EXPECT_EQ(found->role, "runner");
  EXPECT_EQ(found->sub, "runner-a");
  EXPECT_EQ(found->tenant, t1);
  EXPECT_EQ(found->created_at, added->created_at);
  for (const char* wrong : {"hash-", "hash-aa", "HASH-A", "", "a"})
    EXPECT_EQ(run(k().find_key(wrong)).error().code, Errc::not_found) << wrong;
  ASSERT_TRUE(run(k().add_key(key("all"), "hash-all")));
  EXPECT_TRUE(run(k().find_key("hash-all"))->tenant.empty());
}

TEST_P(KeysContract, IdAndHash_AreUnique) {
  ASSERT_TRUE(run(k().add_key(key("a"), "hash-a")));
  EXPECT_EQ(run(k().add_key(key("a", t1), "hash-b")).error().code, Errc::conflict);
  EXPECT_EQ(run(k().add_key(key("b"), "hash-a")).error().code, Errc::conflict);
  EXPECT_EQ(listed(), Ids{"a"});
  EXPECT_TRUE(run(k().find_key("hash-a"))->tenant.empty());
  EXPECT_EQ(run(k().find_key("hash-b")).error().code, Errc::not_found);
}

TEST_P(KeysContract, Tenant_MustBeThere_AndTakesItsKeysAlong) {
  EXPECT_EQ(run(k().add_key(key("x", TenantId::trusted("none")), "hash-x")).error().reason, "tenant_not_found");
  ASSERT_TRUE(run(k().add_key(key("a", t1), "hash-a")));
  ASSERT_TRUE(run(k().add_key(key("b", t2), "hash-b")));
  ASSERT_TRUE(run(k().add_key(key("c"), "hash-c")));
  ASSERT_TRUE(run(stores.catalog->remove_tenant(t1)));
  ASSERT_TRUE(run(stores.catalog->add_tenant({t1, "another of that name"})));
  EXPECT_EQ(run(k().find_key("hash-a")).error().code, Errc::not_found);
  EXPECT_EQ(listed(), (Ids{"b", "c"}));
}

TEST_P(KeysContract, List_IsSortedPagedAndOfOneTenant) {
  for (std::string id : {"d", "b", "c", "a", "B"})
    ASSERT_TRUE(run(k().add_key(key(id, id == "b" || id == "d" ? t1 : id == "a" ? t2 : TenantId{}), "hash-" + id)));
  EXPECT_EQ(listed(), (Ids{"B", "a", "b", "c", "d"})) << "byte by byte";
  EXPECT_EQ(listed({}, "a", 2), (Ids{"b", "c"}));
  EXPECT_EQ(listed(t1), (Ids{"b", "d"}));
  EXPECT_EQ(listed(t2), Ids{"a"});
  EXPECT_EQ(listed(t1, "b"), Ids{"d"});
}

TEST_P(KeysContract, RevokedKey_IsUnknown) {
  ASSERT_TRUE(run(k().add_key(key("a", t1), "hash-a")));
  ASSERT_TRUE(run(k().add_key(key("all"), "hash-all")));
  EXPECT_EQ(run(k().revoke_key(KeyId::trusted("a"), t2)).error().code, Errc::not_found);
  EXPECT_EQ(run(k().revoke_key(KeyId::trusted("all"), t1)).error().code, Errc::not_found);
  EXPECT_TRUE(run(k().find_key("hash-a")));
  EXPECT_TRUE(run(k().revoke_key(KeyId::trusted("a"), t1)));
  EXPECT_EQ(run(k().revoke_key(KeyId::trusted("a"), {})).error().reason, "key_not_found");
  EXPECT_EQ(run(k().find_key("hash-a")).error().reason, "key_not_found");
  EXPECT_TRUE(run(k().revoke_key(KeyId::trusted("all"), {})));
  EXPECT_TRUE(listed().empty());
}

TEST_P(KeysContract, LastUse_IsNotedOnceAMinute) {
  ASSERT_TRUE(run(k().add_key(key("a"), "hash-a")));
  auto first = run(k().find_key("hash-a"));
  EXPECT_LT(std::chrono::abs(wall_now() - first->last_used_at), 1min);
  auto second = run(k().find_key("hash-a"));
  EXPECT_EQ(second->last_used_at, first->last_used_at);
  EXPECT_EQ((*run(k().list_keys({}, {}, 1)))[0].last_used_at, first->last_used_at);
}

INSTANTIATE_TEST_SUITE_P(Fake, KeysContract, testing::Values(Kind::fake));
INSTANTIATE_TEST_SUITE_P(Sqlite, KeysContract, testing::Values(Kind::sqlite));
INSTANTIATE_TEST_SUITE_P(Postgres, KeysContract, testing::Values(Kind::postgres));

}  // namespace weir::test
