#include "checks.hpp"

#include <fmt/format.h>

namespace weir::sim {

using lease::Outcome;
using lease::Version;

void Checks::fail(TrueTime now, std::string what) {
  if (!violation_) violation_ = Violation{now, std::move(what)};
}

void Checks::answered(TrueTime now, const lease::Batch& batch, const lease::Answer& answer) {
  Version& highest = highest_drawn_[answer.subject];
  bool drawn = (answer.outcome == Outcome::granted || answer.outcome == Outcome::rotated) && answer.version != highest;
  if (drawn && answer.version < highest)
    fail(now, fmt::format("{}: version {:x} was answered after {:x}", answer.subject, answer.version.n, highest.n));
  if (answer.version > highest && answer.outcome != Outcome::lost) highest = answer.version;

  auto& released = released_[answer.subject];
  if (answer.outcome == Outcome::released)
    for (const auto& ask : batch.asks)
      if (ask.subject == answer.subject && ask.version) released.insert(*ask.version);
  if (answer.outcome == Outcome::renewed && released.contains(answer.version))
    fail(now, fmt::format("{}: version {:x} was renewed after its release", answer.subject, answer.version.n));

  // No owner may be given a camera while another may still believe in its own right to it.
  if (answer.outcome == Outcome::granted && answer.stolen)
    for (const auto& [version, belief] : beliefs_[answer.subject])
      if (belief.owner != batch.owner && belief.until > now)
        fail(now, fmt::format("{}: granted to {} while {} may believe in version {:x} for another {} us", answer.subject,
                              batch.owner.runner, belief.owner.runner, version.n, belief.until - now));
}

void Checks::believes(const CameraId& camera, const lease::Owner& owner, Version version, TrueTime until) {
  Belief& belief = beliefs_[camera].try_emplace(version, Belief{owner, until}).first->second;
  belief.until = std::max(belief.until, until);
}

bool Checks::believed(const CameraId& camera, Version version) const {
  auto found = beliefs_.find(camera);
  return found != beliefs_.end() && found->second.contains(version);
}

void Checks::stopped(TrueTime now, const CameraId& camera, Version version) {
  lease::LeaseRow row = store_.row(camera);
  if (row.version <= version && Version::make(store_.state().epoch, 0) <= version && !row.released)
    fail(now, fmt::format("{}: given up although version {:x} is still the store's", camera, version.n));
}

void Checks::emitted(TrueTime now, const CameraId& camera, Version version, int process, TrueTime right_until) {
  if (now > right_until)
    fail(now, fmt::format("{}: process {} spoke {} us after its right had ended", camera, process, now - right_until));
  used(now, camera, version, process);
}

void Checks::used(TrueTime now, const SubjectId& subject, Version version, int process) {
  auto [user, first] = emitter_.try_emplace({subject, version}, process);
  if (!first && user->second != process)
    fail(now, fmt::format("{}: version {:x} was used by processes {} and {}", subject, version.n, user->second, process));
}

void Checks::accepted(TrueTime now, const CameraId& camera, Version version, TrueTime captured) {
  Version& highest = highest_accepted_[camera];
  if (version < highest)
    fail(now, fmt::format("{}: an event of version {:x} was accepted after one of {:x}", camera, version.n, highest.n));
  highest = std::max(highest, version);
  auto& spans = spans_[camera];
  Span& own = spans.try_emplace(version, Span{captured, captured}).first->second;
  own.first = std::min(own.first, captured);
  own.last = std::max(own.last, captured);
  for (const auto& [other, span] : spans)
    if (other != version && own.first <= span.last && span.first <= own.last)
      fail(now, fmt::format("{}: captures accepted under {:x} and {:x} overlap", camera, version.n, other.n));
  last_accepted_[camera] = now;
}

void Checks::taken_over(TrueTime now, const CameraId& camera, bool owner_had_trouble) {
  if (!owner_had_trouble) fail(now, fmt::format("{}: taken from an owner that had no trouble of its own", camera));
}

void Checks::dialled(TrueTime now, int first_dials, double capacity, double refill_per_min) {
  lease_time(store_.state().lease_now);
  double allowed = capacity + seconds(lease_run_ + lease::kStepMax) * refill_per_min / 60;
  if (first_dials > allowed)
    fail(now, fmt::format("{} first connections, but only {:.1f} tokens so far", first_dials, allowed));
}

void Checks::lease_time(LeaseTime at) {
  lease_run_ += std::max<Duration>(at - lease_seen_, Duration(0));
  lease_seen_ = at;
}

void Checks::tokens(TrueTime now, double tokens, double capacity) {
  if (tokens > capacity + 1e-9 || tokens < -1e-9) fail(now, fmt::format("{} tokens in a bucket of {}", tokens, capacity));
}

TrueTime Checks::last_accepted(const CameraId& camera) const {
  auto at = last_accepted_.find(camera);
  return at == last_accepted_.end() ? -1 : at->second;
}

}  // namespace weir::sim
