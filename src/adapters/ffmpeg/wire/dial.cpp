#include "dial.hpp"

extern "C" {
#include <libavutil/opt.h>
}

#include <boost/url/url.hpp>

namespace weir::ffmpeg {

Result<AvPtr<AVFormatContext>> open_stream(const std::string& url, const AVInputFormat* format, AvOptions& options,
                                           Watch& watch, LogTap& tap, Duration timeout) {
  AVFormatContext* raw = owned(avformat_alloc_context()).release();
  raw->interrupt_callback = watch.callback();
  // FFmpeg follows redirects by itself, to wherever they lead. The only sign is a log line just before; without an
  // allowed protocol there is no next connection.
  tap.on_redirect = [raw] { av_opt_set(raw, "protocol_whitelist", "none", 0); };
  watch.arm(timeout);
  int failed = avformat_open_input(&raw, url.c_str(), format, options.get());
  tap.on_redirect = nullptr;
  if (failed < 0) return open_failure(failed, watch.ended(), tap.heard, timeout);
  return AvPtr<AVFormatContext>(raw);
}

Result<AvPtr<AVFormatContext>> dial_rtsp(const RtspDial& dial, Watch& watch, LogTap& tap, std::string& peer) {
  TRY(address, resolve(dial.url, dial.loopback));
  peer = address.literal;
  bool tls = scheme_of(boost::urls::url(dial.url.reveal())) == "rtsps", udp = dial.udp && !tls;
  AvOptions options;
  options.set("rtsp_transport", udp ? "udp" : "tcp");
  options.set("protocol_whitelist", tls ? "tls,tcp" : udp ? "tcp,udp,rtp" : "tcp");
  options.set("timeout", dial.timeout.count());
  options.set("allowed_media_types", dial.media);
  options.set("user_agent", "Weir");
  if (udp)
    options.set("buffer_size", 1 << 20);
  else
    options.set("reorder_queue_size", 0);
  auto opened = open_stream(url_at(dial.url, address).reveal(), av_find_input_format("rtsp"), options, watch, tap,
                            dial.timeout);
  if (!opened) after_dial(address, opened.error(), tap.heard.connected);
  return opened;
}

}  // namespace weir::ffmpeg
