// Coordination: what the processes of a detector cluster share: tables, channels, and the newest detections.
//
// The master writes under its epoch, the version of the cluster's lease. A write is taken only under exactly the epoch
// that is stored: a lower one is answered `stale_epoch`, and where none or a lower one is stored `no_epoch`. Only a
// master that has just renewed its lease may open its epoch; so neither a master that was replaced nor one that was
// paused can write, whatever became of the tables meanwhile. What slaves say needs no epoch. Detections are kept, up to
// a number, so that whoever names the last one it got is given those that followed, or told that there is a gap.
// Nothing expires.
//
// An error of class `unavailable` means that nothing is known: the write may have been done. Queues are bounded: when a
// queue is full, a question fails at once, and a listener is told that it has missed something. Loop thread only.
#pragma once

#include "weir/ports/async.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace weir {

enum class ClusterTable {
  connections,  // worker → its connection, as the master sees it
  assignments,  // worker → the slave that its detections are routed to
  desired,      // subscription → what is desired, without credentials
  actual,       // subscription → its worker and its state
  slaves,       // slave → that it is there
};
using SharedTable = std::map<std::string, std::string>;

// A part of one write: first the table is emptied where that is wished, then fields are removed, then others put.
struct TableChange {
  ClusterTable table = ClusterTable::connections;
  bool empty_first = false;
  std::vector<std::string> remove = {};
  SharedTable put = {};
};

// What a listener hears. `begun`: from now on nothing on its channels is missed; what was said before may have been. It
// is told when listening begins, after every interruption, and when the listener was too slow.
struct Heard {
  bool begun = false;
  std::string channel = {};
  std::string text = {};
};

struct KeptDetection {
  std::string id;
  std::string text;
  friend bool operator==(const KeptDetection&, const KeptDetection&) = default;
};
struct DetectionPage {
  std::vector<KeptDetection> items = {};
  bool gap = false;   // not everything after the id asked for is kept; the items begin with the oldest that is
  std::string last;   // ask for what follows it
};

// The id before the first detection ever.
inline constexpr std::string_view kBeforeAllDetections = "0-0";

// Ends the listening when it is destroyed; nothing is heard after that.
class Listening {
 public:
  virtual ~Listening() = default;
};

class Coordination {
 public:
  virtual ~Coordination() = default;

  // ---- the master ----
  // By a master that has renewed its lease a moment ago. `stale_epoch` where a higher one is stored.
  virtual Async<Nothing> open_epoch(std::int64_t epoch) = 0;
  // All changes, or none.
  virtual Async<Nothing> write(std::int64_t epoch, std::vector<TableChange> changes) = 0;
  virtual Async<Nothing> publish(std::int64_t epoch, std::string channel, std::string text) = 0;
  // Keeps a detection and publishes it, in one step; the id under which it is kept. `text` is a JSON object with at
  // least one member; the one that is published begins with the member `streamId`.
  virtual Async<std::string> deliver(std::int64_t epoch, std::string channel, std::string text) = 0;

  // ---- slaves ----
  virtual Async<Nothing> put_slave(std::string slave, std::string record) = 0;
  virtual Async<Nothing> remove_slave(std::string slave) = 0;
  virtual Async<Nothing> tell(std::string channel, std::string text) = 0;

  // ---- everybody ----
  virtual Async<std::optional<std::int64_t>> epoch() = 0;
  virtual Async<SharedTable> table(ClusterTable table) = 0;
  virtual Async<std::optional<std::string>> entry(ClusterTable table, std::string field) = 0;
  // At most `limit` detections after `id`; with "" none, and `last` is the newest. `bad_stream_id` where it is none.
  virtual Async<DetectionPage> detections_after(std::string id, int limit) = 0;
  virtual std::unique_ptr<Listening> listen(std::vector<std::string> channels,
                                            std::function<void(const Heard&)> each) = 0;
};

// The answers of every implementation, in the same words.
Error stale_epoch();
Error no_epoch();
Error bad_stream_id();
// Whether it reads like the id of a detection: two numbers with a hyphen between them.
bool is_stream_id(std::string_view id);
// The object with `streamId` as its first member.
std::string with_stream_id(std::string_view id, std::string_view object);

}  // namespace weir
