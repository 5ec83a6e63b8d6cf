// Holder: the lease of one subject, a camera or a stream, as the process that holds it sees it. It keeps the rules under "The holder" in
// docs/lease-protocol.md: it counts its time from before it asked, has one open question, and tells "unknown" from
// "lost".
//
// The shell feeds events and performs the actions; every outcome comes back as an event. The holder counts its right
// from before it asked, so it ends early, never late; it believes "lost" only from a typed answer with a higher
// version; everything else is unknown, and unknown means: ask again, keep decoding, spool, do not publish.
// Pure: no clock, no randomness, no I/O. One outstanding question a camera.
#pragma once

#include "weir/lease/decide.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace weir::lease {

struct HolderPolicy {
  Duration ttl = 6s;
  Duration renew_every = 2s;
  Duration attempt_timeout = 1s;    // an unanswered question is given up after this
  Duration retry_soon = 250ms;      // while the right lasts, ask again this soon
  Duration retry_acquire = 1s;      // how soon to ask again for a camera that another owner has
  Kind kind = Kind::camera;         // of the subject; only a camera's row is there before anybody acquires it
  friend bool operator==(const HolderPolicy&, const HolderPolicy&) = default;
};

// How much earlier than the TTL a holder's right ends, so that clocks whose rates differ by up to 5 % cannot make the
// holder publish too long.
Duration safety_margin(Duration ttl);

enum class Phase {
  idle,       // not wanted, not owned
  acquiring,  // wanted; another owner may have it
  holding,    // ours: until `valid_until` for certain; after that only the store's answer tells
  releasing,  // no longer wanted; the store has not confirmed yet
};

struct Question {
  std::uint64_t id = 0;
  Instant asked_at{};
  Operation operation = Operation::acquire;
  Ask ask;
};

struct HolderState {
  SubjectId subject;
  Phase phase = Phase::idle;
  bool wanted = false;               // wanted again while still releasing: acquired after that
  Version version{};
  Version grant{};
  Instant valid_until{};
  Instant next_ask{};
  std::optional<Question> open = {};
  std::uint64_t questions = 0;       // numbers questions and keys
  int failures = 0;                  // unanswered in a row
  bool rotate = false;               // the next renewal must bring a version that nobody was given
  std::string rotate_key = {};
  std::string acquire_key = {};      // kept over unanswered tries, so that a lost reply is a replay
  bool letting_go = false;           // the camera cannot be reached from here: ask whether another runner can
};

// ---- events ----
struct Wanted {};                     // the camera should be processed here
struct Unwanted {};                   // the camera should not be processed here, and its worker is silent: release
struct FreshVersionNeeded {};         // a worker is about to start: the version in hand was given to another process
struct Unreachable {};                // the camera cannot be reached from this host, and its worker is silent
struct TimePassed {};
struct Answered {
  std::uint64_t question = 0;
  Answer answer;
};
struct Unanswered {                   // refused connection, time-out, 401, 5xx, malformed: all the same
  std::uint64_t question = 0;
};
using HolderEvent = std::variant<Wanted, Unwanted, FreshVersionNeeded, Unreachable, TimePassed, Answered, Unanswered>;

// ---- actions ----
struct SendQuestion {
  Question question;
};
// The right to publish ("to speak") for the camera: hand it to the worker. `fresh` when this version was given to
// nobody before.
struct Speak {
  Version version;
  Version grant;
  Instant valid_until;
  bool fresh = false;
  std::optional<Tenure> adopt = {};   // a new grant: the tenure whose spool may be taken over
};
// The tenure is over: what it spooled must never be published.
struct DropSpool {
  Version grant;
};
struct StopCamera {};                 // another owner has the camera
using HolderAction = std::variant<SendQuestion, Speak, DropSpool, StopCamera>;

struct HolderStep {
  HolderState next;
  std::vector<HolderAction> actions;
};

// `boot` makes the keys of this process unlike those of any other.
HolderStep step(const HolderState& state, const HolderEvent& event, Instant now, const HolderPolicy& policy,
                const BootId& boot);

// When TimePassed is due next.
std::optional<Instant> wake_at(const HolderState& state, const HolderPolicy& policy);

}  // namespace weir::lease
