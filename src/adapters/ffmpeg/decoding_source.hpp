// DecodingSource: what every source of this folder shares: its Watch, its LogTap, its decoder, and the
// counting and stamping of packets. A subclass opens, fetches and closes.
// Belongs to one thread; `interrupt` may come from any.
#pragma once

#include "wire/av_log.hpp"
#include "backlog.hpp"
#include "capture_clock.hpp"
#include "decoder.hpp"
#include "timeline.hpp"
#include "wire/watch.hpp"

#include "weir/ffmpeg/source.hpp"

namespace weir::ffmpeg {

class DecodingSource : public VideoSource {
 public:
  Result<StreamFacts> open() final;
  Result<PacketPtr> read() final;
  Result<std::vector<PicturePtr>> decode(const PacketPtr& packet) final;
  Result<PicturePtr> decode_alone(const PacketPtr& packet) final;
  void restart_decoder() final;
  void close() final;
  void interrupt() final { watch_.interrupt(); }
  StreamFacts facts() const final { return facts_; }

 protected:
  explicit DecodingSource(const SourceConfig& config) : config_(config), tap_(config.url) {}

  struct Fetched {
    AvPtr<AVPacket> packet;
    std::optional<Duration> stamp = {};      // the camera's presentation time
    std::optional<WallTime> captured = {};   // as far as the camera said
    std::optional<Instant> received = {};    // where it was not just now
    bool waited = true;                      // it was not there yet when it was asked for
  };
  // Returns when there is a connection; names the codec, the peer and what else is known before the first picture.
  virtual Result<StreamFacts> connect() = 0;
  // The next coded picture.
  virtual Result<Fetched> fetch() = 0;
  virtual void disconnect() = 0;
  virtual const AVCodecParameters& parameters() const = 0;

  const SourceConfig config_;
  LogTap tap_;
  Watch watch_;

 private:
  Result<std::shared_ptr<const CodedPicture>> next();
  void renew_facts();

  StreamFacts facts_;
  std::unique_ptr<Decoder> decoder_;
  PacketPtr first_;  // read by `open` already
  Timeline timeline_;
  Backlog backlog_;
  CaptureClock capture_clock_;
  std::int64_t number_ = 0;
};

std::unique_ptr<VideoSource> make_stream_source(const SourceConfig& config, std::string_view scheme);
std::unique_ptr<VideoSource> make_snapshot_source(const SourceConfig& config, std::string_view scheme);

}  // namespace weir::ffmpeg
