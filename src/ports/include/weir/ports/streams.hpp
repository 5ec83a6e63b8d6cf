// Streams: the published streams: what an operator wants of each, and what its orchestrator said of it last.
//
// A stream has a record when an operator has put wishes for it, or when an orchestrator that holds its lease has told
// of it; either may come first. Its id is a lease's subject, so no camera has it. What is told is fenced: only the
// holder's word under the lease's present version counts. `wishes` may hold a destination's key: a store keeps it, and
// only those who may forward the stream are shown it. Tenant-scoped callers pass their tenant; an empty one means all.
// Loop thread only; the plain functions: any thread.
#pragma once

#include "weir/base/ids.hpp"
#include "weir/base/time.hpp"
#include "weir/lease/row.hpp"
#include "weir/ports/async.hpp"

#include <boost/json/object.hpp>

#include <vector>

namespace weir {

struct StreamRecord {
  SubjectId id;
  TenantId tenant = {};
  SiteId site = {};
  boost::json::object wishes = {};  // of operators
  boost::json::object memory = {};  // what an orchestrator needs that continues the stream
  boost::json::object view = {};    // what people read of it
  WallTime told_at{};               // when memory and view were told; zero: never
  WallTime created_at{};
  WallTime updated_at{};            // of the wishes
  RunnerId holder = {};             // who has its lease now, if anybody; filled on reading
};

// What the holder of a stream's lease says of it.
struct StreamTold {
  SubjectId id;
  lease::Owner by;
  lease::Version version;
  boost::json::object memory;
  boost::json::object view;
};

// The answer to a word that does not count: its speaker no longer holds the stream under that version.
Error stale_word();
// An object that a store keeps as text; where the text is no object, an empty one.
boost::json::object read_object(std::string_view text);

class Streams {
 public:
  virtual ~Streams() = default;

  // Makes the stream or replaces its wishes. `conflict` where the id is a camera's, or another tenant's stream's.
  virtual Async<StreamRecord> put_stream(StreamRecord stream) = 0;
  virtual Async<Nothing> tell_stream(StreamTold told) = 0;
  virtual Async<std::vector<StreamRecord>> list_streams(TenantId tenant, SubjectId after, int limit) = 0;
  virtual Async<StreamRecord> show_stream(SubjectId id, TenantId tenant) = 0;
  virtual Async<Nothing> remove_stream(SubjectId id, TenantId tenant) = 0;  // only one that nobody holds
};

}  // namespace weir
