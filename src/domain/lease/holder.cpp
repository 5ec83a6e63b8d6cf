#include "weir/lease/holder.hpp"

#include <algorithm>

namespace weir::lease {

Duration safety_margin(Duration ttl) { return std::max<Duration>(1250ms, ttl / 10 + 600ms); }

namespace {

class Stepper {
 public:
  Stepper(const HolderState& state, Instant now, const HolderPolicy& policy, const BootId& boot)
      : s_(state), now_(now), policy_(policy), boot_(boot) {}

  void on(const Wanted&) {
    s_.wanted = true;
    if (s_.phase != Phase::idle) return;
    s_.phase = Phase::acquiring;
    s_.next_ask = now_;
    ask_if_due();
  }

  void on(const Unwanted&) {
    s_.wanted = false;
    if (s_.phase == Phase::idle || s_.phase == Phase::releasing) return;
    // An acquire under way may still be granted; then it is released. Nothing held, nothing asked: done.
    if (s_.phase == Phase::acquiring && !s_.open) {
      s_.phase = Phase::idle;
      return;
    }
    bool held = s_.phase == Phase::holding;
    s_.phase = Phase::releasing;
    s_.valid_until = Instant{};
    s_.next_ask = now_;
    if (held && s_.open && s_.open->operation == Operation::renew && !s_.open->ask.rotate) s_.open.reset();
    ask_if_due();
  }

  void on(const FreshVersionNeeded&) {
    if (s_.phase != Phase::holding || s_.rotate) return;
    s_.rotate = true;
    s_.rotate_key = new_key();
    // A plain renewal under way would cross the rotation; its answer is no longer waited for.
    if (s_.open && s_.open->operation == Operation::renew) s_.open.reset();
    s_.next_ask = now_;
    ask_if_due();
  }

  void on(const Unreachable&) {
    if (s_.phase != Phase::holding || s_.letting_go) return;
    s_.letting_go = true;
    if (s_.open && s_.open->operation == Operation::renew && !s_.open->ask.rotate) s_.open.reset();
    s_.next_ask = now_;
    ask_if_due();
  }

  void on(const TimePassed&) {
    if (s_.open && now_ >= s_.open->asked_at + policy_.attempt_timeout) unanswered();
    ask_if_due();
  }

  void on(const Unanswered& event) {
    if (!s_.open || s_.open->id != event.question) return;
    unanswered();
    ask_if_due();
  }

  void on(const Answered& event) {
    if (!s_.open || s_.open->id != event.question || event.answer.subject != s_.subject) return;
    Question question = *std::exchange(s_.open, std::nullopt);
    const Answer& answer = event.answer;
    switch (answer.outcome) {
      case Outcome::granted:
      case Outcome::renewed:
      case Outcome::rotated: yes(question, answer); break;
      case Outcome::held: held(question, answer); break;
      case Outcome::lost: lost(question, answer); break;
      case Outcome::released: released(); break;
      case Outcome::refused: refused(question, answer); break;
      case Outcome::kept: kept(); break;
      case Outcome::unknown: failed(); break;
    }
    ask_if_due();
  }

  HolderStep take() { return {std::move(s_), std::move(actions_)}; }

 private:
  std::string new_key() { return fmt::format("{}-{}", boot_.str(), ++s_.questions); }

  void yes(const Question& question, const Answer& answer) {
    if (s_.phase == Phase::releasing) {  // no longer wanted: this was the answer to an earlier question
      remember(answer);
      s_.next_ask = now_;
      return;
    }
    bool new_tenure = s_.phase == Phase::holding && answer.grant != s_.grant;
    if (new_tenure) actions_.push_back(DropSpool{s_.grant});
    bool fresh = answer.version != s_.version;
    if (answer.outcome == Outcome::rotated || new_tenure) s_.rotate = false;
    remember(answer);
    s_.acquire_key.clear();
    s_.phase = Phase::holding;
    s_.failures = 0;
    s_.valid_until = question.asked_at + answer.ttl - safety_margin(answer.ttl);
    s_.next_ask = std::max(now_, question.asked_at + policy_.renew_every);
    // While a fresh version is on its way nobody may speak under the old one: its worker is gone.
    if (s_.rotate) s_.next_ask = now_;
    else actions_.push_back(Speak{s_.version, s_.grant, s_.valid_until, fresh, new_tenure ? std::nullopt : answer.previous});
  }

  void remember(const Answer& answer) {
    s_.version = answer.version;
    s_.grant = answer.grant;
  }

  // An acquire found the camera taken. Where this very process has it, a reply was lost, and whether its version was
  // used is not known: so a fresh version is drawn.
  void held(const Question& question, const Answer& answer) {
    if (question.operation != Operation::acquire) return failed();
    s_.acquire_key.clear();
    if (!answer.yours) return again_later();
    remember(answer);
    if (s_.phase == Phase::releasing) {
      s_.next_ask = now_;
      return;
    }
    s_.phase = Phase::holding;
    s_.valid_until = Instant{};
    s_.rotate = true;
    s_.rotate_key = new_key();
    s_.next_ask = now_;
  }

  void lost(const Question& question, const Answer& answer) {
    // The answer is compared with the version that was asked about, and "lost" is believed only with a higher one.
    Version asked = question.ask.version.value_or(s_.version);
    if (answer.version <= asked || asked != s_.version) return failed();
    if (s_.phase == Phase::releasing) return end();
    actions_.push_back(DropSpool{s_.grant});
    actions_.push_back(StopCamera{});
    give_up();
  }

  void give_up() {
    s_.valid_until = Instant{};
    s_.rotate = s_.letting_go = false;
    s_.phase = Phase::acquiring;
    again_later();
  }

  void released() {
    if (s_.phase == Phase::releasing) return end();
    if (!s_.letting_go) return failed();
    actions_.push_back(StopCamera{});
    give_up();
  }

  // No other runner could take the camera: it stays here, and is tried again.
  void kept() {
    s_.letting_go = false;
    s_.next_ask = now_;
  }

  void refused(const Question& question, const Answer& answer) {
    bool forgotten = answer.why == Refusal::not_found && policy_.kind != Kind::camera;
    if (question.operation != Operation::acquire) return forgotten ? ask_anew() : failed();
    s_.acquire_key.clear();
    again_later();
  }

  // The store has lost the commit that made the row: nothing is there to be renewed or released, however often it is
  // asked. The next acquire makes the row again.
  void ask_anew() {
    if (s_.phase == Phase::releasing) return end();
    actions_.push_back(DropSpool{s_.grant});
    actions_.push_back(StopCamera{});
    give_up();
  }

  void again_later() {
    if (s_.phase == Phase::releasing) return end();
    s_.failures = 0;
    s_.next_ask = now_ + policy_.retry_acquire;
  }

  void end() {
    s_.phase = Phase::idle;
    s_.rotate = s_.letting_go = false;
    s_.acquire_key.clear();
    s_.valid_until = Instant{};
    s_.failures = 0;
    if (s_.wanted) on(Wanted{});
  }

  void unanswered() {
    s_.open.reset();
    failed();
  }

  // Unknown is not lost. While the right lasts, ask again at once; afterwards less and less often.
  void failed() {
    ++s_.failures;
    bool right_lasts = s_.phase == Phase::holding && now_ < s_.valid_until;
    Duration pause = right_lasts ? policy_.retry_soon
                                 : std::min<Duration>(policy_.retry_soon * (1 << std::min(s_.failures, 6)), policy_.ttl / 3);
    s_.next_ask = now_ + pause;
  }

  void ask_if_due() {
    if (s_.open || s_.phase == Phase::idle || now_ < s_.next_ask) return;
    Ask ask{s_.subject};
    Operation operation = Operation::renew;
    if (s_.phase == Phase::acquiring || (s_.phase == Phase::releasing && s_.version == Version{})) {
      if (s_.phase == Phase::releasing) return end();  // never granted as far as anybody knows: it will expire
      operation = Operation::acquire;
      if (s_.acquire_key.empty()) s_.acquire_key = new_key();
      ask.key = s_.acquire_key;
    } else if (s_.phase == Phase::releasing || s_.letting_go) {
      operation = Operation::release;
      ask.version = s_.version;
      ask.avoid = s_.letting_go && s_.phase == Phase::holding;
    } else {
      ask.version = s_.version;
      ask.rotate = s_.rotate;
      if (s_.rotate) ask.key = s_.rotate_key;
    }
    s_.open = Question{++s_.questions, now_, operation, std::move(ask)};
    actions_.push_back(SendQuestion{*s_.open});
  }

  HolderState s_;
  const Instant now_;
  const HolderPolicy& policy_;
  const BootId& boot_;
  std::vector<HolderAction> actions_;
};

}  // namespace

HolderStep step(const HolderState& state, const HolderEvent& event, Instant now, const HolderPolicy& policy,
                const BootId& boot) {
  Stepper stepper(state, now, policy, boot);
  std::visit([&](const auto& each) { stepper.on(each); }, event);
  return stepper.take();
}

std::optional<Instant> wake_at(const HolderState& state, const HolderPolicy& policy) {
  if (state.phase == Phase::idle) return std::nullopt;
  if (state.open) return state.open->asked_at + policy.attempt_timeout;
  return state.next_ask;
}

}  // namespace weir::lease
