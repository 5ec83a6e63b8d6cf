// StreamError: what went wrong with a camera's stream, in a word that a person and a program understand.
//
// The code decides how the stream is tried again (retry_policy.hpp); the detail is one short sentence without any
// secret. Plain values; any thread.
#pragma once

#include "weir/base/json.hpp"

#include <array>
#include <string>

namespace weir::restart {

enum class StreamErrorCode {
  rtsp_auth_failed,
  rtsp_not_found,
  rtsp_protocol,
  tcp_refused,
  tcp_timeout,
  dns_failed,
  tls_failed,
  codec_unsupported,
  decode_error,
  stalled,
  url_refused,
  model_error,
};
inline constexpr std::array<json::EnumName<StreamErrorCode>, 12> kStreamErrorCodeNames = {{
    {StreamErrorCode::rtsp_auth_failed, "RTSP_AUTH_FAILED"},
    {StreamErrorCode::rtsp_not_found, "RTSP_NOT_FOUND"},
    {StreamErrorCode::rtsp_protocol, "RTSP_PROTOCOL"},
    {StreamErrorCode::tcp_refused, "TCP_REFUSED"},
    {StreamErrorCode::tcp_timeout, "TCP_TIMEOUT"},
    {StreamErrorCode::dns_failed, "DNS_FAILED"},
    {StreamErrorCode::tls_failed, "TLS_FAILED"},
    {StreamErrorCode::codec_unsupported, "CODEC_UNSUPPORTED"},
    {StreamErrorCode::decode_error, "DECODE_ERROR"},
    {StreamErrorCode::stalled, "STALLED"},
    {StreamErrorCode::url_refused, "URL_REFUSED"},
    {StreamErrorCode::model_error, "MODEL_ERROR"},
}};
constexpr auto& enum_names(StreamErrorCode) { return kStreamErrorCodeNames; }
std::string_view to_string(StreamErrorCode code);

struct StreamError {
  StreamErrorCode code = StreamErrorCode::rtsp_protocol;
  std::string detail;
};

}  // namespace weir::restart
