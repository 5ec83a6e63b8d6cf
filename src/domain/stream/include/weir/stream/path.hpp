// A published stream and its two paths on MediaMTX: people publish `live/<id>/in`, the stream's worker `live/<id>/out`.
//
// The id has 1 to 64 letters, digits, '_' and '-'; it stands in paths, URLs, file names and metric labels as it is.
// Pure functions; any thread.
#pragma once

#include "weir/base/ids.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace weir::stream {

struct StreamTag {
  static constexpr std::string_view name = "stream_id";
};
using StreamId = Id<StreamTag>;

// Fails with a sentence that says what an id may hold, without repeating the text.
Result<StreamId> read_stream_id(std::string_view text);

std::string input_path(const StreamId& id);
std::string output_path(const StreamId& id);

// The stream whose path this is; nothing where it is no such path.
std::optional<StreamId> stream_of_input(std::string_view path);
std::optional<StreamId> stream_of_output(std::string_view path);

}  // namespace weir::stream
