// Copies of a store, whichever it is: the one place where a backup file meets SQLite and PostgreSQL.
//
// A backup is a sealed SQLite file, whatever store it was taken of, so that it can be brought back into either.
// The functions block. Plain values; main thread only.
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/secret.hpp"
#include "weir/ports/store_contents.hpp"

#include <optional>
#include <string>

namespace weir::apps {

// What sqlite:PATH or postgres://… names.
struct StorePlace {
  std::string path;   // of SQLite; "" for PostgreSQL
  Secret url;
  std::string shown;  // without credentials

  static Result<StorePlace> read(const Secret& url);
  bool sqlite() const { return !path.empty(); }
};

struct Replacement {
  bool force = false;                      // also where the store holds something
  std::optional<std::int64_t> epoch = {};  // that the operator asks for
  Duration ttl_max = {};
};

struct Replaced {
  StoreContents now;
  std::string kept;      // the file that what was there is kept in; "" where nothing was
  bool unread = false;   // what was there could not be read
};

// A copy of one moment; control planes may be running.
Result<StoreContents> read_copy(const StorePlace& from);
// A new file, 0600.
Status write_copy(const std::string& file, const StoreContents& contents, const std::string& of);
// Puts the copy in `file` in the place of a store that no control plane has open, under a new epoch.
Result<Replaced> restore_copy(const std::string& file, const StorePlace& to, const Replacement& how);
// Carries a store that no control plane has open into PostgreSQL, under a new epoch, and seals the file it was in.
Result<Replaced> move_store(const StorePlace& from, const StorePlace& to, const Replacement& how);

}  // namespace weir::apps
