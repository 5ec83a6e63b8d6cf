#include "store_copy.hpp"

#include "weir/base/clock.hpp"
#include "weir/lease/reopen.hpp"
#include "weir/postgres/copy.hpp"
#include "weir/sqlite/copy.hpp"

#include <charconv>

namespace weir::apps {

namespace {

// "PATH.replaced-20261118T035250Z"
std::string kept_name(const std::string& path) {
  std::string time = to_iso(wall_now());
  std::erase_if(time, [](char c) { return c == '-' || c == ':'; });
  return fmt::format("{}.replaced-{}Z", path, time.substr(0, time.find('.')));
}

size_t column(const StoreTable& table, std::string_view name) {
  auto found = std::ranges::find(table.columns, name);
  WEIR_ASSERT(found != table.columns.end());
  return static_cast<size_t>(found - table.columns.begin());
}

// The longest lease that the copy knows of: the control plane may have allowed longer ones than this command was told.
Duration longest_lease(const StoreContents& contents) {
  std::int64_t longest = 0;
  for (const StoreTable& table : contents.tables) {
    if (table.name != "leases") continue;
    for (const auto& row : table.rows) {
      const std::string& text = row[column(table, "ttl")];
      std::int64_t ttl = 0;
      std::from_chars(text.data(), text.data() + text.size(), ttl);
      longest = std::max(longest, ttl);
    }
  }
  return Duration(longest);
}

// Tokens that lost commits gave away must not be given a second time.
void empty_buckets(StoreContents& contents) {
  for (StoreTable& table : contents.tables) {
    if (table.name != "sites") continue;
    for (auto& row : table.rows) {
      row[column(table, "tokens")] = std::to_string(0);  // GCC 12 warns of a literal here
      row[column(table, "budget_updated")] = std::to_string(contents.state.lease_now.time_since_epoch().count());
    }
  }
}

Result<StoreContents> under_new_epoch(StoreContents copy, bool complete, std::optional<lease::StoreState> replaced,
                                      const Replacement& how) {
  lease::Reopening reopening{complete, std::move(replaced), how.epoch, std::max(how.ttl_max, longest_lease(copy))};
  TRY(state, lease::reopen(copy.state, reopening));
  copy.state = state;
  if (!complete) empty_buckets(copy);
  return copy;
}

Error not_empty(const StorePlace& place, const std::string& what) {
  return {Errc::conflict, "store_not_empty",
          fmt::format("{} holds a store already ({}): nothing was changed. With --force it is replaced, and a copy of "
                      "it is kept", place.shown, what)};
}

std::string described(const StoreContents& contents) {
  return fmt::format("epoch {}, {} cameras", contents.state.epoch, contents.count("cameras"));
}

Result<Replaced> replace_file(StoreContents copy, const StorePlace& to, const Replacement& how) {
  TRY(claimed, sqlite::ClaimedFile::claim(to.path));
  Replaced replaced;
  std::optional<lease::StoreState> before;
  if (claimed.exists()) {
    auto old = sqlite::read_store(to.path);
    bool holds = !old || !old->contents.empty();
    if (holds && !how.force) return not_empty(to, old ? described(old->contents) : old.error().message);
    if (old) before = old->contents.state;
    replaced.unread = !old;
    replaced.kept = kept_name(to.path);
  }
  TRY(next, under_new_epoch(std::move(copy), false, before, how));
  TRY(done, claimed.replace(next, replaced.kept));
  replaced.now = std::move(next);
  return replaced;
}

// The database with what was there kept in a file beside `beside`, and the copy written, but not committed.
struct Written {
  postgres::ClaimedDatabase database;
  Replaced replaced;
};
Result<Written> write_database(StoreContents copy, bool complete, const StorePlace& to, const Replacement& how,
                               const std::string& beside) {
  TRY(database, postgres::ClaimedDatabase::claim(to.url));
  TRY(old, database.contents());
  if (!old.empty() && !how.force) return not_empty(to, described(old));
  Replaced replaced;
  TRY(next, under_new_epoch(std::move(copy), complete, old.state, how));
  if (!old.empty()) {
    replaced.kept = kept_name(beside);
    TRY(kept, write_copy(replaced.kept, old, to.shown));
  }
  TRY(written, database.replace(next));
  replaced.now = std::move(next);
  return Written{std::move(database), std::move(replaced)};
}

}  // namespace

Result<StorePlace> StorePlace::read(const Secret& url) {
  const std::string& text = url.reveal();
  if (text.starts_with("sqlite:") && text.size() > 7) return StorePlace{text.substr(7), url, text};
  if (text.starts_with("postgres://") || text.starts_with("postgresql://"))
    return StorePlace{"", url, redact_url(text)};
  return Error{Errc::invalid, "usage", "a store is named sqlite:PATH or postgres://USER@HOST/DATABASE"};
}

Result<StoreContents> read_copy(const StorePlace& from) {
  if (!from.sqlite()) return postgres::read_store(from.url);
  TRY(file, sqlite::read_store(from.path));
  return std::move(file.contents);
}

Status write_copy(const std::string& file, const StoreContents& contents, const std::string& of) {
  return sqlite::write_backup(file, contents,
                              fmt::format("this file is a backup of {}, taken at {}; bring it back with: weir store "
                                          "restore FILE --db URL", of, to_iso(wall_now())));
}

Result<Replaced> restore_copy(const std::string& file, const StorePlace& to, const Replacement& how) {
  TRY(copy, sqlite::read_store(file));
  if (to.sqlite()) return replace_file(std::move(copy.contents), to, how);
  TRY(written, write_database(std::move(copy.contents), false, to, how, file));
  TRY(done, written.database.commit());
  return std::move(written.replaced);
}

// The seal comes before the commit: an interruption between the two leaves no store that can be served, never two.
Result<Replaced> move_store(const StorePlace& from, const StorePlace& to, const Replacement& how) {
  TRY(source, sqlite::ClaimedFile::claim(from.path));
  TRY(copy, sqlite::read_store(from.path));
  if (copy.seal && copy.seal->moved_to != to.shown)
    return Error{Errc::conflict, "store_sealed", fmt::format("{}: {}", from.path, copy.seal->sentence)};
  // Where a move was interrupted, it is not known whether its store has been served since.
  bool complete = !copy.seal;
  TRY(written, write_database(std::move(copy.contents), complete, to, how, from.path));
  TRY(sealed, source.seal({fmt::format("this store was moved to {0} at {1} and must not be served again: runners would "
                                       "have two masters. Start the control plane with --db {0}",
                                       to.shown, to_iso(wall_now())), to.shown}));
  Status committed = written.database.commit();
  if (committed) return std::move(written.replaced);
  Error error = committed.error();
  if (error.reason == "commit_unknown") {
    error.message += fmt::format(". The connection was lost at the last moment: whether {} holds the store now is not "
                                 "known, and {} is sealed. Run the same command again", to.shown, from.path);
  } else if (complete) {
    TRY(unsealed, source.unseal());
  }
  return error;
}

}  // namespace weir::apps
