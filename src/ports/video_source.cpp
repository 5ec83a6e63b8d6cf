#include "weir/ports/video_source.hpp"

namespace weir {

Error stream_failure(restart::StreamErrorCode code, std::string detail) {
  return Error{Errc::unavailable, std::string(to_string(code)), std::move(detail)};
}

restart::StreamError stream_error(const Error& error) {
  for (const auto& [code, name] : restart::kStreamErrorCodeNames)
    if (name == error.reason) return {code, error.message};
  return {restart::StreamErrorCode::rtsp_protocol, error.message};
}

}  // namespace weir
