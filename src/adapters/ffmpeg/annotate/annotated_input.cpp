#include "../decoded_picture.hpp"
#include "encoder.hpp"
#include "overlay.hpp"
#include "picture_decoder.hpp"

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

// How often this thread has gone to sleep by itself: while it reads, for want of data.
long sleeps() {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

// The times of a stream's first pictures may jump once, when its sender has reported what time it is.
Duration usual_step(const std::vector<AvPtr<AVFrame>>& pictures) {
  std::vector<std::int64_t> steps;
  for (size_t i = 1; i < pictures.size(); ++i) steps.push_back(pictures[i]->pts - pictures[i - 1]->pts);
  std::ranges::nth_element(steps, steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2));
  return Duration(steps[steps.size() / 2]);
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
      : inner_(std::move(inner)), state_(std::move(state)) {}

  Result<CopyFacts> open(Duration within) override;
  Result<CopyPacketPtr> read() override;
  void set_meanwhile(std::function<void()> meanwhile) override { inner_->set_meanwhile(std::move(meanwhile)); }
  void interrupt() override { inner_->interrupt(); }

 private:
  bool is_h264() const { return coded_->video->codec_id == AV_CODEC_ID_H264; }
  // Reads and works until at least one packet is ready.
  Status advance();
  Status take_picture(CopyPacketPtr packet);
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
  state_->keep_up.begin_input();
  fed_since_ = boot_now();
  if (coded_->video != nullptr) decoder_ = PictureDecoder::create(*coded_->video);
  passing_ = decoder_ == nullptr || state_->keep_up.passing(boot_now());
  if (passing_) {
    state_->tell(false, decoder_ == nullptr ? "the stream has no video that this FFmpeg decodes"
                                            : "the last try to draw into the pictures was too slow");
    return facts_;
  }
  while (ready_.empty()) {
    TRY(advanced, advance());
  }
  if (encoder_ == nullptr || encoder_->parameters() == nullptr)
    return forward::failure(Kind::internal, "the encoder does not say how its video is to be decoded");
  CopyFacts announced = facts_;
  auto format = std::make_shared<CodedFormat>();
  format->video = copy_of(*encoder_->parameters());
  if (coded_->audio != nullptr) format->audio = copy_of(*coded_->audio);
  announced.format = std::move(format);
  announced.video = avcodec_get_name(AV_CODEC_ID_H264);
  return announced;
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
  if (packet->track == Track::video) return take_picture(std::move(packet));
  bool too_soon = !passing_ && encoder_ == nullptr;
  (too_soon ? sound_ : ready_).push_back(std::move(packet));
  return ok();
}

Status AnnotatedInput::take_picture(CopyPacketPtr packet) {
  LogTap::Listening listening(tap_);
  if (packet->key && decoder_ != nullptr && state_->keep_up.passing(boot_now()) != passing_) {
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
  if (packet->key && coded_->video != nullptr && is_h264()) {
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
  if (encoder_ != nullptr) return hand_on(*frame);
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
  state_->tell(true, fmt::format("pictures of {}x{} are encoded by {}", like.width, like.height, encoder_->name()));
  for (AvPtr<AVFrame>& frame : std::exchange(first_, {})) {
    TRY(handed, hand_on(*frame));
  }
  for (CopyPacketPtr& each : std::exchange(sound_, {})) ready_.push_back(std::move(each));
  return ok();
}

void AnnotatedInput::draw(AVFrame& frame) {
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
  TRY(packets, encoder_->encode(*page));
  Instant now = boot_now();
  for (AvPtr<AVPacket>& each : packets) {
    auto made = std::make_unique<CodedPacket>();
    made->track = Track::video;
    made->key = (each->flags & AV_PKT_FLAG_KEY) != 0;
    made->pts = Duration(each->pts);
    made->bytes = static_cast<size_t>(each->size);
    made->arrived = now;
    made->packet = std::move(each);
    ready_.push_back(std::move(made));
    state_->keep_up.left(*ready_.back()->pts, now, std::exchange(waited_, false));
    state_->config.left(state_->keep_up.lag());
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
