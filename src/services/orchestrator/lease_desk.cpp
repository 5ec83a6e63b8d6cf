#include "lease_desk.hpp"

#include "weir/base/random.hpp"
#include "weir/base/spawn.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>

namespace weir::orchestrator {

namespace asio = boost::asio;
using lease::Outcome;
using lease::Refusal;

namespace {
constexpr Duration kIdle = 60s;

std::string sentence_of(const lease::Answer& answer) {
  if (answer.outcome == Outcome::held) return "another orchestrator has this stream";
  switch (answer.why) {
    case Refusal::taken: return "this id belongs to a camera, or to another tenant's stream";
    case Refusal::boot_dead: return "the control plane counts this orchestrator's boot as dead: restart it";
    case Refusal::settling: return "the control plane's store came back a moment ago and lets holders renew first";
    default: return "the control plane refuses this stream's lease";
  }
}
}  // namespace

LeaseDesk::LeaseDesk(asio::io_context& io, StreamPlane& plane, Clock& clock, lease::Owner owner, lease::Home home,
                     lease::HolderPolicy policy, Heard heard)
    : io_(io), plane_(plane), clock_(clock), owner_(std::move(owner)),
      keys_(BootId::trusted(fmt::format("{}-{}", owner_.boot, random_hex(6)))), home_(std::move(home)), policy_(policy),
      heard_(std::move(heard)), changed_(io, clock) {}

Instant LeaseDesk::valid_until(const SubjectId& id) const {
  auto at = holders_.find(id);
  return at == holders_.end() ? Instant{} : at->second.valid_until;
}

lease::Version LeaseDesk::version(const SubjectId& id) const {
  auto at = holders_.find(id);
  return at == holders_.end() ? lease::Version{} : at->second.version;
}

void LeaseDesk::feed(const SubjectId& id, const lease::HolderEvent& event) {
  auto at = holders_.find(id);
  if (at == holders_.end()) {
    bool late = std::holds_alternative<lease::Answered>(event) || std::holds_alternative<lease::Unanswered>(event);
    if (late) return;
    at = holders_.emplace(id, lease::HolderState{.subject = id, .questions = questions_}).first;
  }
  lease::Phase before = at->second.phase;
  auto [next, actions] = lease::step(at->second, event, clock_.now(), policy_, keys_);
  bool released = before != lease::Phase::idle && next.phase == lease::Phase::idle;
  at->second = std::move(next);
  agenda_.set(id, lease::wake_at(at->second, policy_));
  for (const lease::HolderAction& action : actions) perform(id, action);
  changed_.ring();
  if (released) tell_released(id);
}

// Posted, not called: the caller of release is in the middle of a step of the same stream.
void LeaseDesk::tell_released(const SubjectId& id) {
  asio::post(io_, [this, id] { heard_(id, Released{}); });
}

// A lease of which this process knows nothing, because an earlier one of its boot held it, is left to run out.
void LeaseDesk::release(const SubjectId& id) {
  auto at = holders_.find(id);
  if (at == holders_.end() || at->second.phase == lease::Phase::idle) return tell_released(id);
  feed(id, lease::Unwanted{});
}

void LeaseDesk::forget(const SubjectId& id) {
  auto at = holders_.find(id);
  if (at == holders_.end() || at->second.phase != lease::Phase::idle) return;
  questions_ = std::max(questions_, at->second.questions);
  agenda_.set(id, std::nullopt);
  holders_.erase(at);
}

void LeaseDesk::perform(const SubjectId& id, const lease::HolderAction& action) {
  if (const auto* question = std::get_if<lease::SendQuestion>(&action)) send_soon(question->question);
  else if (const auto* speak = std::get_if<lease::Speak>(&action)) heard_(id, Granted{speak->version, speak->valid_until});
  else if (std::holds_alternative<lease::StopCamera>(action)) heard_(id, Lost{});
}

void LeaseDesk::send_soon(lease::Question question) {
  bool first = gathered_.empty();
  gathered_[question.operation].push_back(std::move(question));
  if (!first) return;
  asio::post(io_, [this] {
    for (auto& [operation, questions] : std::exchange(gathered_, {}))
      spawn(io_.get_executor(), send(operation, std::move(questions)), "a question about leases");
  });
}

asio::awaitable<void> LeaseDesk::send(lease::Operation operation, std::vector<lease::Question> questions) {
  lease::Batch batch{.operation = operation, .owner = owner_, .ttl = policy_.ttl};
  batch.kind = lease::Kind::stream;
  batch.home = home_;
  for (const lease::Question& each : questions) batch.asks.push_back(each.ask);
  auto answers = co_await plane_.apply(std::move(batch));
  if (closed_) co_return;
  for (size_t i = 0; i < questions.size(); ++i) {
    const SubjectId& id = questions[i].ask.subject;
    if (!answers || (*answers)[i].outcome == Outcome::unknown) {
      feed(id, lease::Unanswered{questions[i].id});
      heard_(id, Silent{});
      continue;
    }
    tell_refusal(id, questions[i], (*answers)[i]);
    feed(id, lease::Answered{questions[i].id, (*answers)[i]});
  }
}

void LeaseDesk::tell_refusal(const SubjectId& id, const lease::Question& question, const lease::Answer& answer) {
  bool refused = answer.outcome == Outcome::refused || (answer.outcome == Outcome::held && !answer.yours);
  if (question.operation == lease::Operation::acquire && refused) heard_(id, TakenByAnother{sentence_of(answer)});
}

asio::awaitable<void> LeaseDesk::run() {
  while (!closed_) {
    for (const SubjectId& id : agenda_.take_due(clock_.now())) feed(id, lease::TimePassed{});
    Instant next = agenda_.next().value_or(clock_.now() + kIdle);
    if (next > clock_.now()) co_await changed_.wait_until(next);
  }
}

void LeaseDesk::close() {
  closed_ = true;
  changed_.ring();
}

}  // namespace weir::orchestrator
