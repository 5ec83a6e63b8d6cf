#include "stream_voice.hpp"

#include "no_spool.hpp"

#include "weir/base/clock.hpp"

namespace weir::apps {

namespace {
constexpr Duration kEvery = 1s;  // between two measurements

worker::Source source_of(const StreamVoice::Config& config) {
  worker::Source source;
  source.config.tenant = config.tenant;
  source.config.site = config.site;
  source.config.camera = config.stream;
  return source;
}
}  // namespace

StreamVoice::StreamVoice(Config config, const worker::PublisherThread::BusFactory& make_bus,
                         const egress::SendRight& right, net::Metrics& metrics)
    : right_(right),
      source_(source_of(config)),
      thread_(make_bus, std::make_unique<NoSpool>()),
      reporter_(thread_.publisher(), metrics, config.owner, config.instance) {
  measure(boot_now());
}

// The publisher looks at the deadline itself; here it hears of the present one. A right that changes between the two
// looks is told with the next picture.
void StreamVoice::follow_right() {
  std::int64_t version = right_.version();
  auto ends = right_.ends();
  Told now{version, ends ? ends->valid_until : Instant::max()};
  if (now == told_ || right_.version() != version) return;
  told_ = now;
  // A version counts as a tenure of its own: the worker does not know whether somebody else had the stream in between,
  // and what waits from before must then not be sent.
  lease::Tenure tenure{BootId::trusted("stream"), {version}};
  thread_.publisher().set_lease(source_.config.camera, {version}, tenure, now.until);
}

double StreamVoice::rate(const Picture& picture) {
  if (!counted_) counted_ = Counted{picture.number, picture.received};
  Duration passed = picture.received - counted_->at;
  bool settled = passed >= kEvery || (fps_ == 0 && passed > Duration(0));
  if (!settled) return fps_;
  fps_ = static_cast<double>(picture.number - counted_->number) / seconds(passed);
  counted_ = Counted{picture.number, picture.received};
  return fps_;
}

void StreamVoice::saw(const Picture& picture, const Sighting& seen, Duration took) {
  follow_right();
  reporter_.looked(source_, picture, picture.number, seen.detections, rate(picture), seconds(took), Duration(0));
  Instant now = boot_now();
  looks_.count(now);
  if (now - measured_ >= kEvery) measure(now);
}

void StreamVoice::measure(Instant now) {
  measured_ = now;
  reporter_.measure_pipeline(looks_.rate(now), thread_.publisher().counters());
}

}  // namespace weir::apps
