// Hook: what MediaMTX's hooks say of a publisher that came or went, and how its query string is read.
//
//   {"path":"live/demo/in", "query":"lang=es", "sourceType":"rtmpConn", "sourceId":"6f…"}
//
// Only the path is required. Source types are MediaMTX's and may be any text. Older versions of MediaMTX give the query
// as the publisher wrote it, newer ones percent-encoded as one text; both are read. A query is a secret: publishers
// carry their user and password in it. Pure functions; any thread.
#pragma once

#include "weir/base/json.hpp"
#include "weir/stream/path.hpp"

#include <map>

namespace weir::stream {

inline constexpr size_t kPathMax = 512, kQueryMax = 4096, kSourceMax = 255;

// Who publishes a stream: one connection to MediaMTX. An id is never used twice; an empty one is unknown.
struct Source {
  std::string type = {};
  std::string id = {};
  Secret query = {};  // as MediaMTX gave it; see read_query
  friend bool operator==(const Source&, const Source&) = default;
};
// Whether the two ids name different publishers for certain.
inline bool differ(std::string_view id, std::string_view other) {
  return !id.empty() && !other.empty() && id != other;
}

struct Hook {
  StreamId stream;
  Source source;
};
// Errors name the field; none repeats a value.
Result<Hook> read_hook(const json::value& body);
Result<Hook> read_hook_text(std::string_view body);

using Query = std::map<std::string, Secret>;
// Of a name that occurs twice the first value counts; at most 64 names are read.
Query read_query(const Secret& query);

}  // namespace weir::stream
