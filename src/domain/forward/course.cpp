#include "weir/forward/course.hpp"

namespace weir::forward {

namespace {

// The failed try, or the connection that was lost, is followed by a delay that grows with the failures in a row.
Scheduled schedule(Link& link, Failure why, Instant now, const Policy& policy, double draw) {
  if (link.up && now - link.since >= policy.calm) link.failures = 0;
  link.up = false;
  link.last = why.kind;
  Duration delay = policy.retry.delay(link.failures, draw);
  link.due = now + delay;
  return {std::move(why), ++link.failures, delay};
}

Step lose(Course course, Failure why, Instant now, const Policy& policy, double draw) {
  why.kind = proven(course, why.kind);
  const KindRow& row = row_of(why.kind);
  if (!worth_retrying(why.kind) || row.side == Side::neither) {
    course.end = End{row.exit, row.name};
    return {std::move(course)};
  }
  if (row.side == Side::input) {
    if (course.input.up) course.grace_until = now + policy.grace;
    Scheduled retry = schedule(course.input, why, now, policy, draw);
    return {std::move(course), std::move(retry)};
  }
  Scheduled retry = schedule(course.output, why, now, policy, draw);
  if (policy.retries_max > 0 && retry.attempt > policy.retries_max) {
    course.end = End{kExitTransient, row.name};
    return {std::move(course)};
  }
  return {std::move(course), std::move(retry)};
}

void rise(Link& link, Instant now) {
  link.up = true;
  link.since = now;
  link.last = Kind::none;
}

}  // namespace

Kind proven(const Course& course, Kind kind) {
  bool again = kind == Kind::rtmp_publish_hangup && course.output.last == kind;
  return again ? Kind::rtmp_publish_denied : kind;
}

Course begin(Instant now, const Policy& policy) { return {.grace_until = now + policy.grace}; }

Task next(const Course& course, Instant now) {
  if (course.end) return *course.end;
  if (course.held_until) {
    if (now < *course.held_until) return Hold{*course.held_until};
    return End{kExitTransient, row_of(Kind::deadline).name};
  }
  if (!course.input.up) {
    if (now >= course.grace_until) return End{kExitInputNotReady, "input_not_ready"};
    if (now < course.input.due) return Wait{std::min(course.input.due, course.grace_until)};
    return ConnectInput{course.grace_until - now};
  }
  if (!course.output.up) {
    if (now < course.output.due) return Wait{course.output.due};
    return ConnectOutput{};
  }
  return Forward{};
}

Step step(Course course, const Event& event, Instant now, const Policy& policy, double draw) {
  if (course.end) return {std::move(course)};
  if (std::holds_alternative<StopAsked>(event)) {
    course.end = End{};
  } else if (std::holds_alternative<DeadlinePassed>(event)) {
    Instant since = course.held_until.value_or(now + policy.held_max);
    course = {.held_until = since};
  } else if (std::holds_alternative<Extended>(event)) {
    if (course.held_until) course = begin(now, policy);
  } else if (course.held_until) {
    // An event of a connection is now its end, which this side asked for.
  } else if (const auto* why = std::get_if<Failure>(&event)) {
    return lose(std::move(course), *why, now, policy, draw);
  } else if (std::holds_alternative<OutputClosed>(event)) {
    course.output.up = false;
    course.output.due = now;
  } else if (!std::holds_alternative<Waited>(event)) {
    rise(std::holds_alternative<InputConnected>(event) ? course.input : course.output, now);
  }
  return {std::move(course)};
}

}  // namespace weir::forward
