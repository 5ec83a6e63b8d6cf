#include "weir/restart/stream_error.hpp"

namespace weir::restart {

std::string_view to_string(StreamErrorCode code) {
  for (const auto& [each, name] : kStreamErrorCodeNames)
    if (each == code) return name;
  return "RTSP_PROTOCOL";
}

}  // namespace weir::restart
