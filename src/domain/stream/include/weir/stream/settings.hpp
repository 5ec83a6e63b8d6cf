// Settings: how one published stream is processed and where it is forwarded to.
//
// Three may speak, each in a Wishes value; of two that name the same thing the stronger one counts. In the order of
// their strength: the operator, by the control plane; the streams file, by the stream's id; the publisher, by the query
// string, who names a destination only where the installation allows it. Whatever is wrong fails safe: the worker runs
// with defaults, nothing is forwarded, and `problem` is a sentence that says what to correct and contains no value. A
// publisher's wrong query is ignored as a whole: it cannot take away what the operator set. Plain values and pure
// functions; any thread.
#pragma once

#include "weir/stream/hook.hpp"

#include <array>
#include <map>
#include <optional>
#include <string>

namespace weir::stream {

enum class Mode { annotate, passthrough };
inline constexpr std::array<json::EnumName<Mode>, 2> kModeNames = {
    {{Mode::annotate, "annotate"}, {Mode::passthrough, "passthrough"}}};
constexpr auto& enum_names(Mode) { return kModeNames; }

// Handed to the worker as they are; Weir's own worker ignores those that it does not know.
using Preferences = std::map<std::string, std::string>;

// What one of the three says; what it leaves out is the next one's to say.
struct Wishes {
  std::optional<bool> forward = {};
  std::optional<Secret> destination = {};
  std::optional<Mode> mode = {};
  std::optional<double> max_fps = {};
  Preferences preferences = {};
  std::string problem = {};  // why nothing that was said here counts; "" where all is well
  friend bool operator==(const Wishes&, const Wishes&) = default;
};

// {"forward":true, "destination":"rtmp://…", "mode":"annotate", "max_fps":5, "preferences":{"lang":"es"}}, as the API
// and the streams file have it. Unknown fields are errors.
Result<Wishes> read_wishes(const json::value& v);
enum class Credentials { shown, redacted };
json::object write_wishes(const Wishes& wishes, Credentials credentials);
// The streams file, {"<stream id>": wishes, …}. Of a stream whose entry is wrong, `problem` says why; only a document
// that is no such table at all, or names an impossible id, is an error.
Result<std::map<StreamId, Wishes>> read_streams_file(const json::value& document);
// What a publisher says. Names that are no setting are preferences, except those by which it shows MediaMTX who it is.
Wishes wishes_of(const Query& query, bool destination_allowed);

struct WorkerSettings {
  Mode mode = Mode::annotate;
  double max_fps = 5;
  Preferences preferences = {};
  friend bool operator==(const WorkerSettings&, const WorkerSettings&) = default;
};
struct Settings {
  WorkerSettings worker = {};
  bool forward = false;      // only with a destination that can be used
  Secret destination = {};   // kept while forwarding is off: an operator may switch it on
  std::string problem = {};
  friend bool operator==(const Settings&, const Settings&) = default;
};

Settings merge(const Wishes& from_operator, const Wishes& from_file, const Wishes& from_query);

// "rtmp://host/app/***"; "" for none. The stream key and everything else that is secret is left out.
std::string show_destination(const Secret& destination);

}  // namespace weir::stream
