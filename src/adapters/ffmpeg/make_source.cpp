#include "wire/address.hpp"
#include "decoding_source.hpp"

#include <boost/url/parse.hpp>

namespace weir::ffmpeg {

Result<std::unique_ptr<VideoSource>> make_source(const SourceConfig& config) {
  auto refused = [](std::string why) { return stream_failure(restart::StreamErrorCode::url_refused, std::move(why)); };
  auto url = boost::urls::parse_uri(config.url.reveal());
  if (!url) return refused("the camera's URL cannot be read as a URL");
  std::string scheme = scheme_of(*url);
  if (scheme == "rtsps" && config.tls_verify)
    return refused("certificates cannot be verified over rtsps; switch the verification off for this camera");
  if (scheme == "rtsp" || scheme == "rtsps") return make_stream_source(config, scheme);
  if (scheme == "http" || scheme == "https") return make_snapshot_source(config, scheme);
  if (scheme != "file") return refused("the camera's URL must start with rtsp, rtsps, http or https");
  if (!config.files) return refused("files are not allowed as cameras here");
  return make_stream_source(config, scheme);
}

}  // namespace weir::ffmpeg
