#include "decoder.hpp"

#include "decoded_picture.hpp"

#include <fmt/format.h>

namespace weir::ffmpeg {

namespace {
using restart::StreamErrorCode;
constexpr Duration kHungerMax = 3s;
constexpr Duration kFirstKeyMax = 12s;  // longer than the keyframe intervals that cameras are set to
constexpr int kHungerPackets = 10;      // a slow camera's delay is no damage
constexpr std::int64_t kPixelsMax = 8192 * 4352;  // of the highest level of H.264 and H.265; damage announces any size
constexpr size_t kStampsMax = 64;       // four times the longest reordering there is

// A single damaged picture may also look like a kind of coding that does not exist; only a lasting state is named.
Error starved(int sent, Duration hunger) {
  if (sent == AVERROR_PATCHWELCOME)
    return stream_failure(StreamErrorCode::codec_unsupported, "the camera uses a kind of coding that is not supported");
  return stream_failure(StreamErrorCode::decode_error,
                        fmt::format("no decodable picture for {:.0f} s", seconds(hunger)));
}
}  // namespace

Duration Decoder::Hunger::feel(Duration now) {
  if (!since || now < *since) since = now;
  ++packets;
  return now - *since;
}

// H.264's decoder knows when a picture is whole again, which may be long before a key packet or without any; the others
// make up what they lack, in grey.
Decoder::Decoder(AvPtr<AVCodecContext> context)
    : context_(std::move(context)),
      input_(owned(av_packet_alloc())),
      knows_whole_(context_->codec_id == AV_CODEC_ID_H264) {}

Result<std::unique_ptr<Decoder>> Decoder::create(const AVCodecParameters& parameters, int threads) {
  const AVCodec* codec = avcodec_find_decoder(parameters.codec_id);
  if (codec == nullptr)
    return stream_failure(StreamErrorCode::codec_unsupported,
                          fmt::format("no decoder for the camera's video ({})", avcodec_get_name(parameters.codec_id)));
  AvPtr<AVCodecContext> context = owned(avcodec_alloc_context3(codec));
  int failed = avcodec_parameters_to_context(context.get(), &parameters);
  // Frame threading would hold back one picture for each thread.
  context->thread_type = FF_THREAD_SLICE;
  context->thread_count = threads;
  context->max_pixels = kPixelsMax;
  if (failed >= 0) failed = avcodec_open2(context.get(), codec, nullptr);
  if (failed < 0)
    return stream_failure(StreamErrorCode::codec_unsupported,
                          fmt::format("the decoder for {} does not start: {}", codec->name, av_words(failed)));
  return std::unique_ptr<Decoder>(new Decoder(std::move(context)));
}

int Decoder::send(const CodedPicture& packet) {
  stamps_[packet.number] = {packet.stream_time, packet.captured, packet.received};
  if (stamps_.size() > kStampsMax) stamps_.erase(stamps_.begin());
  if (int failed = av_packet_ref(input_.get(), &packet.av()); failed < 0) return failed;
  // The timestamp travels with the picture through all reordering and the decoder does not look at it: it carries the
  // packet's number.
  input_->pts = input_->dts = packet.number;
  int sent = avcodec_send_packet(context_.get(), input_.get());
  av_packet_unref(input_.get());
  return sent;
}

std::vector<PicturePtr> Decoder::receive() {
  std::vector<PicturePtr> pictures;
  for (;;) {
    AvPtr<AVFrame> frame = owned(av_frame_alloc());
    if (avcodec_receive_frame(context_.get(), frame.get()) < 0) return pictures;
    auto stamp = stamps_.find(frame->pts);
    if (stamp == stamps_.end()) continue;  // from before a restart
    auto picture = DecodedPicture::create(std::move(frame));
    if (picture) {
      picture->number = stamp->first;
      picture->stream_time = stamp->second.stream_time;
      picture->captured = stamp->second.captured;
      picture->received = stamp->second.received;
      pictures.push_back(std::move(picture));
    }
    stamps_.erase(stamp);
  }
}

Status Decoder::judge(const CodedPicture& packet, int sent, bool fed) {
  if (fed) {
    running_ = {};
    return ok();
  }
  Duration hunger = running_.feel(packet.stream_time);
  if (!keyed_ && !forced()) {
    if (hunger < kFirstKeyMax) return ok();
    context_->flags |= AV_CODEC_FLAG_OUTPUT_CORRUPT;
    running_ = {};
    return ok();
  }
  if (hunger < kHungerMax || running_.packets < kHungerPackets) return ok();
  return starved(sent, hunger);
}

Result<std::vector<PicturePtr>> Decoder::decode(const CodedPicture& packet) {
  if (packet.key && !keyed_) {
    if (!knows_whole_) restart();  // what follows must not refer to what was made up
    keyed_ = true;
    running_ = {};
  }
  int sent = send(packet);
  auto pictures = receive();
  if (!keyed_ && !knows_whole_ && !forced()) pictures.clear();
  TRY(healthy, judge(packet, sent, !pictures.empty()));
  return pictures;
}

Result<PicturePtr> Decoder::decode_alone(const CodedPicture& packet) {
  if (!stamps_.empty() || keyed_) restart();
  int sent = send(packet);
  auto pictures = receive();
  // Without reordering the picture is there at once. Only where it is not, the decoder is made to hand it out, which
  // costs as much as the picture: all its tables are built anew.
  if (pictures.empty()) {
    avcodec_send_packet(context_.get(), nullptr);
    pictures = receive();
    restart();
  }
  stamps_.clear();
  if (!pictures.empty()) {
    alone_ = {};
    return std::move(pictures.back());
  }
  Duration hunger = alone_.feel(packet.stream_time);
  if (hunger >= kHungerMax && alone_.packets >= 3)
    return starved(sent, hunger);
  return PicturePtr();
}

void Decoder::restart() {
  avcodec_flush_buffers(context_.get());
  context_->flags &= ~AV_CODEC_FLAG_OUTPUT_CORRUPT;
  stamps_.clear();
  keyed_ = false;
  running_ = {};
}

}  // namespace weir::ffmpeg
