#include "session.hpp"

#include "weir/base/clock.hpp"

#include <algorithm>
#include <cmath>

namespace weir::worker {

namespace {

// Pictures that were decoded after the fact come all at once; for so long no newer one replaces them.
constexpr Duration kReplayKept = 1s;

// The lookup of a camera's name cannot be interrupted, and where no nameserver answers it lasts: every one of them is asked
// twice, for every search domain. It always ends.
constexpr Duration kLookup = 5min;

// Where only keyframes are decoded and none comes for so long, or for so many of their intervals, the stream counts
// as one without keyframes.
constexpr Duration kKeylessMost = 10min;
constexpr int kKeylessIntervals = 4;

// The reason of a source that was told to stop, and of a dial that was given up before the source could be told.
constexpr std::string_view kInterrupted = "interrupted";
Error interrupted() { return Error{Errc::unavailable, std::string(kInterrupted), "the dial was given up"}; }

double area(const camera::FrameSize& size) { return static_cast<double>(size.width) * size.height; }

}  // namespace

Session::End Session::run() {
  Status served = dial();
  bool leaving = task_.leaving();
  for (; served && !leaving; leaving = task_.leaving()) {
    task_.pulse.back_within(patience_);
    Instant asked = boot_now();
    auto packet = video_->read();
    task_.status->attend([&, now = boot_now()](Attention& attention) { attention.waited(now, now - asked); });
    if (task_.stopping()) return End::stopped;  // its successor may count its own pictures already
    served = packet ? take(*packet) : Status(packet.error());
    if (wants_substream()) return End::use_substream;
    if (served && substream_ && !allows_substream(*source_)) return End::use_main;
  }
  // A pause may be over before this thread has noticed it: then it dials again, and nothing went wrong.
  if (served || leaving || served.error().reason == kInterrupted) return End::stopped;
  course_.error = stream_error(served.error());
  // The person who cut the cable may be in the pictures that were kept and not decoded yet, so they are decoded now;
  // an error of theirs would come too late to matter.
  task_.pulse.back_within(patience_);
  if (plan_) (void)carry_out(plan_->catch_up(), nullptr);
  return End::failed;
}

Status Session::dial() {
  source_ = task_.newest();
  const camera::Config& config = source_->config;
  DialRequest request{.camera = config.camera, .url = config.rtsp_url, .transport = config.transport};
  if (source_->snapshots) {
    request.url = config.snapshot->url;
    request.snapshot_interval = from_seconds(config.snapshot->interval_s);
    patience_ += *request.snapshot_interval;  // between two pictures the library waits
  } else if (substream_) {
    request.url = *config.substream_url;
  }
  task_.pulse.waits();
  auto permit = task_.parts.dials.wait(config.site, task_.stop.get_token());
  if (!permit) return interrupted();  // stopping
  task_.pulse.back_within(patience_);
  task_.set_state(StreamState::connecting);
  task_.status->update([](CameraView& view) { ++view.counts.dials; });
  TRY(video, task_.parts.open(request));
  video_ = std::move(video);
  {
    std::lock_guard guard(task_.mutex);
    task_.dialled = video_.get();
  }
  if (task_.leaving()) return interrupted();  // an interrupt that came before could not be heard
  task_.pulse.back_within(patience_ + kLookup);
  TRY(facts, video_->open());
  task_.pulse.back_within(patience_);
  task_.status->update([&](CameraView& view) { view.facts = facts; });
  measure(facts);
  return follow_configuration();
}

void Session::hang_up() {
  {
    std::lock_guard guard(task_.mutex);
    task_.dialled = nullptr;
  }
  task_.pulse.back_within(patience_);
  if (video_) video_->close();
}

// People draw zones on the main stream and measure motion there: its size is remembered for the substream.
void Session::measure(const StreamFacts& facts) {
  if (facts.width <= 0 || facts.height <= 0) return;
  if (facts.width == size_.width && facts.height == size_.height) return;
  size_ = {facts.width, facts.height};
  if (!substream_) {
    task_.main_size = size_;
    task_.status->update([this](CameraView& view) { view.main_size = size_; });
  }
  followed_.reset();
}

std::shared_ptr<const Source> Session::in_its_pixels(std::shared_ptr<const Source> source) const {
  if (!substream_ || !task_.main_size) return source;
  auto scaled = std::make_shared<Source>(*source);
  camera::Config& config = scaled->config;
  if (!config.frame_size) config.frame_size = task_.main_size;
  if (size_.width == 0) return scaled;  // known with its first picture
  int& least = config.motion_gating.min_area_px;
  least = static_cast<int>(std::lround(least * area(size_) / area(*task_.main_size)));
  return scaled;
}

// What can change without a new connection; the plan starts over when the way of decoding does. A decoder that has all
// it needs goes on, or is given what was kept: the next keyframe may be far.
Status Session::follow_configuration() {
  auto newest = task_.newest();
  if (plan_ && newest == followed_) return ok();
  followed_ = newest;
  source_ = in_its_pixels(newest);
  gate_.configure(source_->config.motion_gating);
  camera::Decode mode = source_->config.decode;
  // Without a gate every picture is looked at, so every picture is needed.
  if (mode == camera::Decode::adaptive && !source_->config.motion_gating.enabled) mode = camera::Decode::full;
  if (plan_ && mode == mode_) return ok();
  if (plan_ && mode != camera::Decode::keyframes && (!plan_->still() || !kept_.empty())) {
    TRY(caught_up, carry_out(plan_->catch_up(), nullptr));
  } else if (plan_) {
    video_->restart_decoder();
  }
  mode_ = mode;
  kept_.clear();
  plan_.emplace(motion::DecodePlanConfig{.mode = mode,
                                         .keyframe_max = from_seconds(task_.parts.adaptive_keyframe_max_s)});
  return ok();
}

bool Session::wants_substream() const {
  return plan_ && !substream_ && plan_->keyframes_rare() && allows_substream(*source_) &&
         boot_now() >= task_.substream_from;
}

Status Session::take(const PacketPtr& packet) {
  task_.status->received(packet->received, packet->captured);
  task_.frames = frames_before_ + packet->number + 1;
  if (!course_.first_frame) {
    course_.first_frame = packet->received;
    task_.status->attend([](Attention& attention) { attention.begin(boot_now()); });
    task_.set_state(StreamState::streaming);
  }
  TRY(followed, follow_configuration());
  TRY(done, carry_out(plan_->on_packet({packet->key, packet->stream_time, packet->bytes()}), packet));
  TRY(seen, miss_keyframes(*packet));
  bool still = plan_->still(), turned = std::exchange(still_, still) != still;
  if (packet->key || turned) {
    StreamFacts facts = video_->facts();
    measure(facts);
    auto interval = plan_->keyframe_interval();
    task_.status->update([&](CameraView& view) {
      view.facts = facts;
      view.decoding = still ? "keyframes" : "full";
      view.keyframe_interval_s = interval ? seconds(*interval) : 0;
    });
  }
  return ok();
}

// A new connection begins with a keyframe, and a camera none of whose pictures is decoded must not count as one that
// streams.
Status Session::miss_keyframes(const Packet& packet) {
  if (packet.key) last_key_ = packet.stream_time;
  if (mode_ != camera::Decode::keyframes || !plan_->still() || !last_key_) return ok();
  Duration most = std::max(kKeylessMost, kKeylessIntervals * plan_->keyframe_interval().value_or(Duration(0)));
  if (packet.stream_time - *last_key_ <= most) return ok();
  return stream_failure(restart::StreamErrorCode::decode_error,
                        fmt::format("no keyframe for {} min, and nothing else is decoded (`decode: keyframes`)", most / 1min));
}

Status Session::carry_out(const motion::Step& step, const PacketPtr& packet) {
  kept_.erase(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(step.forget));
  if (step.keep) kept_.push_back(packet);
  if (step.replay) {
    video_->restart_decoder();
    for (const PacketPtr& each : std::exchange(kept_, {})) {
      kept_until_ = boot_now() + kReplayKept;
      TRY(decoded, decode(each));
    }
  }
  switch (step.decode) {
    case motion::DecodeAs::nothing: return ok();
    case motion::DecodeAs::alone: return decode_alone(packet);
    case motion::DecodeAs::full: return decode(packet);
  }
  return ok();
}

Status Session::decode(const PacketPtr& packet) {
  TRY(pictures, video_->decode(packet));
  decoded_ = boot_now();
  for (const PicturePtr& picture : pictures) {
    course_.showed_any = true;
    TRY(considered, consider(picture));
  }
  return ok();
}

// Motion in a key picture brings those before it first, then the key picture itself: in the order of time.
Status Session::decode_alone(const PacketPtr& packet) {
  TRY(picture, video_->decode_alone(packet));
  decoded_ = boot_now();
  if (!picture) return carry_out(plan_->on_no_picture(), packet);
  course_.showed_any = true;
  looked_at_.push_back(picture->number);
  if (looked_at_.size() > 4) looked_at_.pop_front();
  bool open = false;
  TRY(looked, look(picture, open));
  if (pace_.due(picture->stream_time, picture->received, source_->config.max_fps)) offer(picture, open);
  return ok();
}

Status Session::consider(const PicturePtr& picture) {
  if (std::ranges::find(looked_at_, picture->number) != looked_at_.end()) return ok();
  if (!pace_.due(picture->stream_time, picture->received, source_->config.max_fps)) {
    task_.status->update([&](CameraView& view) {
      ++view.counts.decoded;
      view.latest = picture;
    });
    return ok();
  }
  bool open = false;
  TRY(looked, look(picture, open));
  offer(picture, open);
  return ok();
}

Status Session::look(const PicturePtr& picture, bool& open) {
  auto verdict = gate_.look(picture->luma(), picture->luma_stride(), picture->width(), picture->height());
  open = verdict.open;
  task_.status->update([&](CameraView& view) {
    ++view.counts.decoded;
    ++view.counts.considered;
    if (verdict.open) ++view.counts.open;
    view.latest = picture;
  });
  return carry_out(plan_->on_motion(verdict.moved, picture->stream_time), nullptr);
}

// A picture that is due, and is looked at where something moves.
void Session::offer(const PicturePtr& picture, bool moves) {
  // A replay goes on for a while after the stop, when the camera's pictures are withdrawn already.
  if (source_->config.model.detector == "none" || task_.muted || task_.stopping()) return;
  task_.status->attend([&](Attention& attention) { attention.due(boot_now(), moves); });
  if (!moves) return;
  size_t replaced = task_.parts.scheduler.offer({source_, picture, boot_now() - decoded_, kept_until_,
                                                 frames_before_ + picture->number, task_.parts.custody});
  task_.status->update([&](CameraView& view) { view.counts.dropped += static_cast<std::int64_t>(replaced); });
}

}  // namespace weir::worker
