// Which store a control plane under test stands on. A test that takes its store as a parameter runs over both, and is
// skipped with the reason where PostgreSQL is not installed. One thread.
#pragma once

#include "weir_process.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace weir::test {

enum class StoreKind { sqlite, postgres };
inline void PrintTo(StoreKind kind, std::ostream* out) {
  *out << (kind == StoreKind::sqlite ? "SQLite" : "PostgreSQL");
}

// A new, empty store; for SQLite a file in `folder`.
inline Result<std::string> new_store(StoreKind kind, const TempDir& folder) {
  if (kind == StoreKind::sqlite) return "sqlite:" + folder.path() + "/weir.db";
  TRY(server, PostgresServer::shared());
  return server->new_database();
}

class OverBothStores : public testing::TestWithParam<StoreKind> {
 protected:
  // Each test names its own flags, so it starts its own control plane.
  void start(std::vector<std::string> flags = {}) {
    auto database = new_store(GetParam(), folder_);
    SKIP_WITHOUT_POSTGRES(database);
    process_ = std::make_unique<WeirProcess>(folder_.path(), *database, std::move(flags));
  }
  WeirProcess& process() { return *process_; }
  const TempDir& folder() const { return folder_; }

 private:
  TempDir folder_;
  std::unique_ptr<WeirProcess> process_;
};

inline std::string store_name(const testing::TestParamInfo<StoreKind>& about) {
  return about.param == StoreKind::sqlite ? "Sqlite" : "Postgres";
}

}  // namespace weir::test

// GTEST_SKIP leaves only the function it stands in.
#define START_OR_SKIP(...) \
  start(__VA_ARGS__);      \
  if (IsSkipped() || HasFatalFailure()) return
#define INSTANTIATE_OVER_BOTH_STORES(Suite) \
  INSTANTIATE_TEST_SUITE_P(Stores, Suite, testing::Values(StoreKind::sqlite, StoreKind::postgres), store_name)
