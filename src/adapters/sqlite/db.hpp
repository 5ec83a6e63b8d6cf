// A thin, safe front over the sqlite3 C interface. Private to this folder.
//
// Failures are thrown as SqliteFailure inside the folder and become `unavailable` errors at its edge, so that the SQL
// reads without noise. A Db and its statements belong to one thread.
#pragma once

#include "weir/base/ids.hpp"
#include "weir/base/time.hpp"

#include <sqlite3.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>

namespace weir::sqlite {

struct SqliteFailure : std::runtime_error {
  SqliteFailure(int code_, const std::string& what_) : std::runtime_error(what_), code(code_) {}
  int code;
};

class Db;

// A prepared statement in use; goes back to the cache when it ends.
class Query {
 public:
  Query(Db& db, sqlite3_stmt* stmt) : db_(db), stmt_(stmt) {}
  Query(const Query&) = delete;
  ~Query();

  Query& operator<<(std::int64_t v);
  Query& operator<<(int v) { return *this << static_cast<std::int64_t>(v); }
  Query& operator<<(bool v) { return *this << static_cast<std::int64_t>(v); }
  Query& operator<<(double v);
  Query& operator<<(std::string_view v);
  Query& operator<<(const char* v) { return *this << std::string_view(v); }
  Query& operator<<(const std::string& v) { return *this << std::string_view(v); }
  Query& operator<<(std::nullopt_t);
  Query& operator<<(Duration v) { return *this << static_cast<std::int64_t>(v.count()); }
  Query& operator<<(WallTime v) { return *this << v.time_since_epoch(); }
  Query& operator<<(LeaseTime v) { return *this << v.time_since_epoch(); }
  template <class Tag>
  Query& operator<<(const Id<Tag>& v) {
    return *this << std::string_view(v.str());
  }

  bool next();   // false: no more rows
  int run();     // for statements without rows; the number of rows changed

  std::string text(int column) const;
  std::int64_t integer(int column) const;
  double number(int column) const;
  bool is_null(int column) const;
  Duration duration(int column) const { return Duration(integer(column)); }
  WallTime wall(int column) const { return WallTime(duration(column)); }
  LeaseTime lease_time(int column) const { return LeaseTime(duration(column)); }
  template <class IdType>
  IdType id(int column) const {
    return IdType::trusted(text(column));
  }

 private:
  Db& db_;
  sqlite3_stmt* stmt_;
  int bound_ = 0;
};

class Db {
 public:
  // WAL, synchronous=FULL; `read_only` for the reader's connection.
  Db(const std::string& path, bool read_only);
  Db(const Db&) = delete;
  ~Db();

  // `sql` must be a literal: its address is the key of the cache.
  Query query(const char* sql);
  void script(const char* sql);
  bool in_transaction() const { return sqlite3_get_autocommit(db_) == 0; }
  [[noreturn]] void fail(int code) const;

 private:
  sqlite3* db_ = nullptr;
  std::unordered_map<const char*, sqlite3_stmt*> cache_;
};

}  // namespace weir::sqlite
