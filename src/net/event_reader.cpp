#include "event_reader.hpp"

namespace weir::net {

bool EventReader::feed(std::string_view text, const std::function<bool(const StreamedEvent&)>& each) {
  while (!text.empty()) {
    if (after_return_ && text.front() == '\n') text.remove_prefix(1);
    after_return_ = false;
    size_t end = text.find_first_of("\r\n");
    line_ += text.substr(0, end);
    too_large_ = line_.size() + event_.data.size() > event_bytes_max_;
    if (too_large_) return false;
    if (end == std::string_view::npos) return true;
    after_return_ = text[end] == '\r';
    text.remove_prefix(end + 1);
    if (!end_line(each)) return false;
  }
  return true;
}

bool EventReader::end_line(const std::function<bool(const StreamedEvent&)>& each) {
  std::string line = std::exchange(line_, {});
  if (std::exchange(first_line_, false) && line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);
  if (!line.empty()) {
    size_t colon = line.find(':');
    std::string_view value;
    if (colon != std::string::npos) value = std::string_view(line).substr(colon + 1);
    if (!value.empty() && value.front() == ' ') value.remove_prefix(1);
    take_field(std::string_view(line).substr(0, colon), value);
    return true;
  }
  // The id stays in force for the events that follow; name and data are this event's own.
  bool complete = std::exchange(has_data_, false);
  event_.progress = std::exchange(has_id_, false) && !complete;
  bool more = !(complete || event_.progress) || each(event_);
  event_.event.clear();
  event_.data.clear();
  return more;
}

void EventReader::take_field(std::string_view name, std::string_view value) {
  if (name == "id") {
    if (value.find('\0') == std::string_view::npos) event_.id = value, has_id_ = true;
  } else if (name == "event") {
    event_.event = value;
  } else if (name == "data") {
    if (has_data_) event_.data += '\n';
    event_.data += value;
    has_data_ = true;
  }
}

}  // namespace weir::net
