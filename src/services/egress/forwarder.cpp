#include "weir/egress/forwarder.hpp"

#include "weir/base/clock.hpp"
#include "weir/base/random.hpp"

namespace weir::egress {

using forward::Failure;

namespace {
constexpr Duration kPiece = 250ms;  // of waiting, between two looks at what comes from outside

// A connection that was ended from outside, because the right to send had run out and is back already, did not fail.
forward::Event lost(const Error& error) {
  if (error.reason == "interrupted" || error.reason == to_string(forward::Kind::deadline)) return forward::OutputClosed{};
  return forward::failure_of(error);
}
// An input that was hung up from outside has to be opened again.
forward::Event input_lost(const Error& error) {
  if (error.reason == "interrupted") return Failure{forward::Kind::rtsp_ended, "the input was hung up"};
  return forward::failure_of(error);
}
}  // namespace

Forwarder::Forwarder(Ends ends, forward::Policy policy, SendRight& right, Report& report)
    : ends_(std::move(ends)), policy_(policy), right_(right), report_(report) {}

Forwarder::~Forwarder() {
  close_output(false);
  close_input();
}

void Forwarder::stop() {
  std::lock_guard lock(mutex_);
  stop_ = true;
  if (dialling_ != nullptr) dialling_->interrupt();
  if (output_ != nullptr) output_->interrupt();
  if (reading_ != nullptr) reading_->interrupt();
  changed_.notify_all();
}

void Forwarder::look_at_right() {
  std::lock_guard lock(mutex_);
  Instant now = boot_now();
  bool stands = forwarding_ && right_.keeps(now);
  if (!right_.valid(now) && !stands) {
    if (output_ != nullptr) output_->reset();
    if (dialling_ != nullptr) dialling_->interrupt();
    if (reading_ != nullptr) reading_->interrupt();
  }
  changed_.notify_all();
}

std::optional<Forwarder::Event> Forwarder::pending(bool held) {
  {
    std::lock_guard lock(mutex_);
    if (stop_) return forward::StopAsked{};
  }
  Instant now = boot_now();
  bool valid = right_.valid(now);
  if (held) return valid ? std::optional<Event>(forward::Extended{}) : std::nullopt;
  // What stands is kept for a while longer; where either connection is lost, neither is opened again.
  bool stands = course_.input.up && course_.output.up && right_.keeps(now);
  if (!valid && !stands) return forward::DeadlinePassed{};
  return std::nullopt;
}

forward::End Forwarder::run() {
  course_ = forward::begin(boot_now(), policy_);
  for (;;) {
    if (auto event = pending(course_.held_until.has_value())) apply(*event);
    forward::Task task = next(course_, boot_now());
    if (const auto* end = std::get_if<forward::End>(&task)) {
      report_.stopped(end->reason, boot_now());
      close_output(false);
      close_input();
      return *end;
    }
    Event event = std::visit([this](const auto& each) -> Event {
      if constexpr (std::is_same_v<std::decay_t<decltype(each)>, forward::End>) return forward::StopAsked{};
      else return perform(each);
    }, task);
    // A call that was ended from outside is not a failure of the input or the destination.
    if (auto outside = pending(course_.held_until.has_value())) event = *outside;
    apply(event);
  }
}

void Forwarder::apply(const Event& event) {
  Instant now = boot_now();
  forwarding_ = false;
  if (const auto* why = std::get_if<Failure>(&event); why != nullptr && !course_.held_until) {
    report_.failed({proven(course_, why->kind), why->message});
    report_.stopped(to_string(why->kind), now);
    if (row_of(why->kind).side == forward::Side::input) close_input();
    else close_output(false);
  } else if (std::holds_alternative<forward::OutputClosed>(event)) {
    report_.stopped("reopened", now);
    close_output(false);
  } else if (std::holds_alternative<forward::DeadlinePassed>(event)) {
    report_.failed({forward::Kind::deadline, "the right to send is over"});
    report_.stopped("deadline", now);
    close_output(true);
    close_input();
    report_.held(policy_.held_max);
  }
  forward::Step stepped = step(std::move(course_), event, now, policy_, random_unit());
  course_ = std::move(stepped.next);
  if (stepped.scheduled) report_.retry(*stepped.scheduled);
}

void Forwarder::close_input() {
  {
    std::lock_guard lock(mutex_);
    reading_ = nullptr;
  }
  intake_.reset();
}

void Forwarder::close_output(bool reset) {
  // Until it is closed, the output stays where other threads can reset it: closing in good order must not outlast the
  // right to send.
  if (output_ && reset) output_->reset();
  if (output_) output_->close();
  {
    std::lock_guard lock(mutex_);
    output_.reset();
  }
  if (intake_) intake_->stop_taking();
}

void Forwarder::abandon() {
  std::lock_guard lock(mutex_);
  if (output_ != nullptr) output_->reset();
}

Forwarder::Event Forwarder::perform(const forward::ConnectInput& task) {
  report_.input_connecting(course_.input.failures + 1);
  Instant begun = boot_now();
  std::unique_ptr<CopyInput> input = ends_.input();
  {
    std::lock_guard lock(mutex_);
    if (stop_) return forward::StopAsked{};
    dialling_ = input.get();
  }
  auto opened = input->open(task.within);
  {
    std::lock_guard lock(mutex_);
    dialling_ = nullptr;
  }
  if (!opened) return input_lost(opened.error());
  report_.input_connected(*opened, boot_now() - begun);
  facts_ = *std::move(opened);
  input_is_new_ = true;
  input->set_meanwhile([this] { look_at_output(); });
  intake_ = std::make_unique<Intake>(std::move(input), !facts_.video.empty());
  std::lock_guard lock(mutex_);
  reading_ = intake_.get();
  return forward::InputConnected{};
}

Forwarder::Event Forwarder::perform(const forward::ConnectOutput&) {
  if (auto over = intake_->ended()) return input_lost(*over);
  report_.output_connecting(course_.output.failures + 1);
  Instant begun = boot_now();
  std::shared_ptr<CopyOutput> output = ends_.output();
  {
    std::lock_guard lock(mutex_);
    if (stop_) return forward::StopAsked{};
    output_ = output;
  }
  if (Status opened = output->open(*facts_.format); !opened) return lost(opened.error());
  sent_format_ = facts_.format;
  output_is_new_ = true;
  report_.output_connected(boot_now() - begun);
  return forward::OutputConnected{};
}

// A new connection of the destination starts at zero; a new input on the old one goes on.
void Forwarder::begin_stream() {
  if (output_is_new_) {
    stamps_ = {};
    interleaver_.emplace(!facts_.video.empty() && !facts_.audio.empty());
  }
  if (output_is_new_ || input_is_new_) stamps_.begin_input(facts_.reorder, facts_.step, boot_now(), facts_.sound_step);
  output_is_new_ = input_is_new_ = false;
  intake_->begin_taking();
  output_lost_.reset();
  forwarding_ = true;
}

Forwarder::Event Forwarder::perform(const forward::Forward&) {
  // Another picture size or codec needs a new connection of the destination, which is told of them at its beginning.
  if (!sent_format_->same_as(*facts_.format)) return forward::OutputClosed{};
  begin_stream();
  while (!pending(false)) {
    intake_->read();
    while (const CopyPacket* oldest = intake_->oldest()) {
      if (!output_->has_room(oldest->bytes)) break;
      CopyPacketPtr packet = intake_->take();
      forward::Stamp stamp = stamps_.at(packet->track, packet->pts, packet->arrived);
      interleaver_->push({packet->track, stamp, packet->arrived, std::move(packet)});
      if (auto failed = write_ready(boot_now())) return *failed;
    }
    if (output_lost_) return *output_lost_;
    if (auto over = intake_->ended()) {
      write_ready(boot_now() + decltype(interleaver_)::value_type::kPatience);
      return input_lost(*over);
    }
  }
  return forward::Waited{};
}

void Forwarder::look_at_output() {
  if (!forwarding_ || output_lost_) return;
  Instant now = boot_now();
  auto state = output_->look();
  if (!state) output_lost_ = lost(state.error());
  report_.flow(state ? *state : forward::Flow::State::stalled, output_->media_bytes(), now);
  report_.dropped(intake_->dropped(), now);
}

std::optional<Forwarder::Event> Forwarder::write_ready(Instant now) {
  bool gathering = false;
  while (auto item = interleaver_->pop(now)) {
    if (!std::exchange(gathering, true)) output_->gather(true);
    if (Status written = output_->write(*item->what, item->stamp); !written) return lost(written.error());
  }
  if (gathering) output_->gather(false);
  return std::nullopt;
}

Forwarder::Event Forwarder::wait_until(Instant until, bool held) {
  while (!pending(held)) {
    Duration left = until - boot_now();
    if (left <= 0s) break;
    std::unique_lock lock(mutex_);
    if (!stop_) changed_.wait_for(lock, std::min(left, kPiece));
  }
  return forward::Waited{};
}

Forwarder::Event Forwarder::perform(const forward::Wait& task) { return wait_until(task.until, false); }
Forwarder::Event Forwarder::perform(const forward::Hold& task) { return wait_until(task.until, true); }

}  // namespace weir::egress
