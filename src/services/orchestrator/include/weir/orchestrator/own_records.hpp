// OwnRecords: the records of streams as an orchestrator without a control plane shows and changes them.
//
// It answers as a control plane does. What runs is told as the orchestrator knows it now, with the operator's wishes
// beside it; of a stream that does not run there is the record alone. Wishes are checked, stored, and counted from then
// on: the orchestrator is told to read them again. An orchestrator with a control plane has no records of its own: it
// shows what runs here, and refuses to store wishes. Loop thread only.
#pragma once

#include "weir/base/json.hpp"
#include "weir/orchestrator/orchestrator.hpp"

namespace weir::orchestrator {

class OwnRecords {
 public:
  // `records`: null where a control plane keeps them. `home`: where a stream stands of which nobody said so.
  OwnRecords(Orchestrator& orchestrator, Streams* records, lease::Home home)
      : orchestrator_(orchestrator), records_(records), home_(std::move(home)) {}

  Async<json::object> show(stream::StreamId id, stream::Credentials credentials) const;
  Async<std::vector<json::object>> list(stream::Credentials credentials) const;
  Async<json::object> put(stream::StreamId id, json::object wishes);
  Async<Nothing> remove(stream::StreamId id);

 private:
  json::object write(const StreamRecord& record, stream::Credentials credentials) const;

  Orchestrator& orchestrator_;
  Streams* const records_;
  const lease::Home home_;
};

}  // namespace weir::orchestrator
