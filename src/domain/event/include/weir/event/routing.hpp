// Routing keys: where an event goes, as words with dots between them.
//
// A word made from an id cannot change the routing: dots, `*`, `#`, blanks and control characters become `_`, and an id
// longer than kWordBytesMax is cut and ends in a hash of the whole, so that every key stays within AMQP's 255 bytes.
// Different ids may therefore share a word; the payload holds the id itself. Plain functions; any thread.
#pragma once

#include "weir/base/ids.hpp"

#include <string>
#include <string_view>

namespace weir::event {

inline constexpr size_t kKeyBytesMax = 255;
inline constexpr size_t kWordBytesMax = 72;

// Where a camera, or a published stream, stands: the last three words of its keys.
struct Place {
  TenantId tenant;
  SiteId site;
  CameraId camera;
};

std::string routing_word(std::string_view id);

std::string detections_key(const Place& place);                             // detections.<tenant>.<site>.<camera>
std::string status_key(const Place& place);                                 // stream.status.…
std::string error_key(const Place& place);                                  // stream.error.…
std::string lease_key(std::string_view what, const Place& place);           // lease.<what>.…
std::string camera_key(std::string_view what, const Place& place);          // camera.created|updated|deleted.…
std::string publication_key(std::string_view what, const Place& place);     // publication.<state>|ordered.…
// <what>.<tenant>.<id>, of what is no camera's: "display.created" and the like.
std::string desire_key(std::string_view what, const TenantId& tenant, std::string_view id);
std::string heartbeat_key(const RunnerId& runner);                          // runner.heartbeat.<runner>

}  // namespace weir::event
