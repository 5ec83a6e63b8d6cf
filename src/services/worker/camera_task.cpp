#include "weir/worker/camera_task.hpp"

#include "session.hpp"

#include "weir/base/clock.hpp"
#include "weir/base/random.hpp"
#include "weir/restart/retry_policy.hpp"
#include "weir/worker/crash_record.hpp"

#include <pthread.h>

#include <map>

namespace weir::worker {

namespace {

// Streaming for this long makes the next failure a first one again.
constexpr Duration kSteady = 10s;

}  // namespace

CameraTask::CameraTask(Source source, std::shared_ptr<CameraStatus> status, const CameraParts& parts,
                       std::shared_ptr<CameraTask> before)
    : state_(std::make_shared<State>(std::move(source), std::move(status), parts)) {
  // Detached: a thread that hangs in a name lookup must not hold up the process; `ended` tells when it is gone.
  std::thread([state = state_, before = std::move(before)]() mutable {
    constexpr Duration kMost = 5s;
    if (before) {
      // This task waits for the one before even when it is stopped meanwhile: its successor waits for this task
      // alone, and must not meet the one before.
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
      const Session::Course& course = session.course();
      if (end == Session::End::failed) error = course.error;
      if (course.first_frame && boot_now() - *course.first_frame > kSteady) failures.clear();
      showed_any = course.showed_any;
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
