#include "weir/restart/retry_policy.hpp"

#include "weir/base/result.hpp"

namespace weir::restart {

namespace {
// The random share is a fifth: enough to spread a recorder's forty cameras, and the first delay stays what it says.
constexpr Backoff grow(Duration first, Duration cap) { return {first, cap, 2.0, 0.2}; }

using enum StreamErrorCode;
constexpr std::array<RetryPolicy, kStreamErrorCodeNames.size()> kPolicies = {{
    {rtsp_auth_failed, grow(8s, 10min), Side::camera,
     "The user or password is wrong; Weir tries rarely, because the camera may lock the account."},
    {rtsp_not_found, grow(5s, 2min), Side::camera,
     "The camera answers but knows no stream of this path; check the path."},
    {rtsp_protocol, grow(500ms, 15s), Side::camera,
     "The camera broke the conversation off; where it persists, look at its load and its limit of sessions."},
    {tcp_refused, grow(1s, 30s), Side::runner,
     "Nothing listens at this address and port; check the port, and that RTSP is switched on in the camera."},
    {tcp_timeout, grow(1s, 30s), Side::runner,
     "The camera cannot be reached from this machine; check power, cable, address and firewall."},
    {dns_failed, grow(2s, 1min), Side::runner,
     "The camera's name does not resolve on this machine; check the name or use the address."},
    {tls_failed, grow(5s, 2min), Side::camera,
     "The encrypted connection fails; check the port, the certificate and the camera's TLS versions."},
    {codec_unsupported, grow(30s, 10min), Side::camera,
     "The video cannot be decoded here; set the camera to H.264, H.265 or MJPEG."},
    {decode_error, grow(1s, 1min), Side::camera,
     "The pictures arrive damaged; use TCP, look for packet loss, and restart the camera's encoder."},
    {stalled, grow(500ms, 15s), Side::camera,
     "The connection stands, but no pictures arrive; look at the camera's load."},
    {url_refused, grow(30s, 10min), Side::camera,
     "The URL leads to where Weir does not go; correct the camera's configuration."},
    {model_error, grow(5s, 5min), Side::runner, "The detector's model cannot be used on this machine; check its file."},
}};
}  // namespace

const RetryPolicy& retry_policy(StreamErrorCode code) {
  for (const RetryPolicy& policy : kPolicies)
    if (policy.code == code) return policy;
  panic("a code without a retry policy", __FILE__, __LINE__);
}

Duration retry_delay(StreamErrorCode code, int attempt, double draw) {
  return retry_policy(code).backoff.delay(attempt, draw);
}

}  // namespace weir::restart
