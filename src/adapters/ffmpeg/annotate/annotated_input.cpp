#include "../decoded_picture.hpp"
#include "encoder.hpp"
#include "overlay.hpp"
#include "picture_decoder.hpp"
#include "sound_encoder.hpp"

#include "weir/base/clock.hpp"
#include "weir/ffmpeg/annotate.hpp"
#include "weir/forward/failure.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <deque>

namespace weir::ffmpeg {

using forward::Kind;
using forward::Track;

namespace {
constexpr size_t kFirstPictures = 6;     // their times tell the stream's rate
constexpr Duration kSightingMax = 1500ms;  // an older one is not drawn any more
constexpr Duration kBlindMax = 10s;      // packets that give no picture
constexpr Duration kLeftOutMax = 1s;     // between two pictures, where the machine is too slow for all

// How often this thread has gone to sleep by itself: while it reads, for want of data.
long sleeps() {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

forward::KeepUp::Limits never_giving_way(forward::KeepUp::Limits limits) {
  limits.patience = Duration::max();
  return limits;
}

// The times of a stream's first pictures may jump once, when its sender has reported what time it is.
Duration usual_step(const std::vector<AvPtr<AVFrame>>& pictures) {
  std::vector<std::int64_t> steps;
  for (size_t i = 1; i < pictures.size(); ++i) steps.push_back(pictures[i]->pts - pictures[i - 1]->pts);
  std::ranges::nth_element(steps, steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2));
  return Duration(steps[steps.size() / 2]);
}
// A packet whose time is in microseconds.
CopyPacketPtr as_packet(Track track, bool key, Instant now, AvPtr<AVPacket> packet) {
  auto made = std::make_unique<CodedPacket>();
  made->track = track;
  made->key = key;
  made->pts = Duration(packet->pts);
  made->bytes = static_cast<size_t>(packet->size);
  made->arrived = now;
  made->packet = std::move(packet);
  return made;
}
}  // namespace

// What outlives a connection of the input.
struct Annotator::State {
  explicit State(AnnotateConfig with) : config(std::move(with)), keep_up(config.limits) {}

  void tell(bool annotating, const std::string& why) {
    if (std::exchange(told, annotating) != annotating) config.changed(annotating, why);
  }
  const AnnotateConfig config;
  forward::KeepUp keep_up;
  std::optional<bool> told = {};
  std::int64_t shown = 0;  // pictures that were decoded, over all connections
};

namespace {

class AnnotatedInput final : public CopyInput {
 public:
  AnnotatedInput(std::unique_ptr<CopyInput> inner, std::shared_ptr<Annotator::State> state)
      : inner_(std::move(inner)), state_(std::move(state)), pace_(never_giving_way(state_->config.limits)) {}

  Result<CopyFacts> open(Duration within) override;
  Result<CopyPacketPtr> read() override;
  void set_meanwhile(std::function<void()> meanwhile) override { inner_->set_meanwhile(std::move(meanwhile)); }
  void interrupt() override { inner_->interrupt(); }

 private:
  bool is_h264() const { return coded_->video->codec_id == AV_CODEC_ID_H264; }
  Status prepare();
  CopyFacts announced() const;
  // Whether pictures are handed on as they came.
  bool may_pass(Instant now) { return !has_to_encode_ && state_->keep_up.passing(now); }
  bool leave_out(const AVFrame& frame);
  // Reads and works until at least one packet is ready.
  Status advance();
  Status take_picture(CopyPacketPtr packet);
  Status take_sound(CopyPacketPtr packet);
  Status change_over();
  void pass(CopyPacketPtr packet);
  Status annotate(const CodedPacket& packet);
  Status show(AvPtr<AVFrame> frame);
  Status open_encoder();
  void draw(AVFrame& frame);
  Status hand_on(AVFrame& frame);

  const std::unique_ptr<CopyInput> inner_;
  const std::shared_ptr<Annotator::State> state_;
  LogTap tap_{Secret{}};
  CopyFacts facts_;
  const CodedFormat* coded_ = nullptr;  // the input's own
  std::unique_ptr<PictureDecoder> decoder_;
  std::unique_ptr<Encoder> encoder_;
  std::unique_ptr<SoundEncoder> sound_encoder_;
  bool has_to_encode_ = false;          // its video, for RTMP
  forward::KeepUp pace_;                // then
  std::optional<std::int64_t> last_encoded_;
  std::vector<AvPtr<AVFrame>> first_;   // before there is an encoder
  std::deque<CopyPacketPtr> ready_;
  std::deque<CopyPacketPtr> sound_;     // that came before the first picture left
  bool passing_ = false;
  bool waited_ = true;                  // for the input, since a picture left
  Instant fed_since_{};                 // without a picture
};

Result<CopyFacts> AnnotatedInput::open(Duration within) {
  TRY(facts, inner_->open(within));
  facts_ = facts;
  coded_ = static_cast<const CodedFormat*>(facts_.format.get());
  TRY(prepared, prepare());
  if (passing_) return announced();
  while (ready_.empty()) {
    TRY(advanced, advance());
  }
  if (encoder_ == nullptr || encoder_->parameters() == nullptr)
    return forward::failure(Kind::internal, "the encoder does not say how its video is to be decoded");
  return announced();
}

// Chooses what is done with this connection's pictures and sound.
Status AnnotatedInput::prepare() {
  const AnnotateConfig& config = state_->config;
  state_->keep_up.begin_input();
  fed_since_ = boot_now();
  bool foreign = config.for_rtmp && coded_->video != nullptr && !is_h264();
  if (coded_->video != nullptr && (config.draw || foreign)) decoder_ = PictureDecoder::create(*coded_->video);
  has_to_encode_ = foreign && decoder_ != nullptr;
  if (config.for_rtmp && coded_->audio != nullptr && coded_->audio->codec_id != AV_CODEC_ID_AAC) {
    TRY(made, SoundEncoder::create(*coded_->audio));
    sound_encoder_ = std::move(made);
  }
  std::string encoded = has_to_encode_ ? facts_.video + " as h264" : "";
  if (sound_encoder_ != nullptr) encoded += (encoded.empty() ? "" : ", ") + facts_.audio + " as aac";
  if (!encoded.empty()) config.encodes_for_rtmp(encoded);
  passing_ = decoder_ == nullptr || may_pass(boot_now());
  if (passing_ && config.draw)
    state_->tell(false, decoder_ == nullptr ? "the stream has no video that this FFmpeg decodes"
                                            : "the last try to draw into the pictures was too slow");
  return ok();
}

CopyFacts AnnotatedInput::announced() const {
  CopyFacts facts = facts_;
  auto format = std::make_shared<CodedFormat>();
  const AVCodecParameters* video = passing_ ? coded_->video.get() : encoder_->parameters();
  const AVCodecParameters* audio = sound_encoder_ ? &sound_encoder_->parameters() : coded_->audio.get();
  if (video != nullptr) format->video = copy_of(*video);
  if (audio != nullptr) format->audio = copy_of(*audio);
  facts.format = std::move(format);
  if (!passing_) facts.video = avcodec_get_name(AV_CODEC_ID_H264);
  if (sound_encoder_ != nullptr) {
    facts.audio = avcodec_get_name(AV_CODEC_ID_AAC);
    facts.sound_step = sound_encoder_->step();
  }
  return facts;
}

Result<CopyPacketPtr> AnnotatedInput::read() {
  while (ready_.empty()) {
    TRY(advanced, advance());
  }
  CopyPacketPtr packet = std::move(ready_.front());
  ready_.pop_front();
  return packet;
}

Status AnnotatedInput::advance() {
  long slept = sleeps();
  TRY(packet, inner_->read());
  waited_ = waited_ || sleeps() != slept;
  LogTap::Listening listening(tap_);
  return packet->track == Track::video ? take_picture(std::move(packet)) : take_sound(std::move(packet));
}

Status AnnotatedInput::take_sound(CopyPacketPtr packet) {
  bool too_soon = !passing_ && encoder_ == nullptr;
  std::deque<CopyPacketPtr>& to = too_soon ? sound_ : ready_;
  if (sound_encoder_ == nullptr) {
    to.push_back(std::move(packet));
    return ok();
  }
  TRY(converted, sound_encoder_->convert(*static_cast<const CodedPacket&>(*packet).packet, packet->pts));
  for (AvPtr<AVPacket>& each : converted) to.push_back(as_packet(Track::audio, true, packet->arrived, std::move(each)));
  return ok();
}

Status AnnotatedInput::take_picture(CopyPacketPtr packet) {
  if (packet->key && decoder_ != nullptr && may_pass(boot_now()) != passing_) {
    TRY(changed, change_over());
  }
  if (!passing_) return annotate(static_cast<const CodedPacket&>(*packet));
  pass(std::move(packet));
  return ok();
}

// Both ways begin with a picture that can be decoded by itself, and H.264 announces itself anew within the stream.
Status AnnotatedInput::change_over() {
  passing_ = !passing_;
  std::string late = fmt::format("pictures left {:.1f} s late: this machine is too slow, or has too much to do",
                                 seconds(state_->keep_up.lag()));
  state_->tell(!passing_, passing_ ? late : "after a rest, pictures are drawn into again");
  if (!is_h264())
    return forward::failure(Kind::rtsp_ended, "the stream is read anew, to be announced in another codec");
  decoder_->restart();
  state_->keep_up.begin_input();
  if (encoder_ != nullptr) encoder_->force_keyframe();
  for (CopyPacketPtr& each : sound_) ready_.push_back(std::move(each));
  sound_.clear();
  first_.clear();
  return ok();
}

void AnnotatedInput::pass(CopyPacketPtr packet) {
  auto& coded = static_cast<CodedPacket&>(*packet);
  if (packet->key && decoder_ != nullptr && is_h264()) {  // where both forms follow each other
    coded.packet = with_parameter_sets(std::move(coded.packet), *coded_->video);
    coded.bytes = static_cast<size_t>(coded.packet->size);
  }
  ready_.push_back(std::move(packet));
}

Status AnnotatedInput::annotate(const CodedPacket& packet) {
  std::vector<AvPtr<AVFrame>> frames = decoder_->decode(*packet.packet, packet.pts, facts_.step);
  Instant now = boot_now();
  if (!frames.empty()) fed_since_ = now;
  if (now - fed_since_ > kBlindMax)
    return forward::failure(Kind::rtsp_protocol,
                            fmt::format("no picture could be decoded for {} s", seconds(kBlindMax)));
  for (AvPtr<AVFrame>& frame : frames) {
    TRY(shown, show(std::move(frame)));
  }
  return ok();
}

Status AnnotatedInput::show(AvPtr<AVFrame> frame) {
  Looks* looks = state_->config.looks;
  std::int64_t number = state_->shown++;
  if (looks != nullptr && looks->due(boot_now())) {
    // The picture as it came: what is drawn afterwards goes into a copy.
    if (auto picture = DecodedPicture::create(owned(av_frame_clone(frame.get())))) {
      picture->number = number;
      picture->stream_time = Duration(frame->pts);
      picture->captured = wall_now();
      picture->received = boot_now();
      looks->offer(std::move(picture));
    }
  }
  if (encoder_ != nullptr && !encoder_->fits(*frame))
    return forward::failure(Kind::rtsp_ended, "the stream's pictures have another size now; it is read anew");
  if (encoder_ != nullptr) return leave_out(*frame) ? ok() : hand_on(*frame);
  first_.push_back(std::move(frame));
  return first_.size() < kFirstPictures ? ok() : open_encoder();
}

Status AnnotatedInput::open_encoder() {
  const AnnotateConfig& config = state_->config;
  double step = std::max(seconds(usual_step(first_)), 0.001);
  const AVFrame& like = *first_.front();
  TRY(made, Encoder::create({.width = like.width,
                             .height = like.height,
                             .fps = std::clamp(static_cast<int>(1 / step + 0.5), 1, 120),
                             .keyframe = config.keyframe,
                             .bitrate_kbit = config.bitrate_kbit,
                             .hardware = config.hardware}, like));
  encoder_ = std::move(made);
  if (config.draw)
    state_->tell(true, fmt::format("pictures of {}x{} are encoded by {}", like.width, like.height, encoder_->name()));
  for (AvPtr<AVFrame>& frame : std::exchange(first_, {})) {
    TRY(handed, hand_on(*frame));
  }
  for (CopyPacketPtr& each : std::exchange(sound_, {})) ready_.push_back(std::move(each));
  return ok();
}

// A picture that is left out counts as one that left: the lag falls while nothing is encoded.
bool AnnotatedInput::leave_out(const AVFrame& frame) {
  if (!has_to_encode_ || pace_.lag() <= state_->config.limits.lag_max) return false;
  if (!last_encoded_ || std::abs(frame.pts - *last_encoded_) >= kLeftOutMax.count()) return false;
  pace_.left(Duration(frame.pts), boot_now(), std::exchange(waited_, false));
  state_->config.left_out();
  return true;
}

void AnnotatedInput::draw(AVFrame& frame) {
  if (!state_->config.draw) return;
  Canvas canvas({frame.data[0], frame.data[1], frame.data[2]},
                {frame.linesize[0], frame.linesize[1], frame.linesize[2]}, frame.width, frame.height);
  std::shared_ptr<const Sighting> seen = state_->config.looks ? state_->config.looks->newest() : nullptr;
  bool fresh = seen != nullptr && std::abs(frame.pts - seen->stream_time.count()) <= kSightingMax.count();
  draw_overlay(canvas, fresh ? seen.get() : nullptr, wall_now());
}

Status AnnotatedInput::hand_on(AVFrame& frame) {
  AvPtr<AVFrame> page = writable_420(frame);
  if (page == nullptr) return forward::failure(Kind::codec_unsupported, "the stream's pixels cannot be converted");
  draw(*page);
  last_encoded_ = frame.pts;
  TRY(packets, encoder_->encode(*page));
  Instant now = boot_now();
  for (AvPtr<AVPacket>& each : packets) {
    bool key = (each->flags & AV_PKT_FLAG_KEY) != 0;
    ready_.push_back(as_packet(Track::video, key, now, std::move(each)));
    forward::KeepUp& pace = has_to_encode_ ? pace_ : state_->keep_up;
    pace.left(*ready_.back()->pts, now, std::exchange(waited_, false));
    state_->config.left(pace.lag());
  }
  return ok();
}

}  // namespace

Annotator::Annotator(AnnotateConfig config) : state_(std::make_shared<State>(std::move(config))) {}
Annotator::~Annotator() = default;

std::unique_ptr<CopyInput> Annotator::wrap(std::unique_ptr<CopyInput> input) {
  return std::make_unique<AnnotatedInput>(std::move(input), state_);
}

}  // namespace weir::ffmpeg
