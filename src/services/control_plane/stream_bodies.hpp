// The bodies of the stream routes: what operators wish for a published stream, what its holder tells of it, and how
// both look in an answer.
//
// Wishes are checked here and stored as they were read, so that a store never holds any that nobody can read. An answer
// is what the holder told last, with the record's own fields beside it; but of a stream that nobody holds nothing runs,
// whatever was told last. A destination's key is shown to those who may forward the stream, and what an orchestrator
// remembers, which may hold a publisher's secrets, to orchestrators alone. Pure functions; no state.
#pragma once

#include "access.hpp"

#include "weir/base/json.hpp"
#include "weir/ports/stream_plane.hpp"
#include "weir/stream/settings.hpp"

namespace weir::control_plane {

inline constexpr size_t kToldBytesMax = 128 << 10;  // of a body: a list of a thousand streams is read into memory

// The id in the path.
Result<SubjectId> path_stream(const net::Request& request);

struct WishesBody {
  stream::Wishes wishes;
  lease::Home home;  // as far as the body names it
};
Result<WishesBody> read_wishes_body(json::object body);

Result<StreamTold> read_told(const net::Request& request, SubjectId id);

// {"on": true, false or null}; null leaves it to the stream's settings again.
Result<StreamOrder> read_forward(const json::object& body, SubjectId id);

json::object write_stream(const StreamRecord& record, const Caller& caller);
// Whether an operator's order is why the stream does not run.
bool stopped_by_operator(const StreamRecord& record);

}  // namespace weir::control_plane
