// Message: what a manager tells a running worker, and what the worker answers.
//
// Each kind has a route of its own; `write_message` is the body that the manager posts there, the `read_…` functions
// are the worker's half. A worker reads a message completely before it changes anything. Its answer counts what was
// done; where the worker stopped publishing for cameras, it says what was last published for each (LastWord), so that
// a successor repeats nothing. Pure functions; any thread.
#pragma once

#include "weir/link/shard.hpp"

#include <variant>

namespace weir::link {

// Cameras to take on, or to change, and cameras to let go of, without touching another.
struct ChangeSources {
  static constexpr std::string_view route = "/sources";
  std::vector<Source> add = {};
  std::vector<CameraId> remove = {};
};
// Later deadlines, cameras that another owner has by now, and where and by which token to publish. Where a field is
// empty, the worker keeps what it has.
struct Leases {
  static constexpr std::string_view route = "/leases";
  std::vector<LeaseGrant> items = {};  // each extends a right that the worker has
  std::vector<CameraId> lost = {};
  std::string base_url = {};
  Secret token = {};
};
// The right to publish for cameras with which the worker has stood by.
struct Activate {
  static constexpr std::string_view route = "/activate";
  std::vector<LeaseGrant> items = {};
};
// The worker publishes nothing more for these cameras; it goes on decoding their streams.
struct Silence {
  static constexpr std::string_view route = "/silence";
  std::vector<CameraId> cameras = {};
};
// The worker publishes what it still has, and ends.
struct Drain {
  static constexpr std::string_view route = "/drain";
};
using Message = std::variant<ChangeSources, Leases, Activate, Silence, Drain>;

std::string_view route_of(const Message& message);
json::object write_message(const Message& message);
// How long the manager waits for the worker's answer.
Duration answer_within(const Message& message);

// `max_fps` is the shard's: it holds for cameras that name none.
Result<ChangeSources> read_change_sources(const json::value& body, double max_fps);
Result<Leases> read_lease_message(const json::value& body);
Result<Activate> read_activate(const json::value& body);
Result<Silence> read_silence(const json::value& body);

struct LastWord {
  CameraId camera;
  std::optional<WallTime> last_capture = {};  // of the last event that was emitted
  friend bool operator==(const LastWord&, const LastWord&) = default;
};

// `said` are the cameras that were removed or silenced.
json::object write_answer(const Message& message, const std::vector<LastWord>& said = {});
Result<std::vector<LastWord>> read_answer(const Message& message, std::string_view body);

}  // namespace weir::link
