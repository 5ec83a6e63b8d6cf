// PostgresServer: a private PostgreSQL for tests: its own folder, a free port on loopback, gone with the test.
#pragma once

#include "free_port.hpp"
#include "temp_files.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <string>

namespace weir::test {

class PostgresServer {
 public:
  // One server for the whole process, started when first asked for. The error says why there is none.
  static Result<PostgresServer*> shared();
  static Result<std::unique_ptr<PostgresServer>> start();
  // A streaming replica of `primary`, from a base backup.
  static Result<std::unique_ptr<PostgresServer>> start_replica(PostgresServer& primary);
  ~PostgresServer();
  PostgresServer(const PostgresServer&) = delete;

  std::string url(const std::string& database) const;
  // A new empty database; its URL, as a superuser.
  Result<std::string> new_database();
  // The same with the roles of deploy/postgres/roles.sql.
  struct Roles {
    std::string owner, plane, backup;
  };
  Result<Roles> new_database_with_roles();
  // Runs SQL and returns the first column of its first row.
  Result<std::string> sql(const std::string& database, const std::string& statement);

  void kill_hard();           // SIGKILL to the postmaster: as if the power had failed, but for the page cache
  Status start_again();
  Status promote();
  int port() const { return port_; }
  int pid() const;

 private:
  PostgresServer();
  Status run_server();
  void guard();
  std::string stop_command() const;
  TempDir folder_;
  std::string bin_;
  int port_ = 0;
  FILE* guard_ = nullptr;
};

}  // namespace weir::test

// Ends the test if there is no PostgreSQL on this machine. One that is there and does not start is a failure.
#define SKIP_WITHOUT_POSTGRES(made)                                            \
  if (!(made)) {                                                               \
    ASSERT_EQ((made).error().reason, "no_postgres") << (made).error().message; \
    GTEST_SKIP() << (made).error().message;                                    \
  }                                                                            \
  static_assert(true)
