// MediaServer: what a media server says of its paths, as the orchestrator asks it.
//
// Somebody publishes to a path, any number of others read it. A publication and a reader have an id of their own, which
// a new connection never shares with an old one: so a caller recognises a takeover. Every call ends within a bound; an
// error means that nothing is known, never that a path is gone. Loop thread only.
#pragma once

#include "weir/ports/async.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir {

// A connection by the type that the server gives it ("rtspSession", "rtmpConn" …) and its id. Both are "" for nobody.
struct MediaClient {
  std::string type, id;
  friend bool operator==(const MediaClient&, const MediaClient&) = default;
};

struct MediaPath {
  std::string name;
  bool ready = false;  // somebody publishes, and readers get what he sends
  std::string source_type = {}, source_id = {};  // "" where nobody publishes
  std::vector<MediaClient> readers = {};
  std::vector<std::string> tracks = {};  // codecs as the server words them: "H264", "MPEG-4 Audio", "Opus"
  std::uint64_t inbound_bytes = 0;       // since the path became ready
  friend bool operator==(const MediaPath&, const MediaPath&) = default;
};

class MediaServer {
 public:
  virtual ~MediaServer() = default;

  // The paths whose names `wanted` accepts, ordered by name. A server with many paths tells them in pages. The list is
  // read again where paths are seen to come or go meanwhile; still, one can be left out where another appears at the
  // same time: whoever acts on an absence asks `find` first.
  virtual Async<std::vector<MediaPath>> list(std::function<bool(std::string_view)> wanted) = 0;
  // One path; none where the server has no such path.
  virtual Async<std::optional<MediaPath>> find(std::string name) = 0;
  // Ends that connection; not_found where it is gone already, unsupported where its type has none that can be ended.
  virtual Async<Nothing> kick(MediaClient client) = 0;
};

}  // namespace weir
