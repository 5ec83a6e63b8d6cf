// Wishes for a published stream as a person types them and sees them.
//
// `weir stream set` takes words of the form KEY=VALUE: forward, destination, mode, max_fps, and pref.NAME for a
// preference that the stream's worker is handed. Nothing after the = takes the wish back. The control plane judges the
// values; only their form is looked at here. Pure functions; main thread only.
#pragma once

#include "weir/base/json.hpp"

#include <string>
#include <vector>

namespace weir::apps {

// The wishes as they shall be: those that there are, changed by the words. A usage error names a word that is wrong and
// repeats no value.
Result<json::object> changed_wishes(json::object present, const std::vector<std::string>& words);

// An answer for a screen: the key of a destination, which an administrator's token sees, must not stay in a terminal's
// history.
json::value without_stream_key(json::value stream);

// Why a stream does not run as wished, for a table; "" where all is well.
std::string stream_problem(const json::value& stream);

}  // namespace weir::apps
