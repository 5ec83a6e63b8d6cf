// StreamPlane: whoever keeps the leases and records of published streams, as an orchestrator asks it.
//
// It is a control plane, or the orchestrator's own store where there is none. An error of class `unavailable` or
// `unauthorized` means that nothing is known; only a typed answer says anything about a lease ("Lost is only a typed
// answer" in docs/lease-protocol.md). Loop thread only.
#pragma once

#include "weir/event/event.hpp"
#include "weir/lease/decide.hpp"
#include "weir/ports/streams.hpp"

#include <functional>
#include <optional>
#include <string>

namespace weir {

// What an operator wants done with a stream now.
struct StreamOrder {
  SubjectId id;
  std::string what;  // stop, restart, forward, or wishes: its record's wishes have changed
  std::optional<bool> forward = {};
};

class StreamPlane {
 public:
  virtual ~StreamPlane() = default;
  virtual Async<std::vector<lease::Answer>> apply(lease::Batch batch) = 0;
  // `not_found` where nobody has wished or told anything of the stream.
  virtual Async<StreamRecord> record(SubjectId id) = 0;
  // All records of the orchestrator's tenant.
  virtual Async<std::vector<StreamRecord>> records() = 0;
  virtual Async<Nothing> tell(StreamTold told) = 0;
  // Publishes an event about a stream: what became of it, under its lease.
  virtual Async<Nothing> publish(event::Event event) = 0;
  // Calls `each` for every order until the connection ends; the error says why it ended.
  virtual boost::asio::awaitable<Status> follow(std::function<void(const StreamOrder&)> each) = 0;
};

}  // namespace weir
