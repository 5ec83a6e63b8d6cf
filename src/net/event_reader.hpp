// EventReader: the text of an event stream in, events out. Knows no socket. Loop thread only.
#pragma once

#include "weir/net/client.hpp"

namespace weir::net {

class EventReader {
 public:
  explicit EventReader(size_t event_bytes_max) : event_bytes_max_(event_bytes_max) {}
  // Calls `each` for every event that `text` completes, and for an id that came alone. False when `each` has had
  // enough, or an event is too large.
  bool feed(std::string_view text, const std::function<bool(const StreamedEvent&)>& each);
  bool too_large() const { return too_large_; }

 private:
  bool end_line(const std::function<bool(const StreamedEvent&)>& each);
  void take_field(std::string_view name, std::string_view value);

  const size_t event_bytes_max_;
  std::string line_;
  StreamedEvent event_;
  bool has_data_ = false, has_id_ = false;
  bool after_return_ = false;  // "\r\n" ends one line, not two
  bool first_line_ = true;
  bool too_large_ = false;
};

}  // namespace weir::net
