// Where a URL leads, found out before FFmpeg sees the URL: a name is looked up once and every address it has is judged.
// Plain values; any thread.
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/secret.hpp"

#include <string>

namespace weir::ffmpeg {

struct Address {
  std::string host;     // as written
  std::string literal;  // "192.0.2.7" or "2001:db8::7": of several, the one whose turn it is
  int port = 0;
};
// DNS_FAILED or URL_REFUSED where a source would not go there. Blocks.
Result<Address> resolve(const Secret& url, bool loopback);
// The URL with the address in place of the name, and its scheme in small letters.
Secret url_at(const Secret& url, const Address& address);

}  // namespace weir::ffmpeg
