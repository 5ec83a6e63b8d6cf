// LinkedOutput: what every output of a forward shares, whatever protocol it speaks.
//
// It watches the TCP connection underneath FFmpeg's protocol: whether the destination's machine acknowledges what it is
// sent, whether the right to send still counts, and whether somebody asked for an end. It writes packets under the times
// that they are given. A subclass opens the connection, says goodbye, and names failures. `interrupt` and `reset` may be
// called from any thread; the rest belongs to one thread at a time.
#pragma once

#include "../wire/watch.hpp"
#include "coded.hpp"
#include "tcp_link.hpp"

#include <array>
#include <optional>

namespace weir::ffmpeg {

class LinkedOutput : public CopyOutput {
 public:
  bool has_room(size_t bytes) final { return link_->has_room(bytes); }
  Status write(CopyPacket& packet, const forward::Stamp& stamp) final;
  void gather(bool on) final { link_->cork(on); }
  Result<forward::Flow::State> look() final;
  std::uint64_t media_bytes() const final { return flow_ ? flow_->media_bytes() : 0; }
  void interrupt() final { watch_.interrupt(); }
  // Where the input's connection leads to the same port, it is reset with the output's.
  void reset() final {
    watch_.interrupt();
    TcpLink::reset_all(bounds_.port);
  }

 protected:
  struct Bounds {
    int port = 0;  // of the destination
    Duration stall_timeout{};
    std::function<bool(Instant now)> may_send;
  };
  static constexpr Duration kFarewell = 500ms;
  LinkedOutput(Bounds bounds, const Secret& url, const std::vector<Secret>& secrets)
      : tap_(url, secrets), bounds_(std::move(bounds)) {}

  // For FFmpeg, which calls it before every write and ten times a second while it waits.
  AVIOInterruptCB callback();
  bool give_up();
  std::optional<Error> given_up() const;
  virtual Error write_failure(int error) const = 0;

  // A context with a track for each of the format's. Throws where memory runs out; null where FFmpeg has no such muxer.
  bool make_context(const char* muxer, const CodedFormat& format);
  // Finds the connection that was made since `others` were listed. False where it is gone already.
  bool attach(const std::vector<int>& others);
  // No goodbye is heard, or none may be said.
  bool dead() const { return broken_ || forbidden_ || state_ == forward::Flow::State::stalled; }
  // Ends the TCP connection: in good order unless it is dead.
  void hang_up();

  struct OutputFree {
    void operator()(AVFormatContext* context) const { avformat_free_context(context); }
  };
  LogTap tap_;
  Watch watch_;
  std::unique_ptr<AVFormatContext, OutputFree> context_;
  bool broken_ = false;

 private:
  AVStream* add_track(const Parameters& parameters);

  const Bounds bounds_;
  std::array<AVStream*, 2> tracks_ = {};  // by forward::Track
  std::array<std::optional<std::int64_t>, 2> last_dts_ = {};
  std::unique_ptr<TcpLink> link_;
  std::optional<forward::Flow> flow_;
  forward::Flow::State state_ = forward::Flow::State::waiting;
  Instant looked_{};
  bool forbidden_ = false;  // the right to send was over
};

}  // namespace weir::ffmpeg
