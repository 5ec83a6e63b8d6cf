// Where a forward comes from and where it goes, read from the settings and checked before anything is dialled.
//
// `rtmp://host[:port]/app/key`, or rtmps. What follows the application is the stream key, a secret with all its parts, as
// are user, password and query; host and application may be shown. Pure; any thread.
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/secret.hpp"

#include <string>
#include <vector>

namespace weir::forward {

struct Destination {
  Secret url;            // as FFmpeg is given it
  bool tls = false;
  std::string host;      // without brackets
  int port = 0;
  std::string app;       // may be shown
  std::vector<Secret> secrets;  // whatever must not be seen in a text
};
// config_invalid, with a sentence that does not repeat the URL.
Result<Destination> read_destination(const Secret& url);

// "live/<id>/<end>" of a hub, where `end` is "in" or "out". `id` is 1–64 letters, digits, '_' and '-'.
Result<Secret> hub_url(const Secret& base, const std::string& id, std::string_view end);
bool valid_stream_id(std::string_view id);

}  // namespace weir::forward
