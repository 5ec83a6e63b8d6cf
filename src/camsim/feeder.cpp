#include "feeder.hpp"

#include "weir/base/clock.hpp"

#include <cmath>
#include <numbers>

namespace weir::camsim {

namespace {

constexpr Duration kSoundChunk = 100ms;  // 44 whole periods of 440 Hz: chunk follows chunk without a click
constexpr int kSoundSamples = 800;
constexpr Duration kSleepMax = 500ms;  // a step of the wall clock is noticed after this time
constexpr WallTime kNever = WallTime::max();

std::uint8_t a_law(int sample) {  // G.711, 13 bits
  std::uint8_t sign = sample >= 0 ? 0x80 : 0;
  int size = std::min(std::abs(sample), 4095);
  int segment = 0;
  while (size >> (segment + 5) != 0) ++segment;
  int code = segment == 0 ? size >> 1 : segment << 4 | (size >> segment & 0x0F);
  return static_cast<std::uint8_t>((code | sign) ^ 0x55);
}

const std::string& sound_chunk() {
  static const std::string chunk = [] {
    std::string out;
    for (int i = 0; i < kSoundSamples; ++i)
      out += static_cast<char>(
          a_law(static_cast<int>(std::lround(200 * std::sin(2 * std::numbers::pi * 440 * i / 8000)))));
    return out;
  }();
  return chunk;
}

GstBuffer* borrowed(const void* data, size_t bytes) {
  return gst_buffer_new_wrapped_full(GST_MEMORY_FLAG_READONLY, const_cast<void*>(data), bytes, 0, bytes, nullptr,
                                     nullptr);
}

// A unit's bytes are not copied: the buffer keeps the loop.
GstBuffer* buffer_of(const LoopPtr& loop, const AccessUnit& unit) {
  std::string_view data = loop->data(unit);
  return gst_buffer_new_wrapped_full(GST_MEMORY_FLAG_READONLY, const_cast<char*>(data.data()), data.size(), 0,
                                     data.size(), new LoopPtr(loop),
                                     [](gpointer kept) { delete static_cast<LoopPtr*>(kept); });
}

void set_caps(GstAppSrc* source, const Profile& p) {
  // JPEG in RTP is told its size; the others carry it in their parameter sets.
  std::string text = p.codec == Codec::mjpeg
                         ? fmt::format("image/jpeg,width={},height={},framerate={}/1", p.width, p.height, p.fps)
                         : fmt::format("video/x-{},stream-format=byte-stream,alignment=au,framerate={}/1",
                                       p.codec == Codec::h264 ? "h264" : "h265", p.fps);
  GstCaps* caps = gst_caps_from_string(text.c_str());
  gst_app_src_set_caps(source, caps);
  gst_caps_unref(caps);
}

GstClockTime nanoseconds(Duration d) { return static_cast<GstClockTime>(std::max<std::int64_t>(0, d.count())) * 1000; }

}  // namespace

Feed::Feed(std::shared_ptr<CameraLive> camera, Ref<GstAppSrc> video, Ref<GstAppSrc> audio, WallTime zero)
    : camera_(std::move(camera)),
      video_(std::move(video)),
      audio_(std::move(audio)),
      zero_(zero),
      loop_(camera_->loop.load()),
      time_(loop_->timeline(camera_->phase)) {
  set_caps(video_.get(), loop_->profile());
}

WallTime Feed::due(std::int64_t running) const { return time_.captured(running + loop_->reorder_frames()); }

WallTime Feed::shown(std::int64_t running) const {
  int in_loop = time_.in_loop(running);
  return time_.captured(running - in_loop + loop_->units()[static_cast<size_t>(in_loop)].number);
}

std::int64_t Feed::newest(WallTime now) const { return time_.running_at(now) - loop_->reorder_frames(); }

std::int64_t Feed::entry(WallTime now) const {
  std::int64_t unit = newest(now);
  if (camera_->start == Start::live || loop_->profile().intra_refresh) return unit;
  int in_loop = time_.in_loop(unit);
  return unit - (in_loop - loop_->key_before(in_loop));
}

WallTime Feed::step(WallTime now) {
  if (!begun_) {
    if (!wanted_) return kNever;
    begun_ = true;
    sets_due_ = true;
    next_ = entry(now);
    push_picture(shown(next_));
    ++next_;
    if (audio_) push_sound(now);
  }
  if (!playing_) return kNever;
  if (!std::exchange(entered_, true)) next_ = std::max(next_, entry(now));
  WallTime again = step_pictures(now);
  if (!audio_) return again;
  push_sound(now);
  return std::min(again, WallTime(kSoundChunk * next_sound_));
}

WallTime Feed::step_pictures(WallTime now) {
  double rate = camera_->rate;
  hop_forward(now);
  late_ = late_ || rate < 1;
  if (!late_) {
    for (; due(next_) <= now; ++next_) push_picture(shown(next_));
    return due(next_);
  }
  if (slow_due_ <= now) {
    push_picture(now);
    ++next_;
    slow_due_ = now + from_seconds(1.0 / (time_.fps * rate));
  }
  return slow_due_;
}

// Into another loop, or back into the present: only with a picture that is newer than all that were sent.
void Feed::hop_forward(WallTime now) {
  LoopPtr wanted = camera_->loop.load();
  if (wanted == loop_ && !(late_ && camera_->rate >= 1)) return;
  LoopPtr before = std::exchange(loop_, wanted);
  Timeline time_before = std::exchange(time_, loop_->timeline(camera_->phase));
  std::int64_t to = entry(now);
  if (shown(to) > newest_sent_) {
    if (loop_ != before) set_caps(video_.get(), loop_->profile());
    next_ = to;
    late_ = false;
    sets_due_ = true;
  } else {
    loop_ = before;
    time_ = time_before;
  }
}

void Feed::push_picture(WallTime captured) {
  const AccessUnit& unit = loop_->units()[static_cast<size_t>(time_.in_loop(next_))];
  GstBuffer* buffer = buffer_of(loop_, unit);
  if (std::exchange(sets_due_, false) && !unit.key && !loop_->parameter_sets().empty()) {
    std::string_view sets = loop_->parameter_sets();
    buffer = gst_buffer_append(borrowed(sets.data(), sets.size()), buffer);
  }
  newest_sent_ = std::max(newest_sent_, captured);
  GST_BUFFER_PTS(buffer) = nanoseconds(captured - zero_);
  GST_BUFFER_DTS(buffer) = GST_BUFFER_PTS(buffer);
  gst_app_src_push_buffer(video_.get(), buffer);
  if (!camera_->stalled) ++camera_->frames_sent;
}

void Feed::push_sound(WallTime now) {
  std::int64_t present = now.time_since_epoch() / kSoundChunk;
  if (next_sound_ < 0 || present - next_sound_ > 10) next_sound_ = present;
  for (; next_sound_ <= present; ++next_sound_) {
    GstBuffer* buffer = borrowed(sound_chunk().data(), sound_chunk().size());
    GST_BUFFER_PTS(buffer) = nanoseconds(WallTime(kSoundChunk * next_sound_) - zero_);
    GST_BUFFER_DURATION(buffer) = nanoseconds(kSoundChunk);
    gst_app_src_push_buffer(audio_.get(), buffer);
  }
}

Feeder::Feeder() : thread_([this] { run(); }) {}

void Feeder::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Feeder::add(std::shared_ptr<Feed> feed) {
  std::lock_guard lock(mutex_);
  feeds_.insert(std::move(feed));
}

void Feeder::remove(const std::shared_ptr<Feed>& feed) {
  std::lock_guard lock(mutex_);
  feeds_.erase(feed);
}

void Feeder::wake() {
  {
    std::lock_guard lock(mutex_);
    woken_ = true;
  }
  changed_.notify_all();
}

void Feeder::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    woken_ = false;
    WallTime now = wall_now(), next = now + kSleepMax;
    for (const auto& feed : feeds_) next = std::min(next, feed->step(now));
    changed_.wait_for(lock, std::max(next - wall_now(), Duration(200)), [this] { return woken_ || stopping_; });
  }
}

}  // namespace weir::camsim
