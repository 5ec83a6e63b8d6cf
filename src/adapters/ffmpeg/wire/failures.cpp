#include "failures.hpp"

#include "av.hpp"

#include <fmt/format.h>

namespace weir::ffmpeg {

using restart::StreamErrorCode;

Error interrupted() { return Error{Errc::unavailable, "interrupted", "the source was told to stop"}; }

namespace {
Error status_failure(int status, const std::string& method) {
  switch (status) {
    case 401: return stream_failure(StreamErrorCode::rtsp_auth_failed, "401 Unauthorized");
    case 403: return stream_failure(StreamErrorCode::rtsp_auth_failed, "403 Forbidden");
    case 404: return stream_failure(StreamErrorCode::rtsp_not_found, "404 Not Found");
    case 453:
    case 503:
      return stream_failure(StreamErrorCode::rtsp_protocol,
                            fmt::format("{}: the camera has no room for another session", status));
    case 461:
      return stream_failure(StreamErrorCode::rtsp_protocol, "461: the camera does not offer this transport");
    default:
      return stream_failure(StreamErrorCode::rtsp_protocol,
                            method.empty() ? fmt::format("the camera answered {}", status)
                                           : fmt::format("the camera answered {} to {}", status, method));
  }
}
}  // namespace

Error open_failure(int error, Ended ended, const LogTap::Heard& heard, Duration timeout) {
  if (heard.redirected)
    return stream_failure(StreamErrorCode::url_refused, "the camera redirects elsewhere, which is not followed");
  if (ended == Ended::by_interrupt) return interrupted();
  if (ended == Ended::at_deadline || error == AVERROR(ETIMEDOUT)) {
    if (heard.answered)
      return stream_failure(StreamErrorCode::rtsp_protocol,
                            fmt::format("the camera did not finish an answer within {} s", seconds(timeout)));
    return stream_failure(StreamErrorCode::tcp_timeout,
                          fmt::format("{} within {} s", heard.connected ? "connected, but no answer" : "no connection",
                                      seconds(timeout)));
  }
  switch (error) {
    case AVERROR_HTTP_UNAUTHORIZED: return status_failure(401, {});
    case AVERROR_HTTP_FORBIDDEN: return status_failure(403, {});
    case AVERROR_HTTP_NOT_FOUND: return status_failure(404, {});
    case AVERROR(ECONNREFUSED): return stream_failure(StreamErrorCode::tcp_refused, "the connection was refused");
    case AVERROR(EHOSTUNREACH):
    case AVERROR(ENETUNREACH):
    case AVERROR(ENETDOWN):
    case AVERROR(EHOSTDOWN): return stream_failure(StreamErrorCode::tcp_timeout, "no route to the camera");
    default: break;
  }
  if (heard.tls) return stream_failure(StreamErrorCode::tls_failed, "the TLS handshake failed");
  if (heard.status != 0) return status_failure(heard.status, heard.method);
  if (error == AVERROR(EPROTONOSUPPORT)) return status_failure(461, {});
  if (heard.connected && !heard.answered)
    return stream_failure(StreamErrorCode::rtsp_protocol, "the camera closed the connection without an answer");
  return stream_failure(StreamErrorCode::rtsp_protocol,
                        fmt::format("the camera's answer is not understood: {}", av_words(error)));
}

Error read_failure(int error, Ended ended, Duration timeout) {
  if (ended == Ended::by_interrupt) return interrupted();
  if (ended == Ended::at_deadline || error == AVERROR(ETIMEDOUT))
    return stream_failure(StreamErrorCode::stalled, fmt::format("no picture for {} s", seconds(timeout)));
  if (error == AVERROR_EOF) return stream_failure(StreamErrorCode::rtsp_protocol, "the camera ended the stream");
  return stream_failure(StreamErrorCode::rtsp_protocol, fmt::format("the stream broke off: {}", av_words(error)));
}

}  // namespace weir::ffmpeg
