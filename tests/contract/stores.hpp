// The stores that must keep the same contract, each ready to use and empty.
#pragma once

#include "fake_store.hpp"
#include "postgres_server.hpp"
#include "run.hpp"

#include "weir/base/clock.hpp"
#include "weir/postgres/copy.hpp"
#include "weir/postgres/store.hpp"
#include "weir/sqlite/store.hpp"

#include <gtest/gtest.h>

namespace weir::test {

enum class Kind { fake, sqlite, postgres };

struct Stores {
  explicit Stores(Kind kind);

  template <class T>
  T run(boost::asio::awaitable<T> what) {
    return test::run(io, std::move(what));
  }
  // One ask, one answer.
  lease::Answer ask(lease::Operation operation, const lease::Owner& owner, lease::Ask what, Duration ttl = 10s);

  // Tenant t1 with site s1, and cameras c1 … c<cameras>.
  void furnish(int cameras);

  // Runs an SQL statement past the store, as another version of Weir or a person could have done. False: this store
  // has no SQL.
  bool meddle(const char* sql);

  std::string unavailable;   // why this store cannot be tested here
  boost::asio::io_context io;
  TempDir folder;
  std::string database;  // PostgreSQL: the URL of its owner; the store itself has no more rights than it needs
  std::unique_ptr<FakeStore> fake;
  std::unique_ptr<sqlite::SqliteStore> sqlite;
  std::unique_ptr<postgres::PostgresStore> postgres;
  LeaseStore* leases = nullptr;
  Catalog* catalog = nullptr;
  EventLog* events = nullptr;
  Keys* keys = nullptr;
};

CameraId cam(int n);
camera::Config camera_config(const CameraId& id, const std::string& tenant = "t1", const std::string& site = "s1");
lease::Owner owner(const std::string& runner, const std::string& boot = "b1");

}  // namespace weir::test
