#include "weir/sqlite/copy.hpp"

#include "files.hpp"
#include "schema.hpp"
#include "seal.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <filesystem>

namespace weir::sqlite {

namespace fs = std::filesystem;

namespace {

// Statements that are made at run time. A Db knows a statement by the address of its text, so the texts stay.
class Texts {
 public:
  const char* keep(std::string text) { return kept_.emplace_back(std::move(text)).c_str(); }

 private:
  std::deque<std::string> kept_;
};

StoreTable read_table(Db& db, Texts& texts, std::string_view name) {
  StoreTable table{std::string(name), {}, {}};
  std::vector<std::string> expressions;
  {
    Query q = db.query("SELECT name, type FROM pragma_table_info(?)");
    q << name;
    while (q.next()) {
      table.columns.push_back(q.text(0));
      // SQLite shows fifteen digits of a number, which has seventeen.
      expressions.push_back(q.text(1) == "REAL" ? fmt::format("printf('%!.17g', {})", q.text(0)) : q.text(0));
    }
  }
  if (table.columns.empty()) return table;
  Query q = db.query(texts.keep(fmt::format("SELECT {} FROM {}", fmt::join(expressions, ", "), name)));
  while (q.next()) {
    auto& row = table.rows.emplace_back();
    for (int column = 0; column < static_cast<int>(table.columns.size()); ++column) row.push_back(q.text(column));
  }
  return table;
}

// A file of an older Weir lacks tables.
StoreContents read_contents(Db& db, Texts& texts) {
  StoreContents contents;
  {
    Query q = db.query(
        "SELECT epoch, counter, lease_now, mark, hold_until, hold_opened, closed_until FROM store_state");
    WEIR_ASSERT(q.next());
    contents.state = {q.integer(0),    q.integer(1),    q.lease_time(2), q.wall(3),
                      q.lease_time(4), q.lease_time(5), q.lease_time(6)};
  }
  for (std::string_view name : kStoreTables)
    if (StoreTable table = read_table(db, texts, name); !table.columns.empty())
      contents.tables.push_back(std::move(table));
  return contents;
}

void write_contents(Db& db, Texts& texts, const StoreContents& contents) {
  db.script("BEGIN IMMEDIATE");
  for (const StoreTable& table : contents.tables) {
    std::vector<std::string_view> marks(table.columns.size(), "?");
    const char* insert = texts.keep(fmt::format("INSERT INTO {} ({}) VALUES ({})", table.name,
                                                fmt::join(table.columns, ", "), fmt::join(marks, ", ")));
    for (const auto& row : table.rows) {
      Query q = db.query(insert);
      for (const std::string& cell : row) q << cell;  // strict columns turn a number's text into the number
      q.run();
    }
  }
  {
    const lease::StoreState& s = contents.state;
    Query q = db.query(
        "UPDATE store_state SET epoch=?, counter=?, lease_now=?, mark=?, hold_until=?, hold_opened=?, closed_until=?");
    q << s.epoch << s.counter << s.lease_now << s.mark << s.hold_until << s.hold_opened << s.closed_until;
    q.run();
  }
  db.script("COMMIT");
}

// The contents as this version of Weir writes them: brought through the steps that the file has not seen, in a
// temporary database.
StoreContents brought_up_to_date(const StoreContents& older, std::int64_t step) {
  Texts texts;
  Db aside("", false);
  migrate(aside, static_cast<size_t>(step));
  write_contents(aside, texts, older);
  migrate(aside);
  return read_contents(aside, texts);
}

bool is_store(Db& db) {
  Query q = db.query("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'store_state'");
  return q.next();
}

Error unreadable(const std::string& path, const std::string& why) {
  return {Errc::unavailable, "store_unreadable", fmt::format("cannot read {}: {}", path, why)};
}
Error unwritable(const std::string& path, const std::string& why) {
  return {Errc::unavailable, "store_unwritable", fmt::format("cannot write {}: {}", path, why)};
}

std::string folder_of(const std::string& path) {
  std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

// An administrator restores a file that a service under another user will open: the file gets that user as its owner.
void give_to_owner_of(const std::string& like, const std::string& path) {
  struct stat owner {};
  if (::geteuid() == 0 && ::stat(like.c_str(), &owner) == 0) (void)!::chown(path.c_str(), owner.st_uid, owner.st_gid);
}

// A new file's name survives a power failure only once its folder is on the disk as well.
void flush_folder_of(const std::string& path) {
  int fd = ::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  ::fsync(fd);
  ::close(fd);
}

// Without a write-ahead log: one file when it is closed, which can be read where nothing can be written.
Status write_new(const std::string& path, const StoreContents& contents, const std::optional<Seal>& seal) {
  ::unlink(path.c_str());  // left by one that was interrupted
  TRY(made, make_private(path));
  try {
    Texts texts;
    Db db(path, false);
    db.script("PRAGMA journal_mode=DELETE");
    migrate(db);
    write_contents(db, texts, contents);
    if (seal) set_seal(db, *seal);
    return ok();
  } catch (const std::exception& failure) {
    ::unlink(path.c_str());
    return unwritable(path, failure.what());
  }
}

}  // namespace

Result<StoreFile> read_store(const std::string& path) {
  std::error_code failed;
  if (!fs::exists(path, failed)) return Error{Errc::not_found, "no_store", fmt::format("there is no file {}", path)};
  try {
    Texts texts;
    Db db(path, true);
    db.script("BEGIN");  // everything below is of one moment
    if (!is_store(db)) return unreadable(path, "it is not a store of Weir's");
    std::int64_t step = schema_step(db);
    check_known(step);
    StoreFile file{read_contents(db, texts), seal_of(db)};
    db.script("COMMIT");
    if (step < newest_step()) file.contents = brought_up_to_date(file.contents, step);
    return file;
  } catch (const std::exception& failure) {
    return unreadable(path, failure.what());
  }
}

Status write_backup(const std::string& path, const StoreContents& contents, std::string sentence) {
  std::string beside = path + ".partial";
  TRY(written, write_new(beside, contents, Seal{std::move(sentence), ""}));
  // A link, unlike a renaming, never replaces what is there; some filesystems have none.
  bool named = ::link(beside.c_str(), path.c_str()) == 0;
  if (!named && errno != EEXIST && ::access(path.c_str(), F_OK) != 0)
    named = ::rename(beside.c_str(), path.c_str()) == 0;
  int why = errno;
  ::unlink(beside.c_str());
  if (!named && why == EEXIST)
    return Error{Errc::conflict, "file_exists", fmt::format("{} is there already; name another file", path)};
  if (!named) return unwritable(path, std::strerror(why));
  flush_folder_of(path);
  return ok();
}

struct ClaimedFile::State {
  std::string path;
  FolderLock lock;
};

ClaimedFile::ClaimedFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
ClaimedFile::ClaimedFile(ClaimedFile&&) noexcept = default;
ClaimedFile::~ClaimedFile() = default;

Result<ClaimedFile> ClaimedFile::claim(const std::string& path) {
  TRY(lock, FolderLock::take(path));
  ClaimedFile claimed(std::make_unique<State>(State{path, std::move(lock)}));
  give_to_owner_of(claimed.owner(), path + ".lock");
  return claimed;
}

bool ClaimedFile::exists() const {
  std::error_code failed;
  return fs::exists(state_->path, failed) && fs::file_size(state_->path, failed) > 0;
}

std::string ClaimedFile::owner() const { return exists() ? state_->path : folder_of(state_->path); }

Status ClaimedFile::replace(const StoreContents& contents, const std::string& kept) {
  const std::string& path = state_->path;
  std::string fresh = path + ".restoring";
  TRY(written, write_new(fresh, contents, {}));
  give_to_owner_of(owner(), fresh);
  if (exists()) {
    try {
      Db old(path, false);
      if (is_store(old)) old.script("PRAGMA wal_checkpoint(TRUNCATE)");  // so that one file holds all of it
    } catch (const std::exception&) {
      // A damaged file is kept as it is, with its log.
    }
    std::error_code failed;
    fs::create_hard_link(path, kept, failed);
    if (failed) fs::copy_file(path, kept, failed);
    if (!failed && fs::exists(path + "-wal")) fs::copy_file(path + "-wal", kept + "-wal", failed);
    if (failed) return unwritable(kept, failed.message());
  }
  // The log of the old file must never meet the new one.
  for (const char* of_old : {"-wal", "-shm"}) ::unlink((path + of_old).c_str());
  if (::rename(fresh.c_str(), path.c_str()) != 0) return unwritable(path, std::strerror(errno));
  flush_folder_of(path);
  return ok();
}

Status ClaimedFile::seal(const Seal& seal) {
  try {
    Db db(state_->path, false);
    set_seal(db, seal);
    return ok();
  } catch (const std::exception& failure) {
    return unwritable(state_->path, failure.what());
  }
}

Status ClaimedFile::unseal() {
  try {
    Db db(state_->path, false);
    lift_seal(db);
    return ok();
  } catch (const std::exception& failure) {
    return unwritable(state_->path, failure.what());
  }
}

}  // namespace weir::sqlite
