// Look: by what a manager judges a worker: of each camera whether it streams, what fails and how fresh it is; and which
// cameras hang.
//
// A worker answers it at `GET /look`. The page for people, `GET /state`, says the same in the same words among much
// else, because managers and workers from before the look had only that page: `read_look` reads both. Whatever cannot
// be read is an error, never an exception: a worker that answers nonsense counts as one that does not answer. Pure
// functions; any thread.
#pragma once

#include "weir/base/json.hpp"
#include "weir/base/time.hpp"
#include "weir/link/protocol.hpp"
#include "weir/restart/stream_error.hpp"

#include <optional>
#include <vector>

namespace weir::link {

inline constexpr std::string_view kLookRoute = "/look";
inline constexpr std::string_view kStateRoute = "/state";  // for people; a worker of protocol 0 is measured by it

struct SeenCamera {
  CameraId camera;
  bool streaming = false;
  std::int64_t failures = 0;  // failed dials since it was added
  std::int64_t inferred = 0;  // pictures of it that went through the detector
  bool behind = false;        // it is looked at less often than wanted
  std::optional<Duration> frame_age = {};                  // since its last picture
  std::optional<restart::StreamErrorCode> error = {};      // none also where it is one that this side does not know
  friend bool operator==(const SeenCamera&, const SeenCamera&) = default;
};

struct Look {
  int protocol = 0;
  std::vector<SeenCamera> cameras = {};
  std::vector<CameraId> stuck = {};  // whose thread or picture hangs: only a new worker ends that
  friend bool operator==(const Look&, const Look&) = default;
};

json::object write_look(const Look& look);
Result<Look> read_look(const json::value& said);

}  // namespace weir::link
