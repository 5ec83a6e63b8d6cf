// Payment: the token of its site that a camera costs before its first dial under a grant, so that no recorder is
// stormed.
//
// The token is owed from the grant on, asked for until it is given, and then paid for as long as the grant lasts:
// renewals and new workers cost nothing. One question at a time. Pure; one thread.
#pragma once

#include "weir/runner/turn.hpp"

namespace weir::runner {

class Payment {
 public:
  bool paid() const { return state_ == State::paid; }
  // The site had no token for the camera when the runner last asked.
  bool refused() const { return state_ == State::refused; }

  // A new grant owes anew. Where a question for the old grant is under way, its answer is waited for first.
  void owe() { state_ = State::owed, again_at_ = {}; }
  // True where the token is to be asked for now; from then on the question is under way.
  bool ask(Instant now) { return !asked_ && now >= again_at_ && (asked_ = true); }
  // `grant`: the present one; an answer for another one pays nothing.
  void hear(const TokenHeard& event, std::optional<lease::Version> grant, Turn& turn);

 private:
  enum class State { owed, refused, paid };
  State state_ = State::owed;
  bool asked_ = false;
  Instant again_at_{};
};

}  // namespace weir::runner
