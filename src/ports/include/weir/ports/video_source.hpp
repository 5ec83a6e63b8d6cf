// VideoSource: a camera's stream as a thread reads it: packets first, pictures only where somebody wants them.
//
// Everything blocks, every call has a bound, and `interrupt` (any thread) ends a blocked call within 200 ms, name
// resolution aside; that call and all later ones answer with the reason "interrupted". A Packet is one coded picture;
// a Picture is one decoded picture whose planes are shared with the decoder and never change. Packets and Pictures
// may go to other threads; a source belongs to its camera's thread.
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/camera/config.hpp"
#include "weir/restart/stream_error.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace weir {

// Either a value or a StreamError: an Error whose reason is the code's name, e.g. "TCP_REFUSED".
Error stream_failure(restart::StreamErrorCode code, std::string detail);
restart::StreamError stream_error(const Error& error);

struct StreamFacts {
  std::string codec;         // "h264", "hevc", "mjpeg"
  int width = 0, height = 0;
  double fps = 0;            // as announced; 0 unknown
  bool audio = false;
  bool reordered = false;    // with B-frames: pictures leave the decoder later than their packets arrived
  std::string peer = {};     // the address really connected to
};

struct Region {
  int x = 0, y = 0, width = 0, height = 0;
  friend bool operator==(const Region&, const Region&) = default;
};

class Picture {
 public:
  virtual ~Picture() = default;
  virtual int width() const = 0;
  virtual int height() const = 0;
  // The 8-bit luma plane; `stride` bytes a row.
  virtual const std::uint8_t* luma() const = 0;
  virtual int luma_stride() const = 0;
  // Scales `from` to packed RGB (3 bytes a pixel) of the given size, full range. False where the pixels are of a kind
  // that cannot be converted.
  virtual bool to_rgb(Region from, int out_width, int out_height, std::span<std::uint8_t> out) const = 0;
  // A JPEG of the whole picture, at most `width_max` wide. Empty where it cannot be made.
  virtual std::string to_jpeg(int width_max, int quality) const = 0;

  std::int64_t number = 0;     // its packet's
  Duration stream_time{};      // its packet's
  WallTime captured{};         // best knowledge of when the camera took it
  Instant received{};          // when its packet arrived
};
using PicturePtr = std::shared_ptr<const Picture>;

class Packet {
 public:
  virtual ~Packet() = default;
  virtual size_t bytes() const = 0;
  bool key = false;            // decodable by itself
  Duration stream_time{};      // its presentation time in the stream, from an arbitrary zero
  std::int64_t number = 0;     // of this stream, counted from 0 in the order of arrival
  WallTime captured{};
  Instant received{};
};
using PacketPtr = std::shared_ptr<const Packet>;

class VideoSource {
 public:
  virtual ~VideoSource() = default;
  // Connects (one dial) and learns what the stream is.
  virtual Result<StreamFacts> open() = 0;
  // The next coded picture; STALLED when none comes within the stall time. Audio and the like are passed over.
  virtual Result<PacketPtr> read() = 0;
  // Feeds the packet to the running decoder; the pictures that came out of it, perhaps none yet. A damaged picture is
  // not an error; CODEC_UNSUPPORTED and DECODE_ERROR (many in a row, nothing decodable) are.
  virtual Result<std::vector<PicturePtr>> decode(const PacketPtr& packet) = 0;
  // Decodes one key packet by itself, without delay; null where it is damaged, DECODE_ERROR where many were. The
  // running decoder starts anew after it, and what it had not yet handed out is lost.
  virtual Result<PicturePtr> decode_alone(const PacketPtr& packet) = 0;
  // The running decoder forgets everything; the next packet for `decode` is a key packet.
  virtual void restart_decoder() = 0;
  virtual void close() = 0;
  virtual void interrupt() = 0;
  // The facts, renewed when codec or resolution change mid-stream.
  virtual StreamFacts facts() const = 0;
};

}  // namespace weir
