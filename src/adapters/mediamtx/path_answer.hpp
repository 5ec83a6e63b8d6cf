// What MediaMTX answers about its paths, read into the port's values.
//
// In MediaMTX 1.13 a path has `ready`, `tracks` (names) and `bytesReceived`; 1.21 adds `available`, `online`, `tracks2`
// (objects) and `inboundBytes` and announces that the old names will go. Where both are there, the new ones count.
// Unknown fields are ignored. Plain functions; any thread.
#pragma once

#include "weir/ports/media_server.hpp"

#include <boost/json/value.hpp>

namespace weir::mediamtx {

// One page of the list: the paths whose names are wanted, and what the server says of the whole.
struct Page {
  std::int64_t pages = 0, paths = 0;  // of the whole list
  std::string first, last;            // names on this page, wanted or not; "" where it is empty
  std::vector<MediaPath> kept;
};
Result<Page> read_page(std::string_view body, const std::function<bool(std::string_view)>& wanted);
Result<MediaPath> read_path(const boost::json::value& item);
Error bad_answer();

}  // namespace weir::mediamtx
