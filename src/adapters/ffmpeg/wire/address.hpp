// Where FFmpeg is sent: a URL's scheme as FFmpeg knows it, and the same URL with the address in place of the name, so
// that the name is not resolved a second time. A name with several addresses is dialled at another one after the last
// could not be reached. Any thread.
#pragma once

#include "weir/ffmpeg/address.hpp"
#include "weir/ports/video_source.hpp"

#include <boost/url/url_view.hpp>

#include <functional>
#include <vector>

namespace weir::ffmpeg {

// In small letters: people may write others, FFmpeg compares.
std::string scheme_of(const boost::urls::url_view& url);

// As the URL says, or its scheme's own; 0 where it is no URL.
int port_of(const Secret& url);
// The host as URLs and HTTP write it: an IPv6 address in brackets.
std::string bracketed(const std::string& host);

// A name's addresses, the preferred one first.
using Lookup = std::function<Result<std::vector<std::string>>(const std::string& host)>;
// The lookup of the system. Blocks.
Result<std::vector<std::string>> system_lookup(const std::string& host);
// As `resolve`, with a lookup of the caller's in place of the system's.
Result<Address> resolve_by(const Lookup& lookup, const Secret& url, bool loopback);
// A dial failed; `connected` where the address itself did answer. Where it did not, the next `resolve` of the same name
// and port answers with the next of its addresses.
void after_dial(const Address& address, const Error& error, bool connected);

}  // namespace weir::ffmpeg
