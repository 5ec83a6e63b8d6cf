// A destination that answers what it likes, on the other end of an RTMP output: nothing it says makes a call last
// longer than its bound, brings the stream key or a credential into a log or an error, or leads the output to another
// address.
#include "call_check.hpp"
#include "dial_watch.hpp"
#include "rtmp_answers.hpp"

#include "camera_testing.hpp"
#include "copy/coded.hpp"

#include "weir/base/json.hpp"
#include "weir/ffmpeg/copy.hpp"
#include "weir/forward/failure.hpp"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

#include <atomic>
#include <mutex>

namespace weir::fuzz {
namespace {

namespace testing = ffmpeg::testing;
using forward::Track;

constexpr Duration kConnectMax = 600ms, kStallMax = 300ms, kFarewellMax = 1s;
constexpr Duration kSlack = 2s;       // of a busy machine, with sanitizers
constexpr Duration kPatience = 25ms;  // of the server, with a silent client
constexpr Duration kHold = kConnectMax + kSlack + 1s;
constexpr int kPackets = 32;
constexpr size_t kClientHandshake = 1537;
constexpr size_t kSmall = 700, kLarge = 256 << 10;

// As they stand in the URL, and decoded.
constexpr std::string_view kSecrets[] = {kUser, kPassword, kKey, kToken, "xyzzy%2Dkey"};

// `kind` is a digit below kUrls.
Secret url_at(int port, char kind) {
  const std::string paths[kUrls] = {
      fmt::format("app/{}?auth={}", kKey, kToken), fmt::format("app/{}/{}.flv", kToken, kKey),
      fmt::format("app/{}?auth=ab/{}", kKey, kToken), fmt::format("app/xyzzy%2Dkey?auth={}", kToken)};
  return Secret(
      fmt::format("rtmp://{}:{}@127.0.0.1:{}/{}", kUser, kPassword, port, paths[static_cast<size_t>(kind - '0')]));
}

void check_silent(std::string_view where, const std::string& text) { fuzz::check_silent(kSecrets, where, text); }

void check_lines(std::string_view text) {
  for (size_t end; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1))
    check(static_cast<bool>(json::parse_text(text.substr(0, end))),
          fmt::format("a log line is not JSON: {:?}", text.substr(0, end)));
}

void set_patience(int fd, Duration patience) {
  timeval time{patience / 1s, std::chrono::microseconds(patience % 1s).count()};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
}

// Reads until that was heard. False where the client fell silent before, or is gone.
template <class Enough>
bool hear(int fd, const Enough& enough) {
  std::string heard;
  for (char part[4096]; !enough(heard);) {
    ssize_t size = recv(fd, part, sizeof part, 0);
    if (size <= 0) return false;
    heard.append(part, static_cast<size_t>(size));
  }
  return true;
}

ffmpeg::Parameters parameters(AVMediaType type, AVCodecID codec, std::string_view extra) {
  ffmpeg::Parameters made(avcodec_parameters_alloc());
  made->codec_type = type;
  made->codec_id = codec;
  made->extradata = static_cast<std::uint8_t*>(av_mallocz(extra.size() + AV_INPUT_BUFFER_PADDING_SIZE));
  std::ranges::copy(extra, made->extradata);
  made->extradata_size = static_cast<int>(extra.size());
  return made;
}

// H.264 of 176 × 144, and AAC.
ffmpeg::CodedFormat make_format() {
  ffmpeg::CodedFormat format;
  format.video = parameters(AVMEDIA_TYPE_VIDEO, AV_CODEC_ID_H264,
                            {"\0\0\0\1\x67\x42\xC0\x0A\xDA\x05\x82\x59\x10\0\0\0\1\x68\xCE\x3C\x80", 21});
  format.video->width = 176;
  format.video->height = 144;
  format.audio = parameters(AVMEDIA_TYPE_AUDIO, AV_CODEC_ID_AAC, "\x12\x10");
  format.audio->sample_rate = 44100;
  av_channel_layout_default(&format.audio->ch_layout, 2);
  return format;
}

ffmpeg::CodedPacket make_packet(Track track, size_t bytes) {
  std::string_view head = track == Track::video ? std::string_view("\0\0\0\1\x65", 5) : "\x21";
  ffmpeg::CodedPacket made;
  made.track = track;
  made.key = true;
  made.bytes = bytes;
  made.packet = ffmpeg::owned(av_packet_alloc());
  if (av_new_packet(made.packet.get(), static_cast<int>(bytes)) < 0) throw std::bad_alloc();
  std::fill_n(made.packet->data, bytes, std::uint8_t{0x55});
  std::ranges::copy(head, made.packet->data);
  made.packet->flags |= AV_PKT_FLAG_KEY;
  return made;
}

// FFmpeg forgets to free a message of the server that ends the stream, up to 16 MB a connection.
Status write(CopyOutput& output, CopyPacket& packet, Duration at) {
#ifdef __SANITIZE_ADDRESS__
  __lsan::ScopedDisabler ffmpeg_leaks_the_last_message;
#endif
  return output.write(packet, {at, at});
}

class RtmpTarget final : public Target {
 public:
  RtmpTarget() : format_(make_format()), server_([this](testing::Dial& dial) { serve(dial); }) {
    test::StallMonitor::get();
    watch_dials(server_.port());
    files_ = open_files();
  }
  ~RtmpTarget() override { watch_dials(0); }

  Input draw(Mutator& mutate) override { return draw_rtmp_answers(mutate); }

  void run(const Input& input) override {
    {
      std::lock_guard lock(mutex_);
      script_ = input;
      connections_ = 0;
    }
    over_ = false;
    const std::string& manners = input.at(kManners);
    auto to = forward::read_destination(url_at(server_.port(), manners.at(1)));
    check(static_cast<bool>(to), "the destination was refused");
    auto output = ffmpeg::make_copy_output({.to = *to, .connect_timeout = kConnectMax, .stall_timeout = kStallMax});
    publish(*output, manners.at(0) == kDeaf);
    leave(*output, manners.at(2));
    output.reset();
    over_ = true;
    std::string logged = log_.take();
    check_silent("the log", logged);
    check_lines(logged);
    // Credentials that are asked for take connections of their own.
    Dials dials = take_dials();
    check(dials.elsewhere.empty(), dials.elsewhere.empty() ? "" : "it went elsewhere: " + dials.elsewhere.front());
    check(dials.to_peer > 0, "it dialled nobody");
    check(test::eventually(kHold + kSlack, [&] { return open_files() == files_; }), "a connection was left open");
  }

  std::string finish() override {
    return fmt::format("{} destinations opened, {} refused, {} broke off, {} packets", opened_, refused_, broken_,
                       packets_);
  }
  bool conclusive() const override { return opened_ > 0 && refused_ > 0 && broken_ > 0 && packets_ > 0; }

 private:
  // A server that is deaf is sent more than the sockets between hold.
  void publish(CopyOutput& output, bool deaf) {
    auto failed = [&](const auto& result) {
      if (result) return false;
      const Error& error = result.error();
      check_silent("an error", error.reason + error.message + json::to_text(error.details));
      check(row_of(forward::failure_of(error).kind).side == forward::Side::output,
            fmt::format("the destination made it fail with {}: {}", error.reason, error.message));
      return true;
    };
    if (failed(within("open", kConnectMax + kStallMax + kSlack, [&] { return output.open(format_); })))
      return void(++refused_);
    ++opened_;
    for (int i = 0; i < kPackets; ++i) {
      ffmpeg::CodedPacket packet =
          i % 2 == 0 ? make_packet(Track::video, deaf ? kLarge : kSmall) : make_packet(Track::audio, 20);
      output.gather(i % 4 != 3);
      if (failed(within("write", kStallMax + kSlack, [&] { return write(output, packet, i * 20ms); })))
        return void(++broken_);
      ++packets_;
      if (failed(within("look", kStallMax + kSlack, [&] { return output.look(); }))) return void(++broken_);
    }
    if (!deaf) return;
    bool noticed = test::eventually(kStallMax + kSlack, [&] { return failed(output.look()); });
    check(noticed, "nothing is read, and nobody notices");
    ++broken_;
  }
  void leave(CopyOutput& output, char how) {
    if (how == kResets) output.reset();
    if (how == kInterrupted) output.interrupt();
    within("close", kFarewellMax + kSlack, [&] {
      output.close();
      return Nothing{};
    });
  }

  // The server's thread, once for each connection: one answer after each thing that it waits for, and the rest of them
  // at once where the client does not say it.
  void serve(testing::Dial& dial) {
    Input script;
    size_t earlier = 0;
    {
      std::lock_guard lock(mutex_);
      script = script_;
      earlier = connections_++;
    }
    char ending = script.at(kManners).at(0);
    set_patience(dial.fd(), kPatience);
    int little = 4096;
    if (ending == kDeaf) setsockopt(dial.fd(), SOL_SOCKET, SO_RCVBUF, &little, sizeof little);
    if (!hear(dial.fd(), [](const std::string& heard) { return heard.size() >= kClientHandshake; })) return;
    if (!dial.send(script.at(kHandshake))) return;
    size_t challenge = kChallenges + earlier;
    std::pair<std::string_view, size_t> steps[] = {
        {"connect", challenge < script.size() ? challenge : kConnect},
        {"createStream", kCreate},
        {"publish", kPublish}};
    bool understood = true;
    for (const auto& [word, answer] : steps) {
      auto said = [&](const std::string& heard) { return heard.find(word) != std::string::npos; };
      understood = understood && hear(dial.fd(), said);
      if (!dial.send(script.at(answer))) return;
    }
    if (ending == kDeaf) test::eventually(kHold, [&] { return over_.load(); });
    if (ending == kDeaf || ending == kHangsUp) return;
    if (ending == kEnds) shutdown(dial.fd(), SHUT_WR);
    if (ending == kHolds) set_patience(dial.fd(), kHold);
    dial.hold();
  }

  LogFile log_;
  const ffmpeg::CodedFormat format_;
  // Guards what the server's thread takes at the beginning of each connection.
  std::mutex mutex_;
  Input script_;
  size_t connections_ = 0;
  std::atomic<bool> over_ = false;  // the client is gone
  testing::ScriptedCamera server_;
  std::ptrdiff_t files_ = 0;
  std::uint64_t opened_ = 0, refused_ = 0, broken_ = 0, packets_ = 0;
};

}  // namespace

std::unique_ptr<Target> make_rtmp_target() { return std::make_unique<RtmpTarget>(); }

}  // namespace weir::fuzz
