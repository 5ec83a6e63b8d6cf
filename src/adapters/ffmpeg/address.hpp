// The same URL with the address in place of the name, so that nobody resolves it a second time.
// Pure; any thread.
#pragma once

#include "weir/ffmpeg/source.hpp"

namespace weir::ffmpeg {

Secret url_at(const Secret& url, const Address& address);

}  // namespace weir::ffmpeg
