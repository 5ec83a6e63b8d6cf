#include "weir/runner/payment.hpp"

namespace weir::runner {

void Payment::hear(const TokenHeard& event, std::optional<lease::Version> grant, Turn& turn) {
  asked_ = false;
  if (grant != event.grant) return;
  state_ = event.granted ? State::paid : event.refused ? State::refused : State::owed;
  Duration later = std::clamp<Duration>(event.retry_after, 50ms, 5s);
  again_at_ = turn.now + from_seconds(seconds(later) * (1 + 0.25 * turn.draw()));
}

}  // namespace weir::runner
