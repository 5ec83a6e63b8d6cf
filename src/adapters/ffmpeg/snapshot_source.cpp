// Cameras that only give a JPEG by HTTP: each fetch is a connection of its own, and each picture a key packet.
#include "wire/address.hpp"
#include "decoding_source.hpp"

namespace weir::ffmpeg {

namespace {
using restart::StreamErrorCode;

constexpr size_t kJpegBytesMax = 16 << 20;

class SnapshotSource final : public DecodingSource {
 public:
  SnapshotSource(const SourceConfig& config, std::string_view scheme)
      : DecodingSource(config), tls_(scheme == "https") {
    parameters_.codec_type = AVMEDIA_TYPE_VIDEO;
    parameters_.codec_id = AV_CODEC_ID_MJPEG;
    parameters_.format = AV_PIX_FMT_NONE;
  }

 protected:
  Result<StreamFacts> connect() override {
    TRY(address, resolve(config_.url, config_.loopback));
    address_ = address;
    opened_ = due_ = boot_now();
    StreamFacts facts;
    facts.codec = "mjpeg";
    facts.fps = 1 / seconds(config_.snapshot_interval);
    facts.peer = address.literal;
    return facts;
  }
  Result<Fetched> fetch() override;
  void disconnect() override {}
  const AVCodecParameters& parameters() const override { return parameters_; }

 private:
  Result<AvPtr<AVPacket>> download();

  const bool tls_;
  AVCodecParameters parameters_{};
  Address address_;
  Instant opened_{}, due_{};
};

Result<DecodingSource::Fetched> SnapshotSource::fetch() {
  Instant now = boot_now();
  if (due_ > now && !watch_.wait(due_ - now)) return interrupted();
  due_ = std::max(due_ + config_.snapshot_interval, boot_now());
  TRY(packet, download());
  Fetched fetched{std::move(packet)};
  fetched.stamp = boot_now() - opened_;
  return fetched;
}

Result<AvPtr<AVPacket>> SnapshotSource::download() {
  AvOptions options;
  options.set("protocol_whitelist", tls_ ? "https,tls,tcp" : "http,tcp");
  options.set("timeout", config_.connect_timeout.count());
  options.set("max_redirects", 0);
  options.set("user_agent", "Weir");
  options.set("icy", 0);
  options.set("seekable", 0);
  options.set("headers", fmt::format("Host: {}:{}\r\n", bracketed(address_.host), address_.port));
  if (config_.tls_verify) {
    options.set("tls_verify", 1);
    options.set("verifyhost", address_.host);
  }
  tap_.heard = {};
  watch_.arm(config_.connect_timeout);
  AVIOInterruptCB bound = watch_.callback();
  AVIOContext* raw = nullptr;
  int failed = avio_open2(&raw, url_at(config_.url, address_).reveal().c_str(), AVIO_FLAG_READ, &bound, options.get());
  if (failed < 0) {
    Error error = open_failure(failed, watch_.ended(), tap_.heard, config_.connect_timeout);
    after_dial(address_, error, tap_.heard.connected);
    return error;
  }
  AvPtr<AVIOContext> io(raw);
  std::string body;
  for (;;) {
    char part[16384];
    int got = avio_read(io.get(), reinterpret_cast<unsigned char*>(part), sizeof part);
    if (got == AVERROR_EOF || got == 0) break;
    if (got < 0) return read_failure(got, watch_.ended(), config_.connect_timeout);
    body.append(part, static_cast<size_t>(got));
    if (body.size() > kJpegBytesMax)
      return stream_failure(StreamErrorCode::rtsp_protocol, "the camera's picture is larger than 16 MB");
  }
  if (watch_.ended() != Ended::by_itself) return read_failure(AVERROR_EXIT, watch_.ended(), config_.connect_timeout);
  if (!body.starts_with("\xFF\xD8"))
    return stream_failure(StreamErrorCode::rtsp_protocol, "the camera's answer is not a JPEG");
  AvPtr<AVPacket> packet = owned(av_packet_alloc());
  if (av_new_packet(packet.get(), static_cast<int>(body.size())) < 0) throw std::bad_alloc();
  std::copy(body.begin(), body.end(), packet->data);
  packet->flags |= AV_PKT_FLAG_KEY;
  return packet;
}
}  // namespace

std::unique_ptr<VideoSource> make_snapshot_source(const SourceConfig& config, std::string_view scheme) {
  return std::make_unique<SnapshotSource>(config, scheme);
}

}  // namespace weir::ffmpeg
