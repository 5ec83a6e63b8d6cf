#include "../wire/dial.hpp"
#include "../wire/keyframe.hpp"
#include "access_unit.hpp"
#include "coded.hpp"

#include "weir/ffmpeg/copy.hpp"
#include "weir/forward/failure.hpp"

extern "C" {
#include <libavcodec/bsf.h>
}

namespace weir::ffmpeg {

namespace {
using forward::Kind;
using restart::StreamErrorCode;

constexpr Duration kFarewell = 300ms;
constexpr Duration kKeyframeMax = 20s;  // for the first picture that can be decoded by itself

// The camera's words for what went wrong, as a forward's.
Error as_failure(const Error& error) {
  if (error.reason == interrupted().reason) return error;
  static constexpr std::pair<StreamErrorCode, Kind> kKinds[] = {
      {StreamErrorCode::dns_failed, Kind::rtsp_dns},         {StreamErrorCode::tcp_refused, Kind::rtsp_connect},
      {StreamErrorCode::tcp_timeout, Kind::rtsp_timeout},    {StreamErrorCode::tls_failed, Kind::rtsp_tls},
      {StreamErrorCode::rtsp_auth_failed, Kind::rtsp_auth},  {StreamErrorCode::rtsp_not_found, Kind::rtsp_not_found},
      {StreamErrorCode::stalled, Kind::rtsp_stalled},        {StreamErrorCode::url_refused, Kind::config_invalid}};
  for (const auto& [code, kind] : kKinds)
    if (error.reason == restart::to_string(code)) return forward::failure(kind, error.message);
  return forward::failure(Kind::rtsp_protocol, error.message);
}

struct BsfFree {
  void operator()(AVBSFContext* context) const { av_bsf_free(&context); }
};
using Bsf = std::unique_ptr<AVBSFContext, BsfFree>;

// Codecs whose decoder needs to be told something before the first picture.
bool needs_sets(AVCodecID codec) { return codec == AV_CODEC_ID_H264 || codec == AV_CODEC_ID_HEVC; }

// Puts the parameter sets that stand in a packet beside it, where the FLV muxer looks for new ones.
Bsf make_extractor(const AVCodecParameters& video) {
  AVBSFContext* raw = nullptr;
  const AVBitStreamFilter* filter = av_bsf_get_by_name("extract_extradata");
  if (filter == nullptr || av_bsf_alloc(filter, &raw) < 0) return nullptr;
  Bsf extractor(raw);
  if (avcodec_parameters_copy(raw->par_in, &video) < 0 || av_bsf_init(raw) < 0) return nullptr;
  return extractor;
}

// What a decoder reads in the first picture: its size, and how many pictures may overtake another.
void read_first(const AVPacket& first, AVCodecParameters& video, CopyFacts& facts) {
  const AVCodec* codec = avcodec_find_decoder(video.codec_id);
  if (codec == nullptr) return;
  AvPtr<AVCodecContext> context = owned(avcodec_alloc_context3(codec));
  context->thread_count = 1;
  if (avcodec_parameters_to_context(context.get(), &video) < 0 || avcodec_open2(context.get(), codec, nullptr) < 0) return;
  avcodec_send_packet(context.get(), &first);
  facts.reorder = context->has_b_frames;
  facts.width = video.width = context->width;
  facts.height = video.height = context->height;
}

Duration step_of(const AVStream& stream) {
  AVRational rate = stream.avg_frame_rate.num > 0 ? stream.avg_frame_rate : stream.r_frame_rate;
  if (rate.num <= 0 || rate.den <= 0) return 40ms;
  return std::clamp(from_seconds(av_q2d(av_inv_q(rate))), Duration(1ms), Duration(1s));
}

class RtspCopyInput final : public CopyInput {
 public:
  explicit RtspCopyInput(const CopyInputConfig& config) : config_(config), tap_(config.url) {}
  ~RtspCopyInput() override {
    watch_.meanwhile = nullptr;
    LogTap::Listening listening(tap_);
    watch_.last_words(kFarewell);
    context_.reset();
  }

  Result<CopyFacts> open(Duration within) override;
  Result<CopyPacketPtr> read() override;
  void set_meanwhile(std::function<void()> meanwhile) override { watch_.meanwhile = std::move(meanwhile); }
  void interrupt() override { watch_.interrupt(); }

 private:
  Status choose_tracks();
  void prepare_video(AVCodecID codec);
  Result<CopyPacketPtr> fetch();
  Status fetch_piece();
  CopyPacketPtr whole_picture();
  bool is(const AVStream* stream) const { return stream != nullptr && piece_->stream_index == stream->index; }
  CopyPacketPtr coded(forward::Track track, AvPtr<AVPacket> packet, bool key);
  void extract(CodedPacket& coded);
  CopyFacts describe(std::string peer);

  const CopyInputConfig config_;
  LogTap tap_;
  Watch watch_;
  AvPtr<AVFormatContext> context_;
  AVStream *video_ = nullptr, *audio_ = nullptr;
  Bsf extractor_;
  AvPtr<AVPacket> piece_ = owned(av_packet_alloc());  // as RTP carries it
  std::optional<AccessUnit> unit_;  // where pictures come in pieces
  CopyPacketPtr first_;  // found by `open` already
  std::optional<Instant> until_;  // while it is opened
};

Status RtspCopyInput::choose_tracks() {
  for (unsigned i = 0; i < context_->nb_streams; ++i) {
    AVStream* each = context_->streams[i];
    AVMediaType type = each->codecpar->codec_type;
    AVStream** place = type == AVMEDIA_TYPE_VIDEO ? &video_ : type == AVMEDIA_TYPE_AUDIO ? &audio_ : nullptr;
    // One track of each kind is forwarded.
    if (place == nullptr || *place != nullptr) {
      each->discard = AVDISCARD_ALL;
      continue;
    }
    if (each->codecpar->codec_id == AV_CODEC_ID_NONE)
      return forward::failure(Kind::codec_unsupported,
                              fmt::format("this FFmpeg cannot read the stream's {} over RTSP; of AV1 it needs a newer one",
                                          type == AVMEDIA_TYPE_VIDEO ? "video" : "audio"));
    *place = each;
  }
  if (video_ == nullptr && audio_ == nullptr)
    return forward::failure(Kind::codec_unsupported, "the stream holds neither video nor audio");
  return ok();
}

Result<CopyFacts> RtspCopyInput::open(Duration within) {
  LogTap::Listening listening(tap_);
  until_ = boot_now() + std::min(within, kKeyframeMax);
  RtspDial dial{.url = config_.url,
                .loopback = true,
                .timeout = std::min(config_.connect_timeout, std::max(within, Duration(100ms))),
                .media = "video+audio"};
  std::string peer;
  auto opened = dial_rtsp(dial, watch_, tap_, peer);
  if (!opened) return as_failure(opened.error());
  context_ = std::move(*opened);
  context_->flags |= AVFMT_FLAG_NOPARSE | AVFMT_FLAG_NOFILLIN;
  TRY(chosen, choose_tracks());
  if (video_ != nullptr) prepare_video(video_->codecpar->codec_id);
  do {
    TRY(packet, fetch());
    first_ = std::move(packet);
  } while (video_ != nullptr && (first_->track != forward::Track::video || !first_->key));
  until_.reset();
  CopyFacts facts = describe(std::move(peer));
  bool told = video_ == nullptr || !needs_sets(video_->codecpar->codec_id) || video_->codecpar->extradata_size > 0;
  if (!told || (video_ != nullptr && facts.width <= 0))
    return forward::failure(Kind::rtsp_protocol, "the stream does not say how its video is to be decoded");
  return facts;
}

void RtspCopyInput::prepare_video(AVCodecID codec) {
  if (!needs_sets(codec)) return;
  extractor_ = make_extractor(*video_->codecpar);
  unit_.emplace(codec == AV_CODEC_ID_HEVC ? AccessUnit::Codec::hevc : AccessUnit::Codec::h264);
}

CopyFacts RtspCopyInput::describe(std::string peer) {
  CopyFacts facts;
  auto format = std::make_shared<CodedFormat>();
  if (video_ != nullptr) {
    read_first(*static_cast<const CodedPacket&>(*first_).packet, *video_->codecpar, facts);
    format->video = copy_of(*video_->codecpar);
    facts.video = avcodec_get_name(video_->codecpar->codec_id);
    facts.step = step_of(*video_);
  }
  if (audio_ != nullptr) {
    format->audio = copy_of(*audio_->codecpar);
    facts.audio = avcodec_get_name(audio_->codecpar->codec_id);
    bool opus = audio_->codecpar->codec_id == AV_CODEC_ID_OPUS;
    if (opus) facts.sound_step = 20ms;
    else if (audio_->codecpar->sample_rate > 0) facts.sound_step = from_seconds(1024.0 / audio_->codecpar->sample_rate);
  }
  facts.format = std::move(format);
  facts.peer = std::move(peer);
  return facts;
}

// The sets in the stream are newer than those in its description, and the first ones where that has none.
void RtspCopyInput::extract(CodedPacket& coded) {
  if (extractor_ == nullptr || !coded.key) return;
  AvPtr<AVPacket> passed = owned(av_packet_clone(coded.packet.get()));
  if (av_bsf_send_packet(extractor_.get(), passed.get()) < 0) return;
  if (av_bsf_receive_packet(extractor_.get(), passed.get()) < 0) return av_bsf_flush(extractor_.get());
  coded.packet = std::move(passed);
  size_t size = 0;
  const std::uint8_t* sets = av_packet_get_side_data(coded.packet.get(), AV_PKT_DATA_NEW_EXTRADATA, &size);
  if (sets == nullptr || !until_) return;
  AVCodecParameters& video = *video_->codecpar;
  auto* copy = static_cast<std::uint8_t*>(av_mallocz(size + AV_INPUT_BUFFER_PADDING_SIZE));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, sets, size);
  av_free(video.extradata);
  video.extradata = copy;
  video.extradata_size = static_cast<int>(size);
}

Status RtspCopyInput::fetch_piece() {
  Duration left = until_ ? *until_ - boot_now() : config_.stall_timeout;
  if (left <= 0s) return forward::failure(Kind::rtsp_stalled, "no keyframe came in time");
  watch_.arm(std::min(left, config_.stall_timeout));
  for (;;) {
    av_packet_unref(piece_.get());
    int failed = av_read_frame(context_.get(), piece_.get());
    if (failed == AVERROR(EAGAIN) && watch_.ended() == Ended::by_itself) continue;
    if (watch_.ended() == Ended::by_itself && (failed == AVERROR_EOF || failed == AVERROR(ECONNRESET)))
      return forward::failure(Kind::rtsp_ended, "the hub ended the stream");
    if (failed < 0 || watch_.ended() != Ended::by_itself)
      return as_failure(read_failure(failed < 0 ? failed : AVERROR_EXIT, watch_.ended(), config_.stall_timeout));
    if (piece_->size > 0 && (is(video_) || is(audio_))) return ok();
  }
}

CopyPacketPtr RtspCopyInput::coded(forward::Track track, AvPtr<AVPacket> packet, bool key) {
  auto made = std::make_unique<CodedPacket>();
  made->track = track;
  made->key = key;
  made->arrived = boot_now();
  const AVStream& stream = track == forward::Track::video ? *video_ : *audio_;
  if (packet->pts != AV_NOPTS_VALUE) made->pts = Duration(av_rescale_q(packet->pts, stream.time_base, AV_TIME_BASE_Q));
  made->packet = std::move(packet);
  if (track == forward::Track::video) extract(*made);
  made->bytes = static_cast<size_t>(made->packet->size);
  return made;
}

CopyPacketPtr RtspCopyInput::whole_picture() {
  AvPtr<AVPacket> picture = std::exchange(piece_, owned(av_packet_alloc()));
  bool flagged = (picture->flags & AV_PKT_FLAG_KEY) != 0;
  std::span<const std::uint8_t> bytes(picture->data, static_cast<size_t>(picture->size));
  bool key = key_by_payload(video_->codecpar->codec_id, bytes).value_or(flagged);
  if (key) picture->flags |= AV_PKT_FLAG_KEY;
  else picture->flags &= ~AV_PKT_FLAG_KEY;
  return coded(forward::Track::video, std::move(picture), key);
}

Result<CopyPacketPtr> RtspCopyInput::fetch() {
  for (;;) {
    TRY(fetched, fetch_piece());
    if (is(audio_)) return coded(forward::Track::audio, std::exchange(piece_, owned(av_packet_alloc())), true);
    if (!unit_) return whole_picture();
    std::string_view bytes(reinterpret_cast<const char*>(piece_->data), static_cast<size_t>(piece_->size));
    CopyPacketPtr picture;
    if (unit_->ends_before(piece_->pts, bytes)) {
      bool key = unit_->key();
      picture = coded(forward::Track::video, unit_->finish(), key);
    }
    unit_->append(piece_->pts, bytes);
    if (unit_->too_large()) return forward::failure(Kind::rtsp_protocol, "the time of the stream's video stands still");
    if (picture != nullptr) return picture;
  }
}

Result<CopyPacketPtr> RtspCopyInput::read() {
  LogTap::Listening listening(tap_);
  if (first_ != nullptr) return std::exchange(first_, nullptr);
  return fetch();
}

}  // namespace

std::unique_ptr<CopyInput> make_copy_input(const CopyInputConfig& config) {
  return std::make_unique<RtspCopyInput>(config);
}

}  // namespace weir::ffmpeg
