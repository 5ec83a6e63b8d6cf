#include "../wire/address.hpp"
#include "linked_output.hpp"

#include "weir/ffmpeg/copy.hpp"
#include "weir/forward/failure.hpp"

namespace weir::ffmpeg {

namespace {
using forward::Kind;

bool says(std::string_view text, std::string_view word) {
  return std::search(text.begin(), text.end(), word.begin(), word.end(), [](unsigned char a, unsigned char b) {
           return std::tolower(a) == b;
         }) != text.end();
}

// Servers of RTMP understand one codec of each kind.
Status carried_by_rtmp(const CodedFormat& format) {
  auto check = [](const Parameters& track, AVCodecID codec, const char* kind) -> Status {
    if (track == nullptr || track->codec_id == codec) return ok();
    return forward::failure(Kind::codec_unsupported,
                            fmt::format("{} {} is not carried by RTMP; H.264 video with AAC audio is needed",
                                        avcodec_get_name(track->codec_id), kind));
  };
  TRY(video, check(format.video, AV_CODEC_ID_H264, "video"));
  return check(format.audio, AV_CODEC_ID_AAC, "audio");
}

class RtmpCopyOutput final : public LinkedOutput {
 public:
  explicit RtmpCopyOutput(const CopyOutputConfig& config)
      : LinkedOutput({config.to.port, config.stall_timeout, config.may_send}, config.to.url, config.to.secrets),
        config_(config) {}
  ~RtmpCopyOutput() override { close(); }

  Status open(const CopyFormat& format) override;
  void close() override;

 private:
  Status connect();
  Error open_failure(int error) const;
  Error write_failure(int error) const override;

  const CopyOutputConfig config_;
};

Error RtmpCopyOutput::open_failure(int error) const {
  if (auto gone = given_up()) return *gone;
  const LogTap::Heard& heard = tap_.heard;
  if (!heard.complaint.empty()) {
    Kind kind = says(heard.complaint, "already") ? Kind::rtmp_busy
                : heard.publishing               ? Kind::rtmp_publish_denied
                                                 : Kind::rtmp_connect_denied;
    return forward::failure(kind, "the destination says: " + heard.complaint);
  }
  if (watch_.ended() == Ended::at_deadline || error == AVERROR(ETIMEDOUT))
    return forward::failure(Kind::rtmp_timeout, fmt::format("{} within {} s",
                                                            heard.connected ? "connected, but no consent to publish"
                                                                            : "no connection",
                                                            seconds(config_.connect_timeout)));
  switch (error) {
    case AVERROR(ECONNREFUSED): return forward::failure(Kind::rtmp_refused, "the connection was refused");
    case AVERROR(EHOSTUNREACH):
    case AVERROR(ENETUNREACH):
    case AVERROR(ENETDOWN):
    case AVERROR(EHOSTDOWN): return forward::failure(Kind::rtmp_timeout, "no route to the destination");
    case AVERROR(ECONNRESET):
    case AVERROR(EPIPE): return forward::failure(Kind::rtmp_reset, "the destination reset the connection");
    default: break;
  }
  if (heard.tls) return forward::failure(Kind::rtmp_tls, "the TLS connection failed");
  if (heard.publishing)
    return forward::failure(Kind::rtmp_publish_hangup, "the destination hung up when it was given the stream key");
  if (error == AVERROR_EOF || error == AVERROR(EIO))
    return forward::failure(Kind::rtmp_closed, "the destination hung up before it was asked to publish");
  return forward::failure(Kind::rtmp_protocol, fmt::format("the destination's answer is not understood: {}",
                                                           av_words(error)));
}

Error RtmpCopyOutput::write_failure(int error) const {
  if (auto gone = given_up()) return *gone;
  if (error == AVERROR_EXIT && watch_.ended() == Ended::at_deadline)
    return forward::failure(Kind::io_timeout, fmt::format("a packet could not be sent within {} s",
                                                          seconds(config_.stall_timeout)));
  if (!tap_.heard.complaint.empty())
    return forward::failure(Kind::rtmp_server_error, "the destination says: " + tap_.heard.complaint);
  if (error == AVERROR(ECONNRESET) || error == AVERROR(EPIPE))
    return forward::failure(Kind::rtmp_reset, "the destination reset the connection");
  if (error == AVERROR_EOF) return forward::failure(Kind::rtmp_closed, "the destination ended the connection");
  return forward::failure(Kind::rtmp_protocol, fmt::format("the connection broke off: {}", av_words(error)));
}

Status RtmpCopyOutput::connect() {
  // FFmpeg resolves again, over all addresses that a name has; a name that has none is told apart here.
  if (auto known = system_lookup(config_.to.host); !known)
    return forward::failure(Kind::rtmp_dns, known.error().message);
  AvOptions options;
  options.set("protocol_whitelist", config_.to.tls ? "rtmps,tls,tcp" : "rtmp,tcp");
  options.set("rtmp_flashver", "FMLE/3.0 (compatible; Weir)");
  options.set("tcp_nodelay", 1);  // commands are small and wait for each other; packets are gathered by the cork
  if (config_.to.tls) {
    options.set("tls_verify", config_.tls_verify ? 1 : 0);
    if (!config_.ca_file.empty()) options.set("ca_file", config_.ca_file);
  }
  AVIOInterruptCB asked = callback();
  watch_.arm(config_.connect_timeout);
  if (give_up()) return open_failure(AVERROR_EXIT);
  std::vector<int> others = TcpLink::all(config_.to.port);
  AVIOContext* io = nullptr;
  int failed = avio_open2(&io, config_.to.url.reveal().c_str(), AVIO_FLAG_WRITE, &asked, options.get());
  if (failed < 0) return open_failure(failed);
  context_->pb = io;
  if (attach(others)) return ok();
  return forward::failure(Kind::rtmp_reset, "the connection was gone as soon as it stood");
}

Status RtmpCopyOutput::open(const CopyFormat& format) {
  LogTap::Listening listening(tap_);
  const auto& coded = static_cast<const CodedFormat&>(format);
  TRY(carried, carried_by_rtmp(coded));
  if (!make_context("flv", coded)) return forward::failure(Kind::internal, "FFmpeg has no FLV muxer");
  TRY(connected, connect());
  watch_.arm(config_.stall_timeout);
  AvOptions options;
  options.set("flvflags", "no_duration_filesize");
  int failed = avformat_write_header(context_.get(), options.get());
  if (failed < 0) {
    broken_ = true;
    return write_failure(failed);
  }
  return ok();
}

void RtmpCopyOutput::close() {
  if (context_ == nullptr) return;
  LogTap::Listening listening(tap_);
  watch_.last_words(dead() ? Duration(0) : kFarewell);
  if (context_->pb != nullptr) avio_closep(&context_->pb);
  hang_up();
  context_.reset();
}

}  // namespace

std::unique_ptr<CopyOutput> make_copy_output(const CopyOutputConfig& config) {
  return std::make_unique<RtmpCopyOutput>(config);
}

}  // namespace weir::ffmpeg
