// RTSP cameras and local files: what FFmpeg's demuxers read.
#include "decoding_source.hpp"
#include "wire/dial.hpp"

#include <boost/url/parse.hpp>
#include <sys/resource.h>

namespace weir::ffmpeg {

namespace {
using restart::StreamErrorCode;

constexpr Duration kFarewell = 300ms;
// Containers that hold everything themselves: a playlist would name further files.
constexpr const char* kFileFormats = "mov,matroska,avi,mpegts,mpeg,flv,h264,hevc,mjpeg,m4v";

// How often this thread has gone to sleep by itself: for want of data, as far as it only reads.
long sleeps() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

class StreamSource final : public DecodingSource {
 public:
  StreamSource(const SourceConfig& config, std::string_view scheme)
      : DecodingSource(config), file_(scheme == "file") {}
  ~StreamSource() override { close(); }

 protected:
  Result<StreamFacts> connect() override;
  Result<Fetched> fetch() override;
  void disconnect() override {
    watch_.last_words(kFarewell);
    context_.reset();
    stream_ = nullptr;
  }
  const AVCodecParameters& parameters() const override { return *stream_->codecpar; }

 private:
  Status open_camera(StreamFacts& facts);
  Status open_file();
  bool pace(const Fetched& fetched);
  std::optional<WallTime> capture_time(const AVPacket& packet, std::optional<Duration> stamp) const;

  const bool file_;
  AvPtr<AVFormatContext> context_;
  const AVStream* stream_ = nullptr;
  std::optional<Instant> completed_ = {};     // when the last packet was handed out
  bool waited_ = true;                        // for the last packet
  std::optional<Duration> first_stamp_ = {};  // a file's
  Instant started_{};
};

Status StreamSource::open_camera(StreamFacts& facts) {
  RtspDial dial{.url = config_.url,
                .udp = config_.transport == camera::Transport::udp,
                .loopback = config_.loopback,
                .timeout = config_.connect_timeout};
  TRY(opened, dial_rtsp(dial, watch_, tap_, facts.peer));
  context_ = std::move(opened);
  return ok();
}

Status StreamSource::open_file() {
  auto url = boost::urls::parse_uri(config_.url.reveal());
  if (!url) return stream_failure(StreamErrorCode::url_refused, "the file's URL cannot be read as a URL");
  AvOptions options;
  options.set("protocol_whitelist", "file");
  options.set("format_whitelist", kFileFormats);
  TRY(opened, open_stream("file:" + std::string(url->path()), nullptr, options, watch_, tap_, config_.connect_timeout));
  context_ = std::move(opened);
  if (int failed = avformat_find_stream_info(context_.get(), nullptr); failed < 0)
    return open_failure(failed, watch_.ended(), tap_.heard, config_.connect_timeout);
  return ok();
}

Result<StreamFacts> StreamSource::connect() {
  StreamFacts facts;
  TRY(opened, file_ ? open_file() : open_camera(facts));
  facts.audio = tap_.heard.audio;
  for (unsigned i = 0; i < context_->nb_streams; ++i) {
    AVStream* each = context_->streams[i];
    if (each->codecpar->codec_type == AVMEDIA_TYPE_AUDIO) facts.audio = true;
    if (each->codecpar->codec_type == AVMEDIA_TYPE_VIDEO && stream_ == nullptr)
      stream_ = each;
    else
      each->discard = AVDISCARD_ALL;
  }
  if (stream_ == nullptr)
    return stream_failure(StreamErrorCode::codec_unsupported, "the stream holds no video");
  facts.codec = avcodec_get_name(stream_->codecpar->codec_id);
  if (stream_->avg_frame_rate.den > 0) facts.fps = av_q2d(stream_->avg_frame_rate);
  first_stamp_.reset();
  waited_ = true;
  completed_.reset();
  return facts;
}

Result<DecodingSource::Fetched> StreamSource::fetch() {
  watch_.arm(config_.stall_timeout);
  long slept = sleeps();
  AvPtr<AVPacket> packet = owned(av_packet_alloc());
  for (;;) {
    int failed = av_read_frame(context_.get(), packet.get());
    if (failed == AVERROR(EAGAIN) && watch_.ended() == Ended::by_itself) continue;
    if (failed == AVERROR_EOF && file_) return stream_failure(StreamErrorCode::rtsp_protocol, "the file ended");
    if (failed < 0) return read_failure(failed, watch_.ended(), config_.stall_timeout);
    // A stream that was given up still hands out what it had gathered of the next picture: too late.
    if (!file_ && watch_.ended() != Ended::by_itself)
      return read_failure(AVERROR_EXIT, watch_.ended(), config_.stall_timeout);
    if (packet->stream_index == stream_->index && packet->size > 0) break;
    av_packet_unref(packet.get());
  }
  Fetched fetched;
  std::int64_t stamp = packet->pts != AV_NOPTS_VALUE ? packet->pts : packet->dts;
  if (stamp != AV_NOPTS_VALUE) fetched.stamp = Duration(av_rescale_q(stamp, stream_->time_base, AV_TIME_BASE_Q));
  fetched.captured = capture_time(*packet, fetched.stamp);
  fetched.waited = file_ || sleeps() != slept;
  // The end of a picture is seen only where the next one begins: it began to arrive when the last one was complete.
  const AVCodecParserContext* parser = av_stream_get_parser(stream_);
  if (!file_ && parser != nullptr && (parser->flags & PARSER_FLAG_COMPLETE_FRAMES) == 0) {
    Instant now = boot_now();  // of the first nobody knows when it began
    fetched.received = std::exchange(completed_, now).value_or(now);
    fetched.waited = std::exchange(waited_, fetched.waited);
  }
  fetched.packet = std::move(packet);
  if (file_ && config_.realtime && !pace(fetched)) return interrupted();
  return fetched;
}

// A file has no pace of its own: waits until its picture would have arrived. False where interrupted.
bool StreamSource::pace(const Fetched& fetched) {
  if (!fetched.stamp) return true;
  if (!first_stamp_) {
    first_stamp_ = *fetched.stamp;
    started_ = boot_now();
  }
  Duration early = started_ + (*fetched.stamp - *first_stamp_) - boot_now();
  return early <= 0s || watch_.wait(early);
}

// What the camera's RTCP reports say, with the packet or for the stream as a whole.
std::optional<WallTime> StreamSource::capture_time(const AVPacket& packet, std::optional<Duration> stamp) const {
  size_t size = 0;
  const std::uint8_t* reference = av_packet_get_side_data(&packet, AV_PKT_DATA_PRFT, &size);
  if (reference != nullptr && size >= sizeof(AVProducerReferenceTime))
    return WallTime(Duration(reinterpret_cast<const AVProducerReferenceTime*>(reference)->wallclock));
  if (stamp && context_->start_time_realtime != AV_NOPTS_VALUE && !file_)
    return WallTime(Duration(context_->start_time_realtime) + *stamp);
  return std::nullopt;
}
}  // namespace

std::unique_ptr<VideoSource> make_stream_source(const SourceConfig& config, std::string_view scheme) {
  return std::make_unique<StreamSource>(config, scheme);
}

}  // namespace weir::ffmpeg
