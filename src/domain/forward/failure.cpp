#include "weir/forward/failure.hpp"

namespace weir::forward {

namespace {
using enum Kind;
constexpr KindRow kRows[] = {
    {none, "none", Side::neither, kExitClean, "Nothing went wrong."},
    {config_invalid, "config_invalid", Side::neither, kExitConfiguration,
     "Correct the setting that the message names; the same words will fail again."},
    {codec_unsupported, "codec_unsupported", Side::input, kExitConfiguration,
     "Publish H.264 video and AAC audio, which every destination takes; the message says what this one does not take."},
    {rtsp_dns, "rtsp_dns", Side::input, kExitInputNotReady,
     "The hub's name does not resolve on this machine; check MEDIAMTX_RTSP_BASE."},
    {rtsp_connect, "rtsp_connect", Side::input, kExitInputNotReady,
     "Nothing listens at the hub's address; check that it runs, and MEDIAMTX_RTSP_BASE."},
    {rtsp_timeout, "rtsp_timeout", Side::input, kExitInputNotReady,
     "The hub does not answer; check its load, and the network and firewall between."},
    {rtsp_tls, "rtsp_tls", Side::input, kExitInputNotReady,
     "The encrypted connection to the hub fails; check its port and certificate."},
    {rtsp_auth, "rtsp_auth", Side::input, kExitInputNotReady,
     "The hub refuses to let this stream be read; give user and password in MEDIAMTX_RTSP_BASE."},
    {rtsp_not_found, "rtsp_not_found", Side::input, kExitInputNotReady,
     "Nobody publishes this stream on the hub now; look at its publisher."},
    {rtsp_protocol, "rtsp_protocol", Side::input, kExitInputNotReady,
     "The hub broke the conversation off; its log says why."},
    {rtsp_ended, "rtsp_ended", Side::input, kExitInputNotReady,
     "The stream ended on the hub; it is read again as soon as somebody publishes it."},
    {rtsp_stalled, "rtsp_stalled", Side::input, kExitInputNotReady,
     "The hub's connection stands, but no media arrive; look at the publisher."},
    {rtmp_dns, "rtmp_dns", Side::output, kExitTransient,
     "The destination's name does not resolve on this machine; check DEST_RTMP_URL and the name server."},
    {rtmp_refused, "rtmp_refused", Side::output, kExitTransient,
     "Nothing listens at the destination's address and port; check both."},
    {rtmp_timeout, "rtmp_timeout", Side::output, kExitTransient,
     "The destination cannot be reached or does not answer; check the address and the firewall between."},
    {rtmp_tls, "rtmp_tls", Side::output, kExitTransient,
     "The destination's certificate is not accepted, or it does not speak TLS there; check port, name and dest_ca_file."},
    {rtmp_reset, "rtmp_reset", Side::output, kExitTransient,
     "The destination broke the connection off; where it persists, ask whoever runs it."},
    {rtmp_closed, "rtmp_closed", Side::output, kExitTransient,
     "The destination ended the connection; it may allow one publisher, or less bandwidth."},
    {rtmp_protocol, "rtmp_protocol", Side::output, kExitTransient,
     "What answers at the destination's address does not speak RTMP as expected; check the port."},
    {rtmp_connect_denied, "rtmp_connect_denied", Side::output, kExitDenied,
     "The destination knows no such application, or refuses it; check the path of DEST_RTMP_URL."},
    {rtmp_publish_denied, "rtmp_publish_denied", Side::output, kExitDenied,
     "The destination refuses this stream key; check it, and whether somebody else publishes with it."},
    {rtmp_publish_hangup, "rtmp_publish_hangup", Side::output, kExitTransient,
     "The destination hung up when it was given the stream key; the second time in a row this counts as a denial."},
    {rtmp_busy, "rtmp_busy", Side::output, kExitTransient,
     "Somebody publishes with this stream key already; end the other publisher, or wait until the destination forgets it."},
    {rtmp_server_error, "rtmp_server_error", Side::output, kExitTransient,
     "The destination reported an error in the middle of the stream; the message is its own."},
    {publish_dns, "publish_dns", Side::output, kExitTransient,
     "The hub's name does not resolve on this machine; check MEDIAMTX_RTSP_BASE."},
    {publish_refused, "publish_refused", Side::output, kExitTransient,
     "Nothing listens at the hub's address; check that it runs, and MEDIAMTX_RTSP_BASE."},
    {publish_timeout, "publish_timeout", Side::output, kExitTransient,
     "The hub does not answer a publisher; check its load, and the network and firewall between."},
    {publish_tls, "publish_tls", Side::output, kExitTransient,
     "The encrypted connection to the hub fails; check its port and certificate."},
    {publish_denied, "publish_denied", Side::output, kExitConfiguration,
     "The hub refuses to let this stream be published; give a user that may publish in MEDIAMTX_RTSP_BASE."},
    {publish_reset, "publish_reset", Side::output, kExitTransient,
     "The hub broke the publisher's connection off; its log says why."},
    {publish_closed, "publish_closed", Side::output, kExitTransient,
     "The hub ended the publisher's connection; look whether somebody else publishes to the same path."},
    {publish_protocol, "publish_protocol", Side::output, kExitTransient,
     "The hub's answer to the publisher is not understood; its log says why."},
    {io_timeout, "io_timeout", Side::output, kExitTransient,
     "The destination has stopped taking data though the connection stands; check it and the network between."},
    {deadline, "deadline", Side::neither, kExitTransient,
     "Nobody extended this forwarder's right to send; look at its supervisor."},
    {lease_socket_busy, "lease_socket_busy", Side::neither, kExitTransient,
     "Another forwarder answers on lease_socket; it ends by itself when its right to send is over."},
    {internal, "internal", Side::neither, kExitInternal, "This is a mistake in Weir; report it with the log."},
};
}  // namespace

std::span<const KindRow> all_kinds() { return kRows; }

const KindRow& row_of(Kind kind) {
  const KindRow& row = kRows[static_cast<size_t>(kind)];
  WEIR_ASSERT(row.kind == kind);
  return row;
}

Error failure(Kind kind, std::string message) {
  return Error{Errc::unavailable, std::string(to_string(kind)), std::move(message)};
}

Failure failure_of(const Error& error) {
  for (const KindRow& row : kRows)
    if (row.name == error.reason) return {row.kind, error.message};
  return {Kind::internal, error.message};
}

}  // namespace weir::forward
