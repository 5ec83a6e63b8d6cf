#include "weir/ports/model_files.hpp"

#include "weir/ports/video_source.hpp"

#include <algorithm>

namespace weir {

Error model_failure(std::string sentence) {
  return stream_failure(restart::StreamErrorCode::model_error, std::move(sentence));
}

std::vector<std::string> split_labels(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  std::vector<std::string> labels;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    size_t from = line.find_first_not_of(kSpace);
    labels.emplace_back(from == line.npos ? "" : line.substr(from, line.find_last_not_of(kSpace) - from + 1));
    at = end + 1;
  }
  while (!labels.empty() && labels.back().empty()) labels.pop_back();
  return labels;
}

}  // namespace weir
