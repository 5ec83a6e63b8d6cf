// KeptHost: starts programs that live on when this one dies, each below a keeper, and finds them again.
//
// A Child (process_host.hpp) ends with its parent, and the exit code of a lasting process (lasting_process.hpp) is told
// to its parent alone. A kept process has a keeper: a tiny process above it that outlives whoever started it, records
// how the child ended, and kills the child with everything below it when its deadline passes. The deadline is the only
// leash: where nobody extends it, because this program is dead or frozen, the child ends by itself.
//
// Each start has a nonce. Keeper, child and everything below hold the lock of a file that is named by it: while one of
// them lives the lock is held, and no successor of that name is started; a free lock proves that all are dead. What is
// needed to find them again is on the disk before the keeper is started. Loop thread only.
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/secret.hpp"
#include "weir/base/time.hpp"

#include <boost/asio/awaitable.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weir {

// How long a child may go on. Until `valid_until` it may open connections and publish events; until `keep_until`, which
// is never earlier, it may keep the connections that stand then. A child that knows no deadlines has only the first.
struct Term {
  Instant valid_until{}, keep_until{};
};

struct KeptSpec {
  std::string name;                  // 1 to 80 of A-Z a-z 0-9 _ . -, e.g. "demo.worker"; at most one lives of each
  std::vector<std::string> command;  // an argument vector, never a shell line; the first is a path
  Secret document = {};              // where not empty, the child reads it at /dev/fd/3
  std::vector<std::pair<std::string, std::string>> environment = {};  // in addition to this program's own
  std::vector<std::string> unset = {};  // of this program's environment, which the child otherwise inherits
  std::string output = {};              // the file that the child's output is appended to; "": it is thrown away
  std::string note = {};                // comes back with the handle when the child is adopted
  // Where the child itself listens for its deadline, as a forwarder does. "": it knows none, and the keeper ends it at
  // the deadline; otherwise the keeper does so some time later, in case the child does not.
  std::string lease_socket = {};
  std::int64_t version = 0;
  Instant valid_until{};
};

// A handle to one kept process. Where it is destroyed, the process runs on.
class Kept {
 public:
  virtual ~Kept() = default;
  virtual const std::string& name() const = 0;
  virtual const std::string& note() const = 0;
  virtual std::int64_t version() const = 0;
  // When the keeper ends the child, as long as nobody extends it; a child that knows its deadline gets time on top.
  virtual Instant ends_at() const = 0;
  // Where a child with a lease socket serves its metrics ("http://127.0.0.1:PORT"), once it has been extended; else "".
  virtual const std::string& control() const = 0;
  // Whether the keeper, the child or anything below it lives.
  virtual bool running() const = 0;
  // Has succeeded when the keeper, and the child where it has a lease socket, have said so. Each has a second to
  // answer; after an error nobody knows which of them have heard it. `stale_version`: a higher version was used there;
  // `ended`: the child has ended, or is being ended.
  virtual boost::asio::awaitable<Status> extend(std::int64_t version, Term term) = 0;
  // SIGTERM to the child; after the stop grace, SIGKILL to all that is left of it.
  virtual void stop() = 0;
  // SIGKILL to everything below the keeper, now.
  virtual void kill() = 0;
  // Returns when everything is dead: the child's exit code, or 128 + the signal that ended it; nothing where nobody
  // recorded it. Where the keeper was killed and the child was not, this call ends the child at its deadline.
  virtual boost::asio::awaitable<std::optional<int>> wait() = 0;
};

class KeptHost {
 public:
  virtual ~KeptHost() = default;
  // `kept_alive` while an earlier process of that name is not proven dead; the message says until when it may live. The
  // loop goes on meanwhile; where this call is abandoned, the process may have been started, and `adopt` finds it.
  virtual boost::asio::awaitable<Result<std::unique_ptr<Kept>>> start(KeptSpec spec) = 0;
  // For the start of this program: everything that an earlier process of the same boot started, living or dead, and
  // whose end nobody has waited for. What another boot started is left alone.
  virtual std::vector<std::unique_ptr<Kept>> adopt() = 0;
};

}  // namespace weir
