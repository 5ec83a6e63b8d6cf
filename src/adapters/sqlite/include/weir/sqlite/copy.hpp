// Copies of the embedded store: reading one beside its control plane, writing one into a file, replacing one.
//
// `read_store` looks at one moment of the file and holds nobody up: in write-ahead mode the writer never waits for a
// reader. A command that changes a store claims it first, with the lock that a control plane holds while it runs.
// The functions block; any thread. A ClaimedFile belongs to one thread.
#pragma once

#include "weir/base/result.hpp"
#include "weir/ports/store_contents.hpp"

#include <memory>
#include <optional>
#include <string>

namespace weir::sqlite {

// Why a file may be read but not served.
struct Seal {
  std::string sentence;  // what a control plane answers that is started on the file
  std::string moved_to;  // the store that took its place, without credentials; "" for a backup
};

struct StoreFile {
  StoreContents contents;
  std::optional<Seal> seal;
};

// The file may be in use, sealed, or of an older Weir. Fails where it is missing, of a newer Weir, or no store.
Result<StoreFile> read_store(const std::string& path);

// A new sealed file (0600) that appears whole or not at all. Fails where there is one already.
Status write_backup(const std::string& path, const StoreContents& contents, std::string sentence);

// A store in a file that no control plane has open, and none can open while this lives. The file may be missing.
class ClaimedFile {
 public:
  // Fails with `store_locked` where a control plane runs on it.
  static Result<ClaimedFile> claim(const std::string& path);
  ClaimedFile(ClaimedFile&&) noexcept;
  ~ClaimedFile();

  bool exists() const;
  // Puts a new store in place of the file, all at once. The name of what was there is `kept` afterwards, where anything
  // was, also if it could not be read.
  Status replace(const StoreContents& contents, const std::string& kept);
  Status seal(const Seal& seal);
  Status unseal();

 private:
  struct State;
  explicit ClaimedFile(std::unique_ptr<State> state);
  std::string owner() const;  // the path whose owner the store's files shall have
  std::unique_ptr<State> state_;
};

}  // namespace weir::sqlite
