#include "db.hpp"

#include "weir/base/result.hpp"

namespace weir::sqlite {

Query::~Query() {
  sqlite3_reset(stmt_);
  sqlite3_clear_bindings(stmt_);
}

Query& Query::operator<<(std::int64_t v) {
  WEIR_ASSERT(sqlite3_bind_int64(stmt_, ++bound_, v) == SQLITE_OK);
  return *this;
}
Query& Query::operator<<(double v) {
  WEIR_ASSERT(sqlite3_bind_double(stmt_, ++bound_, v) == SQLITE_OK);
  return *this;
}
Query& Query::operator<<(std::string_view v) {
  WEIR_ASSERT(sqlite3_bind_text64(stmt_, ++bound_, v.data() == nullptr ? "" : v.data(), v.size(), SQLITE_TRANSIENT,
                                  SQLITE_UTF8) == SQLITE_OK);
  return *this;
}
Query& Query::operator<<(std::nullopt_t) {
  WEIR_ASSERT(sqlite3_bind_null(stmt_, ++bound_) == SQLITE_OK);
  return *this;
}

bool Query::next() {
  int code = sqlite3_step(stmt_);
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) db_.fail(code);
  return false;
}

int Query::run() {
  while (next()) {
  }
  return sqlite3_changes(sqlite3_db_handle(stmt_));
}

std::string Query::text(int column) const {
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(stmt_, column));
  return bytes == nullptr ? std::string() : std::string(bytes, static_cast<size_t>(sqlite3_column_bytes(stmt_, column)));
}
std::int64_t Query::integer(int column) const { return sqlite3_column_int64(stmt_, column); }
double Query::number(int column) const { return sqlite3_column_double(stmt_, column); }
bool Query::is_null(int column) const { return sqlite3_column_type(stmt_, column) == SQLITE_NULL; }

Db::Db(const std::string& path, bool read_only) {
  int flags = read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  int code = sqlite3_open_v2(path.c_str(), &db_, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  if (code != SQLITE_OK) {
    std::string why = db_ != nullptr ? sqlite3_errmsg(db_) : "out of memory";
    sqlite3_close(db_);
    throw SqliteFailure(code, why);
  }
  sqlite3_extended_result_codes(db_, 1);
  sqlite3_busy_timeout(db_, 5000);
  try {
    if (!read_only) {
      script("PRAGMA journal_mode=WAL");
      script("PRAGMA synchronous=FULL");
      script("PRAGMA wal_autocheckpoint=4000");
    }
    script("PRAGMA temp_store=MEMORY");
  } catch (...) {  // a damaged file; no destructor will run
    sqlite3_close(db_);
    throw;
  }
}

Db::~Db() {
  for (auto& [sql, stmt] : cache_) sqlite3_finalize(stmt);
  sqlite3_close(db_);
}

Query Db::query(const char* sql) {
  auto [at, added] = cache_.try_emplace(sql, nullptr);
  if (added) {
    int code = sqlite3_prepare_v3(db_, sql, -1, SQLITE_PREPARE_PERSISTENT, &at->second, nullptr);
    if (code != SQLITE_OK) {
      cache_.erase(at);
      fail(code);
    }
  }
  return Query(*this, at->second);
}

void Db::script(const char* sql) {
  int code = sqlite3_exec(db_, sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) fail(code);
}

void Db::fail(int code) const { throw SqliteFailure(code, sqlite3_errmsg(db_)); }

}  // namespace weir::sqlite
