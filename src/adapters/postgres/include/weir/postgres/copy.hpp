// Copies of the PostgreSQL store: reading one beside its control planes, replacing one.
//
// `read_store` looks at one moment of the database (REPEATABLE READ, read only) and locks nothing. A ClaimedDatabase
// holds every table in one transaction, so that what is written appears all at once, at `commit`.
// The functions block; any thread. A ClaimedDatabase belongs to one thread.
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/secret.hpp"
#include "weir/ports/store_contents.hpp"

#include <memory>

namespace weir::postgres {

// Fails where the database holds no store, or one of another schema than this Weir's.
Result<StoreContents> read_store(const Secret& url);

// Brings the schema up to date, also beside control planes that run, and returns the steps it was and is at.
struct SchemaSteps {
  std::int64_t before, now;
};
Result<SchemaSteps> bring_up_to_date(const Secret& url);

class ClaimedDatabase {
 public:
  // Brings the schema up to date. Fails with `store_in_use` where a control plane moves lease time on.
  static Result<ClaimedDatabase> claim(const Secret& url);
  ClaimedDatabase(ClaimedDatabase&&) noexcept;
  ~ClaimedDatabase();  // what was not committed has not happened

  Result<StoreContents> contents();
  // Everything that is there goes, events too.
  Status replace(const StoreContents& contents);
  // An error with the reason "commit_unknown" means what it says: it may have been committed.
  Status commit();

 private:
  struct State;
  explicit ClaimedDatabase(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace weir::postgres
