#include "weir/lease/ledger.hpp"

namespace weir::lease {

namespace {

Facts facts_for(Rows& rows, const LeaseRow& row, const Batch& batch, const Ask& ask, LeaseTime now) {
  Facts facts;
  const RunnerId& runner = batch.owner.runner;
  facts.boot_dead = rows.boot_dead(batch.owner);
  if (row.kind != Kind::camera) return facts;
  if (batch.operation == Operation::acquire) {
    facts.cordoned = rows.cordoned(runner);
    facts.avoided = rows.avoided(row.subject, runner, now);
  }
  // The one slow question, which counts the leases of the fleet: asked only where the asker has a camera to let go.
  bool lets_go = ask.avoid && row.owner == batch.owner && row.version == ask.version.value_or(row.version);
  if (facts.avoided || lets_go) facts.other_eligible = rows.other_eligible(row.subject, runner, now);
  return facts;
}

LeaseRow made(const Batch& batch, const Ask& ask) {
  LeaseRow row{ask.subject, batch.home.tenant, batch.home.site};
  row.kind = batch.kind;
  return row;
}

// One pass over the batch. True if an asker presented a version above its row's.
bool judge(Rows& rows, StoreState& state, const Batch& batch, WallTime clock, std::vector<Answer>& answers) {
  bool lost_commits = false;
  answers.clear();
  for (const Ask& ask : batch.asks) {
    auto row = rows.find(ask.subject);
    if (!row && makes_rows(batch)) rows.save(*(row = made(batch, ask)));
    if (!row || row->kind != batch.kind || (!batch.tenant.empty() && row->tenant != batch.tenant)) {
      Answer none{ask.subject, Outcome::refused};
      none.why = makes_rows(batch) ? Refusal::taken : Refusal::not_found;
      answers.push_back(std::move(none));
      continue;
    }
    Moment moment = moment_of(state, clock);
    Decision decision = decide(*row, batch, ask, moment, facts_for(rows, *row, batch, ask, moment.now));
    lost_commits |= decision.lost_commits;
    if (decision.drew) ++state.counter;
    if (decision.write) {
      WEIR_ASSERT(decision.write->version >= row->version);
      if (decision.answer.outcome == Outcome::granted && decision.drew) decision.write->acquired_at = clock;
      rows.save(*decision.write);
    }
    if (decision.add_avoid) rows.add_avoid(ask.subject, batch.owner.runner, moment.now);
    const LeaseRow& after = decision.write ? *decision.write : *row;
    Answer& answer = answers.emplace_back(std::move(decision.answer));
    answer.expires_at = clock + (after.expires - moment.now);
    if (answer.holds()) answer.acquired_at = after.acquired_at;
    if (batch.operation != Operation::renew && (answer.holds() || answer.outcome == Outcome::released)) {
      answer.tenant = row->tenant;
      answer.site = row->site;
    }
  }
  return lost_commits;
}

}  // namespace

Applied apply(Rows& rows, StoreState& state, const Batch& batch, WallTime clock, Duration ttl_max) {
  Applied applied;
  applied.answers.reserve(batch.asks.size());
  bool lost_commits = judge(rows, state, batch, clock, applied.answers);
  // One epoch in the time that lost grants can live is enough; more would only serve an asker that lies.
  if (lost_commits && lease_time(state, clock) >= state.closed_until && state.epoch < kEpochMax) {
    open_epoch(state, lease_time(state, clock), ttl_max);
    rows.empty_buckets(lease_time(state, clock));
    applied.epoch_opened = true;
    judge(rows, state, batch, clock, applied.answers);
  }
  return applied;
}

}  // namespace weir::lease
