#include "lease_keeper.hpp"

#include "weir/base/spawn.hpp"

#include <algorithm>

namespace weir::cluster {

namespace asio = boost::asio;

namespace {
constexpr Duration kIdle = 60s;
constexpr Duration kLastAnswer = 50ms;  // between two looks at whether the last question is over
}  // namespace

LeaseKeeper::LeaseKeeper(asio::io_context& io, ClusterPlane& plane, Clock& clock, lease::Owner owner, lease::Home home,
                         lease::HolderPolicy policy, ClusterId cluster, std::function<void()> changed)
    : io_(io), plane_(plane), clock_(clock), owner_(std::move(owner)), home_(std::move(home)), policy_(policy),
      changed_(std::move(changed)), state_{.subject = std::move(cluster)}, alarm_(io, clock) {}

void LeaseKeeper::feed(const lease::HolderEvent& event) {
  auto [next, actions] = lease::step(state_, event, clock_.now(), policy_, owner_.boot);
  state_ = std::move(next);
  for (const lease::HolderAction& action : actions)
    if (const auto* question = std::get_if<lease::SendQuestion>(&action)) {
      ++asking_;
      spawn(io_.get_executor(), ask(question->question), "a question about the cluster's lease");
    }
  changed_();
  alarm_.ring();
}

asio::awaitable<void> LeaseKeeper::ask(lease::Question question) {
  lease::Batch batch{.operation = question.operation, .owner = owner_, .ttl = policy_.ttl};
  batch.kind = lease::Kind::cluster;
  batch.home = home_;
  batch.asks.push_back(question.ask);
  auto answers = co_await plane_.apply(std::move(batch));
  --asking_;
  bool said = answers && answers->size() == 1 && answers->front().outcome != lease::Outcome::unknown;
  if (!said) {
    feed(lease::Unanswered{question.id});
    co_return;
  }
  answered_ = true;
  const lease::Answer& answer = answers->front();
  highest_ = std::max(highest_, answer.version);
  bool renewal = answer.outcome == lease::Outcome::renewed || answer.outcome == lease::Outcome::rotated;
  if (renewal && state_.open && state_.open->id == question.id) renewed_ = question.id;
  feed(lease::Answered{question.id, answer});
}

void LeaseKeeper::look() {
  if (state_.phase != lease::Phase::holding || state_.open) return;
  state_.next_ask = clock_.now();
  feed(lease::TimePassed{});
}

void LeaseKeeper::close() {
  closed_ = true;
  feed(lease::Unwanted{});
}

asio::awaitable<void> LeaseKeeper::run(Duration within) {
  feed(lease::Wanted{});
  std::optional<Instant> give_up;
  for (;;) {
    if (closed_ && !give_up) give_up = clock_.now() + within;
    if (closed_ && asking_ == 0 && (state_.phase == lease::Phase::idle || clock_.now() >= *give_up)) co_return;
    auto wake = lease::wake_at(state_, policy_);
    if (wake && *wake <= clock_.now() && !(give_up && clock_.now() >= *give_up)) {
      feed(lease::TimePassed{});
      continue;
    }
    Instant next = wake.value_or(clock_.now() + kIdle);
    if (give_up) next = clock_.now() < *give_up ? std::min(next, *give_up) : clock_.now() + kLastAnswer;
    co_await alarm_.wait_until(next);
  }
}

}  // namespace weir::cluster
