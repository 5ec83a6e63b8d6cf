// Failure: what went wrong with a forward, in a word (`error.kind`) that a person and a supervisor can act on.
//
// One table row a kind: whose fault it is, whether trying again can help, and what a person can do about it. The detail
// is one short sentence without any secret. Plain values; any thread.
#pragma once

#include "weir/base/result.hpp"

#include <span>
#include <string>
#include <string_view>

namespace weir::forward {

enum class Kind {
  none,
  config_invalid,
  codec_unsupported,
  // The hub's side.
  rtsp_dns,
  rtsp_connect,        // refused, or no route
  rtsp_timeout,
  rtsp_tls,
  rtsp_auth,
  rtsp_not_found,      // nobody publishes this stream on the hub
  rtsp_protocol,
  rtsp_ended,          // a stream that was there ended
  rtsp_stalled,        // the connection stands, nothing arrives
  // The destination's side.
  rtmp_dns,
  rtmp_refused,
  rtmp_timeout,        // no answer while connecting
  rtmp_tls,
  rtmp_reset,
  rtmp_closed,         // the destination ended the connection in good order
  rtmp_protocol,
  rtmp_connect_denied, // the application
  rtmp_publish_denied, // the stream key
  rtmp_publish_hangup, // the destination hung up at the stream key: twice in a row this is a denial
  rtmp_busy,           // somebody else publishes under that key, or our own last connection still does
  rtmp_server_error,   // the destination said so in the middle of the stream
  // The hub as a destination, to which a stream is published.
  publish_dns,
  publish_refused,
  publish_timeout,
  publish_tls,
  publish_denied,      // the hub does not let this client publish there
  publish_reset,
  publish_closed,      // the hub ended the connection; another publisher may have taken the path over
  publish_protocol,
  // Either destination.
  io_timeout,          // nothing acknowledged for too long
  // Neither.
  deadline,            // the right to send ended
  lease_socket_busy,   // another forwarder answers there
  internal,
};

// Exit codes, as supervisors read them.
inline constexpr int kExitClean = 0, kExitConfiguration = 10, kExitInputNotReady = 20, kExitDenied = 30,
                     kExitTransient = 40, kExitInternal = 50;

enum class Side { input, output, neither };

struct KindRow {
  Kind kind;
  std::string_view name;    // `error.kind`
  Side side;
  int exit;                 // of the process, where this kind ends it; kExitTransient kinds are tried again before
  std::string_view advice;  // one sentence for a person
};

std::span<const KindRow> all_kinds();
const KindRow& row_of(Kind kind);
inline std::string_view to_string(Kind kind) { return row_of(kind).name; }
// Whether another try with the same settings may succeed.
inline bool worth_retrying(Kind kind) {
  int exit = row_of(kind).exit;
  return exit == kExitTransient || exit == kExitInputNotReady;
}

struct Failure {
  Kind kind = Kind::none;
  std::string message = {};
};
// A Failure travels as an Error whose reason is the kind's name.
Error failure(Kind kind, std::string message);
Failure failure_of(const Error& error);

}  // namespace weir::forward
