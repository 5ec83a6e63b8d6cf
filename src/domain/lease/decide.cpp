#include "weir/lease/decide.hpp"

#include <algorithm>

namespace weir::lease {

Moment moment_of(const StoreState& state, WallTime clock) {
  return {lease_time(state, clock), state.hold_until, state.closed_until, state.epoch,
          Version::make(state.epoch, state.counter + 1)};
}

bool settled(const Moment& moment) { return moment.now >= std::max(moment.hold_until, moment.closed_until); }

bool makes_rows(const Batch& batch) { return batch.operation == Operation::acquire && batch.kind != Kind::camera; }

Duration avoid_duration(int strikes) { return std::chrono::minutes(1 << std::clamp(strikes - 1, 0, 4)); }

bool fence_accepts(const LeaseRow& row, const Owner& speaker, Version stamped, std::int64_t epoch) {
  return !row.released && row.owner == speaker && row.version == stamped && stamped.epoch() == epoch;
}

bool fence_accepts(const LeaseRow& camera, const LeaseRow& cluster, const Owner& speaker, Version stamped,
                   std::int64_t epoch) {
  bool serves_it = cluster.kind == Kind::cluster && (cluster.tenant.empty() || cluster.tenant == camera.tenant);
  return serves_it && stamped > camera.version && fence_accepts(cluster, speaker, stamped, epoch);
}

LeaseRow revoke(LeaseRow row, Version next) {
  row.version = next;
  row.released = true;
  row.revoked = true;
  row.last_key.clear();
  return row;
}

Charged put_in_charge(LeaseRow row, const Charge& charge, Version next) {
  bool ends = !charge.assignable && !row.released;
  bool leaves_cluster = !row.cluster.empty() && row.cluster != charge.cluster;
  if (ends) row = revoke(std::move(row), next);
  if (leaves_cluster) {
    row.version = next;
    row.owner = {};
    row.grant = {};
    row.last_key.clear();
    row.revoked = false;
    row.previous.reset();
  }
  row.assignable = charge.assignable;
  row.cluster = charge.cluster;
  return {std::move(row), ends || leaves_cluster};
}

namespace {

bool from_older_epoch(Version version, const Moment& moment) { return version.epoch() < moment.epoch; }

struct Judge {
  const LeaseRow& row;
  const Batch& batch;
  const Ask& ask;
  const Moment& moment;
  const Facts& facts;

  bool asker_owns_row() const { return row.owner == batch.owner && !row.owner.runner.empty(); }
  bool asker_holds() const { return asker_owns_row() && !row.released; }
  // Without a version only a lease that was acquired without a key can be touched: as clients of the routes for one
  // camera do.
  bool version_matches() const { return ask.version ? *ask.version == row.version : row.last_key.empty(); }

  Decision answered(Outcome outcome, Refusal why = Refusal::none) const {
    Answer answer{ask.subject, outcome, row.version, row.grant, row.ttl};
    answer.why = why;
    answer.yours = outcome == Outcome::held && asker_holds();
    return {answer};
  }
  Decision refused(Refusal why) const {
    Decision decision = answered(Outcome::refused, why);
    decision.answer.version = decision.answer.grant = {};
    return decision;
  }
  Decision written(Outcome outcome, LeaseRow next) const {
    Answer answer{ask.subject, outcome, next.version, next.grant, next.ttl};
    if (outcome == Outcome::granted) answer.previous = next.previous;
    return {answer, std::move(next), false};
  }
  // The row for another TTL from now, whatever else changes.
  LeaseRow extended() const {
    LeaseRow next = row;
    next.ttl = batch.ttl;
    next.expires = moment.now + batch.ttl;
    return next;
  }
  Decision grant() const {
    LeaseRow next = extended();
    // Across an epoch the store cannot vouch for who came before: no spool may be adopted.
    next.previous.reset();
    if (!row.owner.runner.empty() && !from_older_epoch(row.grant, moment))
      next.previous = Tenure{row.owner.boot, row.grant};
    bool stolen = !row.released && !asker_owns_row();
    next.owner = batch.owner;
    next.version = next.grant = moment.next;
    // A plain renewal that becomes a grant carries no key of its own.
    if (batch.operation == Operation::acquire || ask.rotate) next.last_key = ask.key;
    next.released = next.revoked = false;
    Decision decision = written(Outcome::granted, std::move(next));
    decision.drew = true;
    decision.answer.stolen = stolen;
    return decision;
  }
  // The store gives its earlier answer again; only the expiry is set afresh.
  Decision repeated(Outcome outcome) const {
    Decision decision = written(outcome, extended());
    decision.answer.replayed = true;
    return decision;
  }
  Decision lost() const {
    Decision decision = answered(Outcome::lost);
    decision.answer.version = std::max(row.version, Version::make(moment.epoch, 0));
    decision.answer.grant = {};
    // A holder may be told "lost" only with a version above its own. Every version of a camera is in its row from the
    // moment it is drawn, so one above the row's proves that commits are missing here.
    if (ask.version && *ask.version >= decision.answer.version) {
      decision.answer.outcome = Outcome::unknown;
      decision.answer.version = {};
      decision.lost_commits = *ask.version > row.version;
    }
    return decision;
  }

  Decision acquire() const {
    if (!row.assignable) return refused(Refusal::disabled);
    if (facts.boot_dead) return refused(Refusal::boot_dead);
    if (asker_holds()) {
      if (from_older_epoch(row.version, moment)) return grant();
      return ask.key == row.last_key ? repeated(Outcome::granted) : answered(Outcome::held);
    }
    if (facts.cordoned) return refused(Refusal::cordoned);
    if (facts.avoided && facts.other_eligible) return refused(Refusal::avoided);
    if (row.released) return moment.now < moment.closed_until ? refused(Refusal::settling) : grant();
    if (row.expires > moment.now) return answered(Outcome::held);
    return settled(moment) ? grant() : answered(Outcome::held, Refusal::settling);
  }

  Decision renew() const {
    if (facts.boot_dead) return lost();
    if (!asker_holds()) return lost();
    bool replayed = ask.rotate && !ask.key.empty() && ask.key == row.last_key;
    // A new epoch ends every tenure: the holder goes on, but nothing it captured before may still be published.
    if ((version_matches() || replayed) && from_older_epoch(row.version, moment)) return grant();
    if (version_matches()) {
      if (!ask.rotate) return written(Outcome::renewed, extended());
      LeaseRow next = extended();
      next.version = moment.next;
      next.last_key = ask.key;
      Decision decision = written(Outcome::rotated, std::move(next));
      decision.drew = true;
      return decision;
    }
    if (replayed) return repeated(Outcome::rotated);
    return lost();
  }

  Decision release() const {
    if (asker_owns_row() && row.released && !row.revoked) {
      Decision said_before = answered(Outcome::released);
      said_before.answer.replayed = true;
      return said_before;
    }
    if (!asker_holds() || !version_matches()) return lost();
    bool avoid = ask.avoid && row.kind == Kind::camera;
    if (avoid && !facts.other_eligible) return answered(Outcome::kept);
    LeaseRow next = row;
    next.version = moment.next;
    next.released = true;
    next.last_key.clear();
    Decision decision = written(Outcome::released, std::move(next));
    decision.drew = true;
    decision.add_avoid = avoid;
    return decision;
  }
};

}  // namespace

Decision decide(const LeaseRow& row, const Batch& batch, const Ask& ask, const Moment& moment, const Facts& facts) {
  Judge judge{row, batch, ask, moment, facts};
  switch (batch.operation) {
    case Operation::acquire: return judge.acquire();
    case Operation::renew: return judge.renew();
    case Operation::release: return judge.release();
  }
  WEIR_ASSERT(false);
}

}  // namespace weir::lease
