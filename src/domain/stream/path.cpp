#include "weir/stream/path.hpp"

#include "weir/forward/destination.hpp"

namespace weir::stream {

namespace {

constexpr std::string_view kPrefix = "live/", kInput = "/in", kOutput = "/out";

std::optional<StreamId> between(std::string_view path, std::string_view suffix) {
  if (!path.starts_with(kPrefix) || !path.ends_with(suffix) || path.size() < kPrefix.size() + suffix.size())
    return std::nullopt;
  std::string_view id = path.substr(kPrefix.size(), path.size() - kPrefix.size() - suffix.size());
  if (!forward::valid_stream_id(id)) return std::nullopt;
  return StreamId::trusted(std::string(id));
}

}  // namespace

Result<StreamId> read_stream_id(std::string_view text) {
  if (forward::valid_stream_id(text)) return StreamId::trusted(std::string(text));
  return Error{Errc::invalid, "bad_id", "stream_id must have 1 to 64 letters, digits, '_' and '-'",
               {{"field", StreamTag::name}}};
}

std::string input_path(const StreamId& id) { return fmt::format("{}{}{}", kPrefix, id, kInput); }
std::string output_path(const StreamId& id) { return fmt::format("{}{}{}", kPrefix, id, kOutput); }

std::optional<StreamId> stream_of_input(std::string_view path) { return between(path, kInput); }
std::optional<StreamId> stream_of_output(std::string_view path) { return between(path, kOutput); }

}  // namespace weir::stream
