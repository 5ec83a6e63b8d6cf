#include "linked_output.hpp"

#include "weir/forward/failure.hpp"

namespace weir::ffmpeg {

using forward::Flow;
using forward::Kind;

namespace {
constexpr Duration kForEver = 24h;
constexpr Duration kLookEvery = 100ms;
constexpr int kKernelHolds = 512 << 10;  // bytes; what is in the kernel cannot be left out any more
}  // namespace

AVIOInterruptCB LinkedOutput::callback() {
  return {[](void* self) { return static_cast<LinkedOutput*>(self)->give_up() ? 1 : 0; }, this};
}

bool LinkedOutput::give_up() {
  Instant now = boot_now();
  if (!bounds_.may_send(now)) forbidden_ = true;
  if (link_ && flow_ && now - looked_ >= kLookEvery) {
    looked_ = now;
    state_ = flow_->look(link_->progress(), now);
  }
  return forbidden_ || state_ == Flow::State::stalled || watch_.ended_at(now) != Ended::by_itself;
}

std::optional<Error> LinkedOutput::given_up() const {
  if (forbidden_) return forward::failure(Kind::deadline, "the right to send is over");
  if (state_ == Flow::State::stalled)
    return forward::failure(Kind::io_timeout, fmt::format("the destination has acknowledged nothing for {} s",
                                                          seconds(bounds_.stall_timeout)));
  if (watch_.ended() == Ended::by_interrupt) return interrupted();
  return std::nullopt;
}

bool LinkedOutput::make_context(const char* muxer, const CodedFormat& format) {
  AVFormatContext* raw = nullptr;
  if (avformat_alloc_output_context2(&raw, nullptr, muxer, nullptr) < 0) return false;
  context_.reset(raw);
  raw->flags |= AVFMT_FLAG_FLUSH_PACKETS;
  tracks_ = {add_track(format.video), add_track(format.audio)};
  return true;
}

AVStream* LinkedOutput::add_track(const Parameters& parameters) {
  if (parameters == nullptr) return nullptr;
  AVStream* stream = avformat_new_stream(context_.get(), nullptr);
  if (stream == nullptr || avcodec_parameters_copy(stream->codecpar, parameters.get()) < 0) throw std::bad_alloc();
  stream->codecpar->codec_tag = 0;  // the container's own number
  return stream;
}

bool LinkedOutput::attach(const std::vector<int>& others) {
  link_ = TcpLink::find(bounds_.port, others);
  if (!link_) return false;
  link_->hold_at_most(kKernelHolds);
  link_->send_at_once();
  flow_.emplace(link_->progress(), boot_now(), bounds_.stall_timeout);
  return true;
}

Status LinkedOutput::write(CopyPacket& packet, const forward::Stamp& stamp) {
  LogTap::Listening listening(tap_);
  auto track = static_cast<size_t>(packet.track);
  AVStream* stream = tracks_[track];
  if (stream == nullptr) return ok();
  AVPacket& coded = *static_cast<CodedPacket&>(packet).packet;
  coded.stream_index = stream->index;
  coded.dts = av_rescale_q(stamp.dts.count(), AV_TIME_BASE_Q, stream->time_base);
  coded.pts = av_rescale_q(stamp.pts.count(), AV_TIME_BASE_Q, stream->time_base);
  // Some muxers take no two packets of a track under one decoding time.
  std::int64_t least = (context_->oformat->flags & AVFMT_TS_NONSTRICT) != 0 ? 0 : 1;
  if (last_dts_[track]) coded.dts = std::max(coded.dts, *last_dts_[track] + least);
  coded.pts = std::max(coded.pts, coded.dts);
  last_dts_[track] = coded.dts;
  coded.duration = 0;
  // A destination that takes a little now and then, or begins a message and does not finish it, holds up the hub, too.
  watch_.arm(bounds_.stall_timeout);
  if (give_up()) return write_failure(AVERROR_EXIT);
  int failed = av_write_frame(context_.get(), &coded);
  // A packet that the muxer does not take costs that packet; what the connection does not take is remembered there.
  if (failed == AVERROR(EINVAL) || failed == AVERROR_INVALIDDATA) failed = context_->pb ? context_->pb->error : 0;
  if (failed >= 0) return ok();
  broken_ = true;
  return write_failure(failed);
}

Result<Flow::State> LinkedOutput::look() {
  watch_.arm(kForEver);
  if (give_up()) return write_failure(AVERROR_EXIT);
  switch (link_->state()) {
    case TcpLink::State::open: return state_;
    case TcpLink::State::reset: return write_failure(AVERROR(ECONNRESET));
    case TcpLink::State::ended: break;
  }
  return write_failure(AVERROR_EOF);
}

void LinkedOutput::hang_up() {
  if (link_ != nullptr)
    link_->finish(dead() ? Duration(0) : kFarewell, [this] { return bounds_.may_send(boot_now()); });
  link_.reset();
}

}  // namespace weir::ffmpeg
