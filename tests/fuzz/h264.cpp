// Coded pictures as a camera or the way from it may have damaged them, through the decoder, the plan that chooses what
// is decoded, the motion gate, and what is made of the pictures.
#include "picture_check.hpp"

#include "clip_testing.hpp"
#include "decoder.hpp"

#include "weir/base/log.hpp"
#include "weir/motion/decode_plan.hpp"

#include <deque>

namespace weir::fuzz {
namespace {

using ffmpeg::AvPtr;
using ffmpeg::CodedPicture;
using ffmpeg::Decoder;
using ffmpeg::owned;
namespace testing = ffmpeg::testing;

constexpr std::string_view kStart("\0\0\1", 3);
// Start codes, parameter sets (the last one of 16000 x 16000 pixels), slices, SEI, the escape inside a unit, and
// numbers of many bits.
const Words kWords = {kStart,
                      {"\0\0\0\1", 4},
                      {"\0\0\3", 3},
                      "\x67",
                      "\x68",
                      "\x65",
                      "\x41",
                      "\x06",
                      "\x09\xF0",
                      "\x01",
                      "\x6F",
                      "\x0B",
                      {"\0\0\0\0\0\0\0\0", 8},
                      "\xFF\xFF\xFF\xFF",
                      "\x80",
                      {"\0\1", 2},
                      "\x67\x64",
                      "\x67\x42",
                      "\x67\x7A",
                      "\x67\xF4",
                      "\x67\x42\xC0\x33\xD9\x40\x0F\xA0\x01\xF4\x64"};

// {codec, threads, mode}, extradata, packets …
struct Stream {
  char codec = 'h';
  std::string extradata = {};
  std::vector<std::string> packets = {};
};

std::string bytes_of(const std::uint8_t* data, int size) {
  return data == nullptr ? "" : std::string(reinterpret_cast<const char*>(data), static_cast<size_t>(size));
}

Stream stream_of(char codec, const testing::ClipSpec& spec) {
  testing::Clip clip = testing::encode(spec);
  Stream stream{codec, bytes_of(clip.encoder->extradata, clip.encoder->extradata_size)};
  for (const auto& packet : clip.packets) stream.packets.push_back(bytes_of(packet->data, packet->size));
  return stream;
}

std::vector<Stream> right_streams() {
  testing::ClipSpec small{.width = 176, .height = 144, .pictures = 12, .group = 4};
  std::vector<Stream> all;
  auto add = [&](char codec, auto change) {
    testing::ClipSpec spec = small;
    change(spec);
    all.push_back(stream_of(codec, spec));
  };
  add('h', [](auto&) {});
  add('h', [](auto& s) { s.b_frames = 2, s.group = 12; });
  add('h', [](auto& s) { s.x264 = "cabac=0:slices=4:8x8dct=0"; });
  add('h', [](auto& s) { s.x264 = "interlaced=1:bff=1"; });
  add('h', [](auto& s) { s.x264 = "intra-refresh=1:weightp=2:ref=4"; });
  add('h', [](auto& s) { s.format = AV_PIX_FMT_YUV422P; });
  add('h', [](auto& s) { s.format = AV_PIX_FMT_YUV444P, s.x264 = "qp=0"; });
  add('h', [](auto& s) { s.global_header = true, s.width = 162, s.height = 90; });
  add('5', [](auto& s) { s.encoder = "libx265"; });
  add('m', [](auto& s) { s.encoder = "mjpeg", s.format = AV_PIX_FMT_YUVJ420P; });
  return all;
}

std::vector<std::string> units_of(std::string_view packet) {
  std::vector<std::string> units;
  for (size_t at = packet.find(kStart), next; at != std::string_view::npos; at = next) {
    next = packet.find(kStart, at + 3);
    units.emplace_back(packet.substr(at, next == std::string_view::npos ? next : next - at));
  }
  if (units.empty()) units.emplace_back(packet);
  return units;
}

// What decoders trust stands at the beginning of a unit; the rest is coefficients.
std::string changed_unit(Mutator& mutate, std::string unit, std::string_view other) {
  size_t head = std::min<size_t>(unit.size(), 3 + mutate.below(40));
  if (mutate.one_in(3)) return mutate.bytes(std::move(unit), kWords, other);
  return mutate.bytes(unit.substr(0, head), kWords, other) + unit.substr(head);
}

std::string changed_packet(Mutator& mutate, const std::string& packet, const std::string& other) {
  std::vector<std::string> units = units_of(packet), others = units_of(other);
  if (mutate.one_in(4)) mutate.shuffle(units);
  if (mutate.one_in(6))
    units.insert(units.begin() + static_cast<std::ptrdiff_t>(mutate.below(units.size() + 1)), mutate.any(others));
  std::string out;
  for (std::string& unit : units) out += mutate.one_in(2) ? changed_unit(mutate, unit, other) : unit;
  return out;
}

// The worker's way with a plan, with a check of what the plan believes to be kept.
class Camera {
 public:
  Camera(std::unique_ptr<Decoder> decoder, camera::Decode mode)
      : decoder_(std::move(decoder)), plan_(motion::DecodePlanConfig{.mode = mode, .kept_packets_max = 8}) {}

  bool take(const std::shared_ptr<CodedPicture>& packet) {
    newest_ = packet->number;
    return carry_out(plan_.on_packet({packet->key, packet->stream_time, packet->bytes()}), packet);
  }
  std::uint64_t pictures() const { return pictures_; }

 private:
  using Kept = std::shared_ptr<CodedPicture>;

  // False where the decoder gave the stream up.
  bool carry_out(const motion::Step& step, const Kept& packet) {
    check(step.forget <= kept_.size(), "the plan forgets more than is kept");
    check(packet || (!step.keep && step.decode == motion::DecodeAs::nothing),
          "the plan decodes a packet that is not there");
    kept_.erase(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(step.forget));
    if (step.keep) kept_.push_back(packet);
    std::deque<Kept> replayed;
    if (step.replay) replayed.swap(kept_);
    check(kept_.size() == plan_.kept_packets(), "the plan believes in other packets than are kept");
    if (step.replay) decoder_->restart();
    for (const Kept& each : replayed)
      if (!decode(*each)) return false;
    if (step.decode == motion::DecodeAs::full) return decode(*packet);
    if (step.decode == motion::DecodeAs::alone) return decode_alone(*packet);
    return true;
  }
  bool decode(const CodedPicture& packet) {
    auto pictures = decoder_->decode(packet);
    if (!pictures) return false;
    for (const PicturePtr& picture : *pictures)
      if (!look(*picture)) return false;
    return true;
  }
  bool decode_alone(const CodedPicture& packet) {
    auto picture = decoder_->decode_alone(packet);
    if (!picture) return false;
    check(!*picture || (*picture)->number == packet.number, "a packet decoded alone gave another one's picture");
    return !*picture || look(**picture);
  }
  bool look(const Picture& picture) {
    ++pictures_;
    check(picture.number >= 0 && picture.number <= newest_, "a picture of a packet that never was");
    check(picture.stream_time == 100ms * picture.number, "a picture with another one's time");
    check_picture(picture, gate_);
    return carry_out(plan_.on_motion(picture.number % 5 == 1, picture.stream_time), nullptr);
  }

  std::unique_ptr<Decoder> decoder_;
  motion::DecodePlan plan_;
  motion::MotionGate gate_{camera::MotionGating{}};
  std::deque<Kept> kept_;
  std::int64_t newest_ = 0;
  std::uint64_t pictures_ = 0;
};

class H264Target final : public Target {
 public:
  H264Target() {
    log::set_level(log::Level::off);  // damage is all there is
    right_ = right_streams();
  }

  Input draw(Mutator& mutate) override {
    // Mostly what the target is named after.
    const Stream& from = mutate.one_in(6) ? mutate.any(right_) : right_[mutate.below(8)];
    const Stream& other = mutate.any(right_);
    Stream stream = from;
    if (mutate.one_in(3) && !stream.extradata.empty())
      stream.extradata = changed_unit(mutate, stream.extradata, other.extradata);
    for (size_t changes = 1 + mutate.below(4); changes > 0; --changes) {
      // The first packet holds the parameter sets.
      std::string& packet = stream.packets[mutate.one_in(3) ? 0 : mutate.below(stream.packets.size())];
      packet = changed_packet(mutate, packet, mutate.any(other.packets));
    }
    if (mutate.one_in(4)) mutate.shuffle(stream.packets);
    Input input = {{stream.codec, static_cast<char>('1' + mutate.below(2)), static_cast<char>('0' + mutate.below(3))},
                   stream.extradata};
    input.insert(input.end(), stream.packets.begin(), stream.packets.end());
    return input;
  }

  void run(const Input& input) override {
    const std::string& how = input.at(0);
    std::unique_ptr<AVCodecParameters, testing::FreeParameters> parameters(avcodec_parameters_alloc());
    parameters->codec_type = AVMEDIA_TYPE_VIDEO;
    parameters->codec_id = how.at(0) == 'h'   ? AV_CODEC_ID_H264
                           : how.at(0) == '5' ? AV_CODEC_ID_HEVC
                                              : AV_CODEC_ID_MJPEG;
    if (const std::string& extradata = input.at(1); !extradata.empty()) {
      parameters->extradata = static_cast<std::uint8_t*>(av_mallocz(extradata.size() + AV_INPUT_BUFFER_PADDING_SIZE));
      parameters->extradata_size = static_cast<int>(extradata.size());
      std::copy(extradata.begin(), extradata.end(), parameters->extradata);
    }
    auto decoder = Decoder::create(*parameters, how.at(1) - '0');
    if (!decoder) return void(++refused_);
    Camera camera(std::move(*decoder), static_cast<camera::Decode>(how.at(2) - '0'));
    for (size_t i = 2; i < input.size(); ++i)
      if (!camera.take(coded(input[i], static_cast<std::int64_t>(i - 2), *parameters))) break;
    pictures_ += camera.pictures();
    packets_ += input.size() - 2;
  }

  std::string finish() override {
    return fmt::format("{} pictures from {} packets, {} streams without a decoder", pictures_, packets_, refused_);
  }
  bool conclusive() const override { return pictures_ > packets_ / 10; }

 private:
  static std::shared_ptr<CodedPicture> coded(const std::string& bytes, std::int64_t number,
                                             const AVCodecParameters& parameters) {
    AvPtr<AVPacket> packet = owned(av_packet_alloc());
    if (av_new_packet(packet.get(), static_cast<int>(bytes.size())) < 0) throw std::bad_alloc();
    std::copy(bytes.begin(), bytes.end(), packet->data);
    auto picture = std::make_shared<CodedPicture>(std::move(packet));
    picture->number = number;
    picture->key = ffmpeg::starts_alone(picture->av(), parameters);
    picture->stream_time = 100ms * number;
    return picture;
  }

  std::vector<Stream> right_;
  std::uint64_t pictures_ = 0, packets_ = 0, refused_ = 0;
};

}  // namespace

std::unique_ptr<Target> make_h264_target() { return std::make_unique<H264Target>(); }

}  // namespace weir::fuzz
