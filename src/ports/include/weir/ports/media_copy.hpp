// CopyInput and CopyOutput: the two ends of a stream that is forwarded as it is, packet by packet, never decoded.
//
// Everything blocks, every call has a bound, and `interrupt` (any thread) ends a blocked call within 200 ms, name
// resolution aside. Failures are those of forward::failure. An object is one connection: another connection needs
// another object. Everything but `interrupt` and `reset` belongs to one thread at a time.
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/forward/flow.hpp"
#include "weir/forward/stamps.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace weir {

class CopyPacket {
 public:
  virtual ~CopyPacket() = default;
  forward::Track track = forward::Track::video;
  bool key = false;                    // a picture that can be decoded by itself; all sound
  std::optional<Duration> pts = {};    // in the input's own time
  size_t bytes = 0;
  Instant arrived{};
};
using CopyPacketPtr = std::unique_ptr<CopyPacket>;

// What a destination must know before the first packet.
class CopyFormat {
 public:
  virtual ~CopyFormat() = default;
  virtual bool same_as(const CopyFormat& other) const = 0;
};

struct CopyFacts {
  std::shared_ptr<const CopyFormat> format;
  std::string video, audio;  // codecs, "" where there is none
  int width = 0, height = 0;
  int reorder = 0;           // how many pictures may come before one that is shown earlier
  Duration step = 40ms;      // between two pictures
  Duration sound_step = 21333us;  // between two packets of sound
  std::string peer;          // the address really connected to
};

class CopyInput {
 public:
  virtual ~CopyInput() = default;
  // Connects, and waits for the first picture that can be decoded by itself, which `read` hands out first.
  virtual Result<CopyFacts> open(Duration within) = 0;
  virtual Result<CopyPacketPtr> read() = 0;
  // Called about ten times a second from within `read`, on its thread; before the first `read`.
  virtual void set_meanwhile(std::function<void()> meanwhile) = 0;
  virtual void interrupt() = 0;
};

class CopyOutput {
 public:
  virtual ~CopyOutput() = default;
  // Connects until the destination has agreed to be sent the stream.
  virtual Status open(const CopyFormat& format) = 0;
  // Whether a packet of so many bytes can be written without a long wait for the destination.
  virtual bool has_room(size_t bytes) = 0;
  // Fails where nothing was acknowledged for too long, also while it waits.
  virtual Status write(CopyPacket& packet, const forward::Stamp& stamp) = 0;
  // Between `true` and `false` packets are gathered on their way; the last one is not held up.
  virtual void gather(bool on) = 0;
  // What the destination's machine has acknowledged; fails as `write` does. To be called while there is no packet to
  // write.
  virtual Result<forward::Flow::State> look() = 0;
  virtual std::uint64_t media_bytes() const = 0;
  // Ends the stream in good order, within a short bound.
  virtual void close() = 0;
  virtual void interrupt() = 0;
  // Ends the connection at once; what the kernel has not sent yet is thrown away. Any thread.
  virtual void reset() = 0;
};

}  // namespace weir
