#include "seal.hpp"

#include <fmt/format.h>

namespace weir::sqlite {

namespace {

constexpr std::int64_t kSealed = 1'000'000;

std::int64_t user_version(Db& db) {
  Query q = db.query("PRAGMA user_version");
  q.next();
  return q.integer(0);
}

void set_user_version(Db& db, std::int64_t number) {
  db.script(fmt::format("PRAGMA user_version = {}", number).c_str());
}

}  // namespace

std::int64_t schema_step(Db& db) { return user_version(db) % kSealed; }

std::optional<Seal> seal_of(Db& db) {
  if (user_version(db) < kSealed) return std::nullopt;
  Query q = db.query("SELECT sentence, moved_to FROM seal");
  if (!q.next()) return Seal{"it is sealed", ""};
  return Seal{q.text(0), q.text(1)};
}

void set_seal(Db& db, const Seal& seal) {
  db.script("BEGIN IMMEDIATE");
  db.script("CREATE TABLE IF NOT EXISTS seal(sentence TEXT NOT NULL, moved_to TEXT NOT NULL) STRICT; DELETE FROM seal");
  {
    Query q = db.query("INSERT INTO seal VALUES (?, ?)");
    q << seal.sentence << seal.moved_to;
    q.run();
  }
  set_user_version(db, kSealed + schema_step(db));
  db.script("COMMIT");
}

void lift_seal(Db& db) {
  db.script("BEGIN IMMEDIATE");
  db.script("DROP TABLE IF EXISTS seal");
  set_user_version(db, schema_step(db));
  db.script("COMMIT");
}

}  // namespace weir::sqlite
