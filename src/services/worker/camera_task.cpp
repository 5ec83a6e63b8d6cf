#include "weir/worker/camera_task.hpp"

#include "pace.hpp"

#include "weir/base/clock.hpp"
#include "weir/base/log.hpp"
#include "weir/base/random.hpp"
#include "weir/motion/decode_plan.hpp"
#include "weir/motion/gate.hpp"
#include "weir/restart/retry_policy.hpp"
#include "weir/worker/crash_record.hpp"
#include "weir/worker/pulse.hpp"
#include "weir/worker/repeats.hpp"

#include <pthread.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace weir::worker {

namespace {

// Streaming for this long makes the next failure a first one again.
constexpr Duration kSteady = 10s;

// Pictures that were decoded after the fact come all at once; for so long no newer one replaces them.
constexpr Duration kReplayKept = 1s;

// The lookup of a camera's name cannot be interrupted, and where no nameserver answers it lasts: every one of them is asked
// twice, for every search domain. It always ends.
constexpr Duration kLookup = 5min;

// Where only keyframes are decoded and none comes for so long, or for so many of their intervals, there is none to come.
constexpr Duration kKeylessMost = 10min;
constexpr int kKeylessIntervals = 4;

// A substream that could not be had is left alone for so long.
constexpr Duration kSubstreamPause = 10min;

// After so many dials in a row that reached nobody, the main stream has a try.
constexpr int kUnreachedMax = 3;

// Whether the configuration leaves the choice of the stream: what wants every picture wants those of the main stream.
bool allows_substream(const Source& source) {
  const camera::Config& config = source.config;
  return !source.snapshots && config.substream_url && config.decode == camera::Decode::adaptive &&
         config.motion_gating.enabled;
}

// The reason that a source gives when it was told to stop, and a dial that was given up before it could be told.
constexpr std::string_view kInterrupted = "interrupted";
Error interrupted() { return Error{Errc::unavailable, std::string(kInterrupted), "the dial was given up"}; }

double area(const camera::FrameSize& size) { return static_cast<double>(size.width) * size.height; }

}  // namespace

struct CameraTask::State {
  State(Source s, std::shared_ptr<CameraStatus> st, const CameraParts& p)
      : parts(p), status(std::move(st)), source(std::make_shared<const Source>(std::move(s))) {}

  const CameraParts parts;
  const std::shared_ptr<CameraStatus> status;
  std::stop_source stop;
  std::atomic<bool> ended = false;
  std::atomic<bool> muted = false;  // another has the camera since: what is said about it is its own
  Pulse pulse;
  std::atomic<std::int64_t> frames = 0;  // received so far, also on former connections
  // Its thread only.
  bool said_any = false;
  Repeats repeats;
  bool substream = false;                          // which stream is dialled
  Instant substream_from{};                        // not before
  bool substream_known = false;                    // the last pictures were its own
  int unreached = 0;                               // its dials since then; kUnreachedMax: the main stream has its try
  std::optional<camera::FrameSize> main_size = {};  // as far as known
  // Guards what follows.
  std::mutex mutex;
  std::condition_variable_any changed;
  std::shared_ptr<const Source> source;
  bool paused = false;
  VideoSource* dialled = nullptr;  // for interrupting what blocks

  bool stopping() const { return stop.stop_requested(); }
  bool leaving() {
    std::lock_guard guard(mutex);
    return paused || stopping();
  }
  std::shared_ptr<const Source> newest() {
    std::lock_guard guard(mutex);
    return source;
  }
  void set_state(StreamState state);
  // Says what went wrong, and that it is tried again after `delay`.
  void say(const restart::StreamError& error, Duration delay);
  void use_substream(std::string why);
  void use_main(std::string why);
  // After a failure without a picture. True: the main stream is dialled at once.
  bool gives_substream_up(restart::StreamError& error);
  void wait(Duration how_long) {
    pulse.back_within(how_long + parts.patience);
    std::unique_lock lock(mutex);
    changed.wait_for(lock, stop.get_token(), how_long, [&] { return paused; });
  }
  void wait_while_paused() {
    pulse.waits();
    std::unique_lock lock(mutex);
    changed.wait(lock, stop.get_token(), [&] { return !paused; });
  }
  void end() {
    {
      std::lock_guard guard(mutex);
      ended = true;
    }
    changed.notify_all();
  }
  // By the thread that has the camera next.
  void wait_for_end(Duration most) {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, most, [&] { return ended.load(); });
  }
};

void CameraTask::State::set_state(StreamState state) {
  if (muted) return;
  bool edge = false;
  status->update([&](CameraView& view) {
    edge = view.state != state || !said_any;
    said_any = true;
    view.state = state;
    if (state == StreamState::streaming) view.error.reset();
  });
  if (state == StreamState::streaming) repeats.succeeded();
  if (edge) parts.reporter.state_changed(*newest(), state, status->view(boot_now()));
}

void CameraTask::State::say(const restart::StreamError& error, Duration delay) {
  if (muted) return;
  Instant now = boot_now();
  status->update([&](CameraView& view) {
    ++view.errors;
    view.error = error;
    view.retry_at = now + delay;
  });
  parts.reporter.failed(*newest(), error, delay, repeats.failed(error.code, now));
}

void CameraTask::State::use_substream(std::string why) {
  substream = true;
  log::info("stream.substream", std::move(why) + "; using the substream").with("camera_uuid", newest()->config.camera);
}

void CameraTask::State::use_main(std::string why) {
  substream = false;
  log::info("stream.main", "back to the main stream: " + std::move(why)).with("camera_uuid", newest()->config.camera);
}

// The first dial of a substream follows pictures of the main stream: what is wrong then is wrong with the substream.
// Later, a substream that cannot be reached is most often a recorder that restarts, and away with both streams.
bool CameraTask::State::gives_substream_up(restart::StreamError& error) {
  if (!substream) {
    if (std::exchange(unreached, 0) == kUnreachedMax) use_substream("the main stream cannot be had either");
    return false;
  }
  bool away = substream_known && restart::retry_policy(error.code).side == restart::Side::runner;
  if (away && ++unreached < kUnreachedMax) return false;
  if (!away) {
    unreached = 0;
    substream_from = boot_now() + kSubstreamPause;
    error.detail = "the substream cannot be had: " + error.detail;
  }
  say(error, Duration(0));
  use_main(away ? "the substream cannot be reached, perhaps this one can"
                : fmt::format("{}; it is tried again after {} min at the earliest", error.detail,
                              std::chrono::duration_cast<std::chrono::minutes>(kSubstreamPause).count()));
  return true;
}

namespace {

// One connection, from the dial to its end.
class Session {
 public:
  Session(CameraTask::State& task, motion::MotionGate& gate)
      : task_(task),
        gate_(gate),
        substream_(task.substream),
        frames_before_(task.frames),
        patience_(task.parts.patience) {}
  ~Session() { hang_up(); }
  Session(const Session&) = delete;

  enum class End { stopped, failed, use_substream, use_main };
  End run();
  const restart::StreamError& error() const { return error_; }
  Duration streamed() const { return first_frame_ ? boot_now() - *first_frame_ : Duration(0); }
  bool showed_any() const { return showed_any_; }

 private:
  Status dial();
  void hang_up();
  Status take(const PacketPtr& packet);
  Status miss_keyframes(const Packet& packet);
  void measure(const StreamFacts& facts);
  Status follow_configuration();
  std::shared_ptr<const Source> in_its_pixels(std::shared_ptr<const Source> source) const;
  Status carry_out(const motion::Step& step, const PacketPtr& packet);
  Status decode(const PacketPtr& packet);
  Status decode_alone(const PacketPtr& packet);
  Status consider(const PicturePtr& picture);
  Status look(const PicturePtr& picture, bool& open);
  void offer(const PicturePtr& picture, bool moves);
  bool wants_substream() const;

  CameraTask::State& task_;
  motion::MotionGate& gate_;
  const bool substream_;
  const std::int64_t frames_before_;
  Duration patience_;
  std::shared_ptr<const Source> source_, followed_;  // in pixels of this stream; as it was configured
  camera::FrameSize size_;
  std::unique_ptr<VideoSource> video_;
  std::optional<motion::DecodePlan> plan_;
  camera::Decode mode_ = camera::Decode::full;
  std::deque<PacketPtr> kept_;          // as the plan says
  std::deque<std::int64_t> looked_at_;  // key pictures that were decoded alone and may come again
  std::optional<Duration> last_key_;    // in the stream's time
  Pace pace_;
  Instant decoded_{};                   // when the decoder gave its last pictures
  Instant kept_until_{};                // those of a replay, and what comes right after it
  std::optional<Instant> first_frame_;
  bool showed_any_ = false;
  std::optional<bool> still_;  // as last shown
  restart::StreamError error_;
};

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
  error_ = stream_error(served.error());
  // Whoever cut the cable may be in what nobody has looked at; it is too late for an error of its own.
  task_.pulse.back_within(patience_);
  if (plan_) (void)carry_out(plan_->catch_up(), nullptr);
  return End::failed;
}

Status Session::dial() {
  source_ = task_.newest();
  const camera::Config& config = source_->config;
  DialRequest request{.url = config.rtsp_url, .transport = config.transport};
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
  task_.status->update([](CameraView& view) { ++view.dials; });
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
  if (!first_frame_) {
    first_frame_ = packet->received;
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

// A new connection begins with a keyframe, and a camera whose pictures nobody sees must not count as one that streams.
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
    showed_any_ = true;
    TRY(considered, consider(picture));
  }
  return ok();
}

// Motion in a key picture brings those before it first, then the key picture itself: in the order of time.
Status Session::decode_alone(const PacketPtr& packet) {
  TRY(picture, video_->decode_alone(packet));
  decoded_ = boot_now();
  if (!picture) return carry_out(plan_->on_no_picture(), packet);
  showed_any_ = true;
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
      ++view.decoded;
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
    ++view.decoded;
    ++view.considered;
    if (verdict.open) ++view.open;
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
  task_.status->update([&](CameraView& view) { view.dropped += static_cast<std::int64_t>(replaced); });
}

}  // namespace

CameraTask::CameraTask(Source source, std::shared_ptr<CameraStatus> status, const CameraParts& parts,
                       std::shared_ptr<CameraTask> before)
    : state_(std::make_shared<State>(std::move(source), std::move(status), parts)) {
  // Detached: a thread that hangs in a name lookup must not hold up the process; `ended` tells when it is gone.
  std::thread([state = state_, before = std::move(before)]() mutable {
    constexpr Duration kMost = 5s;
    if (before) {
      // Also when it is stopped meanwhile: who comes after it waits for it alone, and must not meet the one before.
      before->state_->wait_for_end(kMost);
      before->state_->muted = true;
      state->frames = before->state_->frames.load();
    }
    before.reset();
    run(state);
  }).detach();
}

CameraTask::~CameraTask() { stop(); }

void CameraTask::run(const std::shared_ptr<State>& state) {
  const CameraId camera = state->newest()->config.camera;
  ::pthread_setname_np(::pthread_self(), camera.str().substr(0, 15).c_str());  // what `top -H` shows
  Serving serving(camera);
  motion::MotionGate gate(state->newest()->config.motion_gating);
  std::map<restart::StreamErrorCode, int> failures;  // one cause does not make another one's next try late
  while (!state->stopping()) {
    state->wait_while_paused();
    if (state->stopping()) break;
    if (state->substream && !allows_substream(*state->newest()))
      state->use_main("the configuration wants every picture");
    std::optional<restart::StreamError> error;
    const bool on_substream = state->substream;
    bool showed_any = false;
    {
      Session session(*state, gate);
      auto end = session.run();
      if (end == Session::End::use_substream)
        state->use_substream("keyframes are too rare to decode adaptively");
      if (end == Session::End::failed) error = session.error();
      if (session.streamed() > kSteady) failures.clear();
      showed_any = session.showed_any();
    }
    state->set_state(StreamState::disconnected);
    if (showed_any) {
      state->substream_known = on_substream;
      state->unreached = 0;
    }
    if (!error) continue;
    if (!showed_any && state->gives_substream_up(*error)) continue;
    Duration delay = restart::retry_delay(error->code, failures[error->code]++, random_unit());
    state->say(*error, delay);
    state->wait(delay);
  }
  state->set_state(StreamState::disconnected);
  state->end();
}

std::shared_ptr<const Source> CameraTask::source() const { return state_->newest(); }

void CameraTask::change(Source source) {
  std::lock_guard guard(state_->mutex);
  state_->source = std::make_shared<const Source>(std::move(source));
}

void CameraTask::pause(bool paused) {
  {
    std::lock_guard guard(state_->mutex);
    state_->paused = paused;
    if (paused && state_->dialled != nullptr) state_->dialled->interrupt();
  }
  state_->changed.notify_all();
}

void CameraTask::stop() {
  state_->stop.request_stop();
  std::lock_guard guard(state_->mutex);
  if (state_->dialled != nullptr) state_->dialled->interrupt();
}

bool CameraTask::ended() const { return state_->ended; }

Duration CameraTask::late(Instant now) const { return state_->pulse.late(now); }

}  // namespace weir::worker
