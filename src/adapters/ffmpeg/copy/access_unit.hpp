// AccessUnit: one coded picture, put together from the pieces in which RTP carries it.
//
// FFmpeg's RTP reader hands out the pieces, each under the picture's time; its parser would put them together too, and
// read every byte twice for things that nobody asks for here. A picture ends where the next one begins. H.264 and H.265;
// the pieces of other codecs are whole pictures already. One thread.
#pragma once

#include "../wire/av.hpp"

#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

namespace weir::ffmpeg {

class AccessUnit {
 public:
  enum class Codec { h264, hevc };
  static constexpr size_t kBytesMax = 16 << 20;
  explicit AccessUnit(Codec codec = Codec::h264) : hevc_(codec == Codec::hevc) {}
  bool empty() const { return size_ == 0; }
  // A stream whose time stands still makes no pictures.
  bool too_large() const { return size_ > kBytesMax; }
  // Whether a piece with this time, and these bytes, is of another picture.
  bool ends_before(std::int64_t pts, std::string_view piece) const {
    return !empty() && (pts != pts_ || (slices_ && begins_unit(piece)));
  }

  void append(std::int64_t pts, std::string_view piece) {
    if (empty()) pts_ = pts;
    look(piece);
    grow(size_ + piece.size());
    std::memcpy(buffer_->data + size_, piece.data(), piece.size());
    size_ += piece.size();
  }

  // The picture, and whether it can be decoded by itself; what follows is another one.
  bool key() const { return key_; }
  AvPtr<AVPacket> finish() {
    AvPtr<AVPacket> packet = owned(av_packet_alloc());
    std::memset(buffer_->data + size_, 0, AV_INPUT_BUFFER_PADDING_SIZE);
    packet->data = buffer_->data;
    packet->size = static_cast<int>(size_);
    packet->pts = pts_;
    if (key_) packet->flags |= AV_PKT_FLAG_KEY;
    packet->buf = buffer_.release();
    usual_ = std::max(size_, usual_ - usual_ / 16);
    size_ = 0;
    key_ = slices_ = false;
    return packet;
  }

 private:
  struct BufferFree {
    void operator()(AVBufferRef* buffer) const { av_buffer_unref(&buffer); }
  };
  enum Nal { kIdr = 5, kSupplement = 6, kSequenceParameters = 7, kDelimiter = 9 };
  enum HevcNal { kFirstRandom = 16, kLastRandom = 21, kHevcSlices = 32, kVideoParameters = 32, kHevcDelimiter = 35 };
  static constexpr int kRecoveryPoint = 6;  // of a supplement: decoding may begin here
  static constexpr std::string_view kStart{"\0\0\1", 3};

  bool begins_unit(std::string_view piece) const {
    for (size_t at : {size_t{3}, size_t{4}})
      if (piece.size() > at && piece.substr(at - 3, 3) == kStart) {
        int type = hevc_ ? piece[at] >> 1 & 0x3F : piece[at] & 0x1F;
        return hevc_ ? type == kHevcDelimiter || type == kVideoParameters
                     : type == kDelimiter || type == kSequenceParameters;
      }
    return false;
  }

  // Pieces in the middle of a slice have no start code; others may hold several units.
  void look(std::string_view piece) {
    if (piece.size() < 5 || piece[0] != 0 || piece[1] != 0) return;
    for (size_t at = piece.find(kStart); at != std::string_view::npos && at + 3 < piece.size();
         at = piece.find(kStart, at + 3))
      hevc_ ? look_at_hevc(piece.substr(at + 3)) : look_at_h264(piece.substr(at + 3));
  }
  void look_at_h264(std::string_view nal) {
    int type = nal[0] & 0x1F, next = nal.size() > 1 ? static_cast<unsigned char>(nal[1]) : 0;
    // A reader that joins in the middle of a keyframe gets its last slices only; a keyframe's first slice begins with
    // a set bit.
    if ((type == kIdr && (next & 0x80) != 0) || (type == kSupplement && next == kRecoveryPoint)) key_ = true;
    if (type >= 1 && type <= kIdr) slices_ = true;
  }
  // Its header has two bytes; here, too, a picture's first slice begins with a set bit.
  void look_at_hevc(std::string_view nal) {
    int type = nal[0] >> 1 & 0x3F;
    bool first = nal.size() > 2 && (nal[2] & 0x80) != 0;
    if (type >= kFirstRandom && type <= kLastRandom && first) key_ = true;
    if (type < kHevcSlices) slices_ = true;
  }

  void grow(size_t needed) {
    size_t has = buffer_ == nullptr ? 0 : buffer_->size - AV_INPUT_BUFFER_PADDING_SIZE;
    if (needed <= has) return;
    size_t wanted = std::max({needed, has * 2, usual_ + usual_ / 8, size_t{4096}});
    std::unique_ptr<AVBufferRef, BufferFree> larger(av_buffer_alloc(wanted + AV_INPUT_BUFFER_PADDING_SIZE));
    if (larger == nullptr) throw std::bad_alloc();
    if (size_ > 0) std::memcpy(larger->data, buffer_->data, size_);
    buffer_ = std::move(larger);
  }

  const bool hevc_;
  std::unique_ptr<AVBufferRef, BufferFree> buffer_;
  size_t size_ = 0, usual_ = 0;
  std::int64_t pts_ = AV_NOPTS_VALUE;
  bool key_ = false, slices_ = false;
};

}  // namespace weir::ffmpeg
