#include "decoding_source.hpp"

namespace weir::ffmpeg {

Result<StreamFacts> DecodingSource::open() {
  close();
  LogTap::Listening here(tap_);
  tap_.heard = {};
  TRY(facts, connect());
  facts_ = facts;
  timeline_ = {};
  backlog_ = {};
  capture_clock_ = {};
  number_ = 0;
  TRY(decoder, Decoder::create(parameters(), config_.threads));
  decoder_ = std::move(decoder);
  TRY(first, next());
  // Tells the size, also where the picture itself cannot be decoded yet.
  auto tried = decoder_->decode(*first);
  if (!tried) return std::move(tried).error();
  renew_facts();
  decoder_->restart();
  first_ = first;
  return facts_;
}

Result<std::shared_ptr<const CodedPicture>> DecodingSource::next() {
  if (watch_.interrupted()) return interrupted();
  TRY(fetched, fetch());
  auto packet = std::make_shared<CodedPicture>(std::move(fetched.packet));
  Instant now = boot_now();
  packet->received = fetched.received.value_or(now);
  packet->key = starts_alone(packet->av(), parameters());
  packet->number = number_++;
  packet->stream_time = timeline_.at(fetched.stamp, from_seconds(facts_.fps > 0 ? 1 / facts_.fps : 0.04));
  Duration lay = backlog_.at(fetched.waited || !fetched.stamp, packet->received, packet->stream_time);
  WallTime arrived = wall_now() - (now - packet->received) - lay;
  packet->captured = capture_clock_.at(fetched.captured, arrived, packet->stream_time);
  return std::shared_ptr<const CodedPicture>(std::move(packet));
}

Result<PacketPtr> DecodingSource::read() {
  LogTap::Listening here(tap_);
  if (first_) return std::exchange(first_, nullptr);
  if (!decoder_) return stream_failure(restart::StreamErrorCode::rtsp_protocol, "the source is not open");
  TRY(packet, next());
  return PacketPtr(packet);
}

Result<std::vector<PicturePtr>> DecodingSource::decode(const PacketPtr& packet) {
  LogTap::Listening here(tap_);
  if (!decoder_) return stream_failure(restart::StreamErrorCode::rtsp_protocol, "the source is not open");
  auto pictures = decoder_->decode(static_cast<const CodedPicture&>(*packet));
  renew_facts();
  return pictures;
}

Result<PicturePtr> DecodingSource::decode_alone(const PacketPtr& packet) {
  LogTap::Listening here(tap_);
  if (!decoder_) return stream_failure(restart::StreamErrorCode::rtsp_protocol, "the source is not open");
  auto picture = decoder_->decode_alone(static_cast<const CodedPicture&>(*packet));
  renew_facts();
  return picture;
}

void DecodingSource::restart_decoder() {
  LogTap::Listening here(tap_);
  if (decoder_) decoder_->restart();
}

void DecodingSource::close() {
  LogTap::Listening here(tap_);
  disconnect();
  decoder_.reset();
  first_.reset();
}

void DecodingSource::renew_facts() {
  facts_.width = decoder_->width();
  facts_.height = decoder_->height();
  facts_.reordered = decoder_->reorders();
  if (double fps = decoder_->fps(); fps > 0 && fps < 1000) facts_.fps = fps;
}

}  // namespace weir::ffmpeg
