// A publication on a hub by RTSP (ANNOUNCE, RECORD), media within the one TCP connection.
#include "../wire/address.hpp"
#include "linked_output.hpp"

#include "weir/ffmpeg/copy.hpp"
#include "weir/forward/failure.hpp"

#include <algorithm>

namespace weir::ffmpeg {

namespace {
using forward::Kind;
using restart::StreamErrorCode;

// What both FFmpeg's RTSP publisher and MediaMTX know how to carry.
constexpr AVCodecID kVideo[] = {AV_CODEC_ID_H264, AV_CODEC_ID_HEVC, AV_CODEC_ID_VP8, AV_CODEC_ID_VP9, AV_CODEC_ID_AV1};
constexpr AVCodecID kAudio[] = {AV_CODEC_ID_AAC, AV_CODEC_ID_OPUS};

Status published(const CodedFormat& format) {
  auto refused = [](const Parameters& track, const char* kind, const char* needed) -> Status {
    return forward::failure(Kind::codec_unsupported, fmt::format("{} {} is not published; {} is needed",
                                                                 avcodec_get_name(track->codec_id), kind, needed));
  };
  if (format.video && std::ranges::find(kVideo, format.video->codec_id) == std::end(kVideo))
    return refused(format.video, "video", "H.264, H.265, VP8, VP9 or AV1");
  if (format.audio && std::ranges::find(kAudio, format.audio->codec_id) == std::end(kAudio))
    return refused(format.audio, "audio", "AAC or Opus");
  return ok();
}

// The camera's words for what went wrong, as a publisher's.
Error as_failure(const Error& error) {
  if (error.reason == interrupted().reason) return error;
  static constexpr std::pair<StreamErrorCode, Kind> kKinds[] = {
      {StreamErrorCode::dns_failed, Kind::publish_dns},          {StreamErrorCode::tcp_refused, Kind::publish_refused},
      {StreamErrorCode::tcp_timeout, Kind::publish_timeout},     {StreamErrorCode::tls_failed, Kind::publish_tls},
      {StreamErrorCode::rtsp_auth_failed, Kind::publish_denied}, {StreamErrorCode::url_refused, Kind::config_invalid}};
  for (const auto& [code, kind] : kKinds)
    if (error.reason == restart::to_string(code)) return forward::failure(kind, error.message);
  return forward::failure(Kind::publish_protocol, error.message);
}

class PublishOutput final : public LinkedOutput {
 public:
  PublishOutput(const PublishConfig& config, int port)
      : LinkedOutput({port, config.stall_timeout, config.may_send}, config.url, {}), config_(config), port_(port) {}
  ~PublishOutput() override { close(); }

  Status open(const CopyFormat& format) override;
  void close() override;

 private:
  Error write_failure(int error) const override;

  const PublishConfig config_;
  const int port_;
  bool publishing_ = false;  // the hub agreed; it must hear of the end
};

Status PublishOutput::open(const CopyFormat& format) {
  LogTap::Listening listening(tap_);
  const auto& coded = static_cast<const CodedFormat&>(format);
  TRY(carried, published(coded));
  auto address = resolve(config_.url, true);
  if (!address) return as_failure(address.error());
  if (!make_context("rtsp", coded)) return forward::failure(Kind::internal, "FFmpeg has no RTSP muxer");
  context_->url = av_strdup(url_at(config_.url, *address).reveal().c_str());
  context_->interrupt_callback = callback();
  context_->strict_std_compliance = FF_COMPLIANCE_EXPERIMENTAL;  // what FFmpeg calls VP9 in RTP
  AvOptions options;
  options.set("rtsp_transport", "tcp");
  options.set("protocol_whitelist", config_.url.reveal().starts_with("rtsps") ? "tls,tcp" : "tcp");
  options.set("user_agent", "Weir");
  watch_.arm(config_.connect_timeout);
  if (give_up()) return write_failure(AVERROR_EXIT);
  std::vector<int> others = TcpLink::all(port_);
  int failed = avformat_write_header(context_.get(), options.get());
  if (failed < 0) {
    broken_ = true;
    if (auto gone = given_up()) return *gone;
    Error why = open_failure(failed, watch_.ended(), tap_.heard, config_.connect_timeout);
    after_dial(*address, why, tap_.heard.connected);
    return as_failure(why);
  }
  publishing_ = true;
  if (attach(others)) return ok();
  broken_ = true;
  return forward::failure(Kind::publish_reset, "the connection was gone as soon as it stood");
}

Error PublishOutput::write_failure(int error) const {
  if (auto gone = given_up()) return *gone;
  if (error == AVERROR_EXIT && watch_.ended() == Ended::at_deadline)
    return forward::failure(Kind::io_timeout, fmt::format("a packet could not be sent within {} s",
                                                          seconds(config_.stall_timeout)));
  if (error == AVERROR(ECONNRESET)) return forward::failure(Kind::publish_reset, "the hub reset the connection");
  // FFmpeg says so where it reads the hub's goodbye, or the end, before it writes.
  if (error == AVERROR_EOF || error == AVERROR(EPIPE))
    return forward::failure(Kind::publish_closed, "the hub ended the publication");
  return forward::failure(Kind::publish_protocol, fmt::format("the connection broke off: {}", av_words(error)));
}

void PublishOutput::close() {
  if (context_ == nullptr) return;
  LogTap::Listening listening(tap_);
  watch_.last_words(dead() ? Duration(0) : kFarewell);
  // What may not be said is made impossible before FFmpeg says it.
  if (dead()) hang_up();
  if (std::exchange(publishing_, false)) av_write_trailer(context_.get());
  hang_up();
  context_.reset();
}

}  // namespace

std::unique_ptr<CopyOutput> make_publish_output(const PublishConfig& config) {
  return std::make_unique<PublishOutput>(config, port_of(config.url));
}

}  // namespace weir::ffmpeg
