#include "../wire/address.hpp"
#include "../wire/watch.hpp"
#include "coded.hpp"
#include "tcp_link.hpp"

#include "weir/ffmpeg/copy.hpp"
#include "weir/forward/failure.hpp"

namespace weir::ffmpeg {

namespace {
using forward::Flow;
using forward::Kind;

constexpr Duration kFarewell = 500ms;
constexpr Duration kForEver = 24h;
constexpr Duration kLookEvery = 100ms;
constexpr int kKernelHolds = 512 << 10;  // bytes; what is in the kernel cannot be left out any more

struct OutputFree {
  void operator()(AVFormatContext* context) const { avformat_free_context(context); }
};

bool says(std::string_view text, std::string_view word) {
  return std::search(text.begin(), text.end(), word.begin(), word.end(), [](unsigned char a, unsigned char b) {
           return std::tolower(a) == b;
         }) != text.end();
}

class RtmpCopyOutput final : public CopyOutput {
 public:
  explicit RtmpCopyOutput(const CopyOutputConfig& config) : config_(config), tap_(config.to.url, config.to.secrets) {}
  ~RtmpCopyOutput() override { close(); }

  Status open(const CopyFormat& format) override;
  Status write(CopyPacket& packet, const forward::Stamp& stamp) override;
  bool has_room(size_t bytes) override { return link_->has_room(bytes); }
  void gather(bool on) override { link_->cork(on); }
  Result<Flow::State> look() override;
  std::uint64_t media_bytes() const override { return flow_ ? flow_->media_bytes() : 0; }
  void close() override;
  void interrupt() override { watch_.interrupt(); }
  void reset() override {
    watch_.interrupt();
    TcpLink::reset_all(config_.to.port);
  }

 private:
  Status connect();
  AVStream* add_track(const Parameters& parameters);
  bool give_up();
  Error open_failure(int error) const;
  Error write_failure(int error) const;
  std::optional<Error> given_up() const;

  const CopyOutputConfig config_;
  LogTap tap_;
  Watch watch_;
  std::unique_ptr<AVFormatContext, OutputFree> context_;
  AVStream *video_ = nullptr, *audio_ = nullptr;
  std::unique_ptr<TcpLink> link_;
  std::optional<Flow> flow_;
  Flow::State state_ = Flow::State::waiting;
  Instant looked_{};
  bool forbidden_ = false;  // the right to send was over
  bool broken_ = false;     // no goodbye
};

// FFmpeg asks this before every write and ten times a second while it waits.
bool RtmpCopyOutput::give_up() {
  Instant now = boot_now();
  if (!config_.may_send(now)) forbidden_ = true;
  if (link_ && flow_ && now - looked_ >= kLookEvery) {
    looked_ = now;
    state_ = flow_->look(link_->progress(), now);
  }
  return forbidden_ || state_ == Flow::State::stalled || watch_.ended_at(now) != Ended::by_itself;
}

std::optional<Error> RtmpCopyOutput::given_up() const {
  if (forbidden_) return forward::failure(Kind::deadline, "the right to send is over");
  if (state_ == Flow::State::stalled)
    return forward::failure(Kind::io_timeout, fmt::format("the destination has acknowledged nothing for {} s",
                                                          seconds(config_.stall_timeout)));
  if (watch_.ended() == Ended::by_interrupt) return interrupted();
  return std::nullopt;
}

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

AVStream* RtmpCopyOutput::add_track(const Parameters& parameters) {
  if (parameters == nullptr) return nullptr;
  AVStream* stream = avformat_new_stream(context_.get(), nullptr);
  if (stream == nullptr || avcodec_parameters_copy(stream->codecpar, parameters.get()) < 0) throw std::bad_alloc();
  stream->codecpar->codec_tag = 0;  // the container's own number
  return stream;
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
  AVIOInterruptCB callback{[](void* self) { return static_cast<RtmpCopyOutput*>(self)->give_up() ? 1 : 0; }, this};
  watch_.arm(config_.connect_timeout);
  if (give_up()) return open_failure(AVERROR_EXIT);
  std::vector<int> others = TcpLink::all(config_.to.port);
  AVIOContext* io = nullptr;
  int failed = avio_open2(&io, config_.to.url.reveal().c_str(), AVIO_FLAG_WRITE, &callback, options.get());
  if (failed < 0) return open_failure(failed);
  context_->pb = io;
  link_ = TcpLink::find(config_.to.port, others);
  if (!link_) return forward::failure(Kind::rtmp_reset, "the connection was gone as soon as it stood");
  link_->hold_at_most(kKernelHolds);
  flow_.emplace(link_->progress(), boot_now(), config_.stall_timeout);
  return ok();
}

Status RtmpCopyOutput::open(const CopyFormat& format) {
  LogTap::Listening listening(tap_);
  AVFormatContext* raw = nullptr;
  if (avformat_alloc_output_context2(&raw, nullptr, "flv", nullptr) < 0)
    return forward::failure(Kind::internal, "FFmpeg has no FLV muxer");
  context_.reset(raw);
  raw->flags |= AVFMT_FLAG_FLUSH_PACKETS;
  const auto& coded = static_cast<const CodedFormat&>(format);
  video_ = add_track(coded.video);
  audio_ = add_track(coded.audio);
  TRY(connected, connect());
  watch_.arm(config_.stall_timeout);
  AvOptions options;
  options.set("flvflags", "no_duration_filesize");
  int failed = avformat_write_header(raw, options.get());
  if (failed < 0) {
    broken_ = true;
    return write_failure(failed);
  }
  return ok();
}

Status RtmpCopyOutput::write(CopyPacket& packet, const forward::Stamp& stamp) {
  LogTap::Listening listening(tap_);
  AVStream* stream = packet.track == forward::Track::video ? video_ : audio_;
  if (stream == nullptr) return ok();
  AVPacket& coded = *static_cast<CodedPacket&>(packet).packet;
  coded.stream_index = stream->index;
  coded.dts = std::chrono::duration_cast<std::chrono::milliseconds>(stamp.dts).count();
  coded.pts = std::chrono::duration_cast<std::chrono::milliseconds>(stamp.pts).count();
  coded.duration = 0;
  // A destination that takes a little now and then, or begins a message and does not finish it, holds up the hub, too.
  watch_.arm(config_.stall_timeout);
  if (give_up()) return write_failure(AVERROR_EXIT);
  int failed = av_write_frame(context_.get(), &coded);
  // A packet that the muxer does not take costs that packet; what the connection does not take is remembered there.
  if (failed == AVERROR(EINVAL) || failed == AVERROR_INVALIDDATA) failed = context_->pb->error;
  if (failed >= 0) return ok();
  broken_ = true;
  return write_failure(failed);
}

Result<Flow::State> RtmpCopyOutput::look() {
  watch_.arm(kForEver);
  if (give_up()) return write_failure(AVERROR_EXIT);
  switch (link_->state()) {
    case TcpLink::State::open: return state_;
    case TcpLink::State::reset: return write_failure(AVERROR(ECONNRESET));
    case TcpLink::State::ended: break;
  }
  return write_failure(AVERROR_EOF);
}

void RtmpCopyOutput::close() {
  if (context_ == nullptr) return;
  LogTap::Listening listening(tap_);
  bool dead = broken_ || forbidden_ || state_ == Flow::State::stalled;
  watch_.last_words(dead ? Duration(0) : kFarewell);
  if (context_->pb != nullptr) avio_closep(&context_->pb);
  if (link_ != nullptr) link_->finish(dead ? Duration(0) : kFarewell, [this] { return config_.may_send(boot_now()); });
  context_.reset();
  link_.reset();
}

}  // namespace

std::unique_ptr<CopyOutput> make_copy_output(const CopyOutputConfig& config) {
  return std::make_unique<RtmpCopyOutput>(config);
}

}  // namespace weir::ffmpeg
