#include "leases.hpp"

#include "lease_statements.hpp"

#include "weir/base/log.hpp"
#include "weir/ports/catalog.hpp"

namespace weir::postgres {

using lease::Answer;
using lease::Batch;
using lease::LeaseRow;
using lease::Operation;
using lease::Outcome;
using lease::Refusal;

namespace {

struct Verdict {
  std::string_view word;
  Outcome outcome;
  Refusal why = Refusal::none;
  bool yours = false;
  bool replayed = false;
};
constexpr Verdict kVerdicts[] = {
    {"granted", Outcome::granted},
    {"replayed", Outcome::granted, Refusal::none, false, true},
    {"renewed", Outcome::renewed},
    {"rotated", Outcome::rotated},
    {"held", Outcome::held},
    {"held_settling", Outcome::held, Refusal::settling},
    {"yours", Outcome::held, Refusal::none, true},
    {"lost", Outcome::lost},
    {"released", Outcome::released},
    {"said", Outcome::released, Refusal::none, false, true},
    {"kept", Outcome::kept},
    {"disabled", Outcome::refused, Refusal::disabled},
    {"boot_dead", Outcome::refused, Refusal::boot_dead},
    {"cordoned", Outcome::refused, Refusal::cordoned},
    {"avoided", Outcome::refused, Refusal::avoided},
    {"settling", Outcome::refused, Refusal::settling},
};

// One column each; see lease_statements.hpp. The last two not on renewal.
enum Column {
  kOrd, kVerdict, kVersion, kGrant, kTtl, kExpires, kPrevBoot, kPrevGrant, kStolen, kNow, kClock, kEpoch, kAcquired,
  kTenant, kSite
};

struct Judged {
  std::vector<Answer> answers;
  bool stale = false;         // the server's timeline is not the stored one: nothing was drawn
  bool lost_commits = false;  // a version above the row's was presented, or one not above it was drawn
};

Answer read_answer(const Rows& rows, int i, const Batch& batch, const lease::Ask& ask, Judged& all) {
  Answer answer{ask.subject};
  std::string_view word = rows.view(i, kVerdict);
  if (word == "stale") all.stale = true;
  if (word == "unwritten") all.lost_commits = true;
  for (const Verdict& verdict : kVerdicts) {
    if (verdict.word != word) continue;
    answer.outcome = verdict.outcome;
    answer.why = verdict.why;
    answer.yours = verdict.yours;
    answer.replayed = verdict.replayed;
  }
  if (word == "replayed" && batch.operation == Operation::renew) answer.outcome = Outcome::rotated;
  if (answer.outcome == Outcome::unknown) return answer;
  answer.ttl = Duration(rows.integer(i, kTtl));
  answer.expires_at = WallTime(Duration(rows.integer(i, kClock) + rows.integer(i, kExpires) - rows.integer(i, kNow)));
  if (answer.outcome == Outcome::refused) return answer;
  answer.version = {rows.integer(i, kVersion)};
  answer.grant = {rows.integer(i, kGrant)};
  answer.stolen = rows.flag(i, kStolen);
  if (answer.outcome == Outcome::granted && rows.integer(i, kPrevGrant) != 0)
    answer.previous = lease::Tenure{rows.id<BootId>(i, kPrevBoot), {rows.integer(i, kPrevGrant)}};
  if (answer.holds()) answer.acquired_at = WallTime(Duration(rows.integer(i, kAcquired)));
  if (batch.operation != Operation::renew && (answer.holds() || answer.outcome == Outcome::released)) {
    answer.tenant = rows.id<TenantId>(i, kTenant);
    answer.site = rows.id<SiteId>(i, kSite);
  }
  if (answer.outcome != Outcome::lost) return answer;

  std::int64_t epoch = rows.integer(i, kEpoch);
  answer.grant = {};
  answer.version = std::max(answer.version, lease::Version::make(epoch, 0));
  if (ask.version && *ask.version >= answer.version) {
    all.lost_commits |= ask.version->n > rows.integer(i, kVersion);
    answer.outcome = Outcome::unknown;
    answer.version = {};
  }
  return answer;
}

Rows send(Connection& c, const Batch& batch, const LeaseLimits& limits) {
  ArrayText subjects, versions, rotates, keys, avoids;
  bool rotating = false;
  for (const lease::Ask& ask : batch.asks) {
    subjects.add(std::string_view(ask.subject.str()));
    if (batch.operation == Operation::acquire) {
      keys.add(std::string_view(ask.key));
      continue;
    }
    versions.add(ask.version ? ask.version->n : std::int64_t{-1});
    rotating |= ask.rotate;
  }
  std::string_view kind = lease::to_string(batch.kind);
  Params params;
  params << subjects.take();
  if (batch.operation == Operation::acquire) {
    params << keys.take() << batch.owner.runner << batch.owner.boot << batch.ttl << batch.tenant << limits.runner_live
           << kind;
    return c.query(kAcquire, params);
  }
  params << versions.take() << batch.owner.runner << batch.owner.boot;
  if (batch.operation == Operation::renew) {
    params << batch.ttl << batch.tenant;
    if (!rotating) return c.query(kRenew, params << kind);
    for (const lease::Ask& ask : batch.asks) {
      rotates.add(ask.rotate);
      keys.add(std::string_view(ask.key));
    }
    params << rotates.take() << keys.take() << kind;
    return c.query(kRotate, params);
  }
  for (const lease::Ask& ask : batch.asks) avoids.add(ask.avoid);
  params << avoids.take() << batch.tenant << limits.runner_live << kind;
  return c.query(kRelease, params);
}

// A step of its own: a row that nobody owns changes nothing.
void make_rows(Connection& c, const Batch& batch) {
  ArrayText subjects;
  for (const lease::Ask& ask : batch.asks) subjects.add(std::string_view(ask.subject.str()));
  c.query(kMake, Params() << subjects.take() << batch.home.tenant << batch.home.site << lease::to_string(batch.kind));
}

Judged judge(Connection& c, const Batch& batch, const LeaseLimits& limits) {
  Rows rows = send(c, batch, limits);
  Judged judged;
  judged.answers.reserve(batch.asks.size());
  for (const lease::Ask& ask : batch.asks) {
    Answer unknown{ask.subject, Outcome::refused};
    unknown.why = lease::makes_rows(batch) ? Refusal::taken : Refusal::not_found;
    judged.answers.push_back(std::move(unknown));
  }
  for (int i = 0; i < rows.size(); ++i) {
    auto at = static_cast<size_t>(rows.integer(i, kOrd) - 1);
    judged.answers[at] = read_answer(rows, i, batch, batch.asks[at], judged);
  }
  return judged;
}

#define WEIR_LEASE_COLUMNS                                                                                         \
  "l.camera_uuid, l.tenant_id, l.site_id, l.assignable, l.owner_id, l.boot_id, l.version, l.grant_version,"        \
  " l.last_key, l.expires, l.ttl, l.released, l.revoked, l.previous_boot, l.previous_grant, l.acquired_at, l.kind," \
  " l.cluster"
#define WEIR_LEASE_VIEW                                                                                     \
  "SELECT " WEIR_LEASE_COLUMNS ", m.now, m.clock, n.shard_id, n.config_version, n.zone_version, n.heard,"   \
  " n.stats FROM leases l CROSS JOIN weir_moment m"                                                         \
  " LEFT JOIN lease_notes n ON n.camera_uuid = l.camera_uuid AND n.grant_version = l.grant_version "

LeaseRow lease_row(const Rows& r, int i) {
  LeaseRow row;
  row.subject = r.id<CameraId>(i, 0);
  row.tenant = r.id<TenantId>(i, 1);
  row.site = r.id<SiteId>(i, 2);
  row.assignable = r.flag(i, 3);
  row.owner = {r.id<RunnerId>(i, 4), r.id<BootId>(i, 5)};
  row.version = {r.integer(i, 6)};
  row.grant = {r.integer(i, 7)};
  row.last_key = r.text(i, 8);
  row.expires = LeaseTime(Duration(r.integer(i, 9)));
  row.ttl = Duration(r.integer(i, 10));
  row.released = r.flag(i, 11);
  row.revoked = r.flag(i, 12);
  if (r.integer(i, 14) != 0) row.previous = lease::Tenure{r.id<BootId>(i, 13), {r.integer(i, 14)}};
  row.acquired_at = WallTime(Duration(r.integer(i, 15)));
  row.kind = lease::kind_of(r.view(i, 16));
  row.cluster = r.id<ClusterId>(i, 17);
  return row;
}

std::vector<LeaseRow> lease_rows(const Rows& r) {
  std::vector<LeaseRow> rows;
  for (int i = 0; i < r.size(); ++i) rows.push_back(lease_row(r, i));
  return rows;
}

LeaseView view_row(const Rows& r, int i) {
  LeaseView view{lease_row(r, i)};
  LeaseTime now{Duration(r.integer(i, 18))};
  view.expires_at = WallTime(Duration(r.integer(i, 19))) + (view.row.expires - now);
  view.expired = !view.row.released && view.row.expires <= now;
  if (!r.is_null(i, 20))
    view.note = {r.text(i, 20), r.text(i, 21), r.text(i, 22), WallTime(Duration(r.integer(i, 23))),
                 read_object(r.view(i, 24))};
  return view;
}

}  // namespace

std::vector<Answer> apply(Connection& c, const Batch& batch, const LeaseLimits& limits) {
  if (lease::makes_rows(batch)) make_rows(c, batch);
  Judged judged = judge(c, batch, limits);
  // Only a new epoch can answer these; when none may be opened now, the answers stay unknown.
  if (judged.stale || judged.lost_commits) {
    bool opened = c.query("SELECT weir_open_epoch($1::bigint)", Params() << limits.ttl_max).flag(0, 0);
    // Logged here, because the next tick finds the epoch open already.
    if (opened)
      log::warn("store.epoch", "the store may have lost commits: a new epoch was opened")
          .with("found_by", judged.stale ? "timeline" : "version");
    if (opened || judged.stale) judged = judge(c, batch, limits);
  }
  return std::move(judged.answers);
}

TickReport tick(Connection& c, const LeaseLimits& limits) {
  Rows rows = c.query("SELECT hold_opened, epoch_opened, now_epoch FROM weir_tick($1::bigint)", Params() << limits.ttl_max);
  return {rows.flag(0, 0), rows.flag(0, 1), rows.integer(0, 2)};
}

Result<LeaseView> revoke(Connection& c, const CameraId& camera, const TenantId& tenant, const LeaseLimits& limits) {
  TRY(present, show_lease(c, camera, tenant));
  c.query("SELECT weir_revoke($1::text, $2::bigint)", Params() << camera << limits.ttl_max);
  return show_lease(c, camera, tenant);
}

// The boot dies first; an acquire under way holds its row, so the leases read next are complete. Asked again it
// answers the same: the control plane that asked before may have died before it announced the releases.
Result<std::vector<LeaseRow>> release_all(Connection& c, const lease::Owner& owner, const std::string& will_sha256,
                                          const LeaseLimits& limits) {
  Transaction tx(c);
  Rows boot = c.query(
      "UPDATE boots SET dead = true, will_after = CASE WHEN dead THEN will_after ELSE"
      " (SELECT (s.epoch << 40) | c.last_value FROM store_state s CROSS JOIN lease_counter c) END"
      " WHERE runner_id = $1::text AND boot_id = $2::text AND will_sha256 = $3::text AND will_sha256 <> ''"
      " RETURNING will_after",
      Params() << owner.runner << owner.boot << will_sha256);
  if (boot.size() == 0)
    return Error{Errc::unauthorized, "will_refused", "this boot's last will was not signed with its secret"};
  c.query(
      "WITH k AS MATERIALIZED (SELECT camera_uuid FROM leases WHERE owner_id = $1::text AND boot_id = $2::text"
      " AND NOT released ORDER BY camera_uuid FOR UPDATE)"
      " UPDATE leases l SET version = weir_draw($3::bigint), released = true, last_key = ''"
      " FROM k WHERE l.camera_uuid = k.camera_uuid",
      Params() << owner.runner << owner.boot << limits.ttl_max);
  // The runner is known to be dead, so its last heartbeat is set to before lease time began, by more than runner_live
  // can be.
  c.query("UPDATE runners SET heartbeat_at = -86400000000 WHERE runner_id = $1::text AND boot_id = $2::text",
          Params() << owner.runner << owner.boot);
  std::vector<LeaseRow> rows = lease_rows(
      c.query("SELECT " WEIR_LEASE_COLUMNS " FROM leases l WHERE l.owner_id = $1::text AND l.boot_id = $2::text"
              " AND l.released AND NOT l.revoked AND $3::bigint > 0 AND l.version > $3 ORDER BY l.camera_uuid",
              Params() << owner.runner << owner.boot << boot.integer(0, 0)));
  tx.commit();
  return rows;
}

std::vector<LeaseRow> take_expired(Connection& c, int most) {
  // Somewhat less than the time between two looks of one control plane, so that it does not miss its own turn.
  constexpr Duration kAtMostEvery = kExpiryEvery * 4 / 5;
  return lease_rows(c.query("SELECT " WEIR_LEASE_COLUMNS " FROM weir_take_expired($1::bigint, $2::int) l",
                            Params() << kAtMostEvery << most));
}

std::vector<LeaseView> list_leases(Connection& c, const LeaseFilter& filter) {
  Rows rows = c.query(WEIR_LEASE_VIEW
                      "WHERE l.camera_uuid > $1::text AND ($2::text = '' OR l.tenant_id = $2) AND"
                      " ($3::text = '' OR l.owner_id = $3) AND ($4::text = '' OR l.boot_id = $4) AND"
                      " (NOT $5::boolean OR NOT l.released) AND l.owner_id <> '' AND l.kind = $7::text ORDER BY l.camera_uuid LIMIT $6::int",
                      Params() << filter.after << filter.tenant << filter.runner << filter.boot << filter.only_held
                               << filter.limit << lease::to_string(filter.kind));
  std::vector<LeaseView> views;
  for (int i = 0; i < rows.size(); ++i) views.push_back(view_row(rows, i));
  return views;
}

Result<LeaseView> show_lease(Connection& c, const CameraId& camera, const TenantId& tenant) {
  Rows rows = c.query(WEIR_LEASE_VIEW "WHERE l.camera_uuid = $1::text AND ($2::text = '' OR l.tenant_id = $2)",
                      Params() << camera << tenant);
  if (rows.size() == 0) return no_such("camera", "camera_uuid");
  return view_row(rows, 0);
}

// Beside the rows of the leases: a heartbeat writes no row that a decision reads.
Result<LeaseView> note_lease(Connection& c, const LeaseWord& word, const TenantId& tenant) {
  c.query(
      "INSERT INTO lease_notes AS n SELECT l.camera_uuid, l.grant_version, $4::text, $5::text, $6::text,"
      " CASE WHEN $7::boolean THEN m.clock ELSE 0 END, $8::text FROM leases l CROSS JOIN weir_moment m"
      " WHERE l.camera_uuid = $1::text AND l.grant_version = $2::bigint AND NOT l.released"
      " AND ($3::text = '' OR l.tenant_id = $3)"
      " ON CONFLICT (camera_uuid) DO UPDATE SET grant_version = excluded.grant_version,"
      " shard_id = CASE WHEN excluded.shard_id <> '' OR n.grant_version <> excluded.grant_version"
      " THEN excluded.shard_id ELSE n.shard_id END,"
      " config_version = CASE WHEN excluded.config_version <> '' OR n.grant_version <> excluded.grant_version"
      " THEN excluded.config_version ELSE n.config_version END,"
      " zone_version = CASE WHEN excluded.zone_version <> '' OR n.grant_version <> excluded.grant_version"
      " THEN excluded.zone_version ELSE n.zone_version END,"
      " heard = CASE WHEN excluded.heard > 0 OR n.grant_version <> excluded.grant_version"
      " THEN excluded.heard ELSE n.heard END,"
      " stats = CASE WHEN excluded.stats <> '' OR n.grant_version <> excluded.grant_version"
      " THEN excluded.stats ELSE n.stats END"
      " WHERE n.grant_version <= excluded.grant_version",
      Params() << word.subject << word.grant.n << tenant << word.shard << word.config_version << word.zone_version
               << word.heartbeat << (word.stats ? json::to_text(*word.stats) : std::string()));
  return show_lease(c, word.subject, tenant);
}

Result<BudgetAnswer> consume(Connection& c, const SiteId& site, const TenantId& tenant,
                             const std::optional<BudgetUse>& use) {
  Rows rows = c.query("SELECT outcome, have, cap, rate FROM weir_consume($1::text, $2::text, $3::text, $4::bigint)",
                      Params() << site << tenant << (use ? use->camera : CameraId())
                               << (use ? use->grant.n : std::int64_t{0}));
  std::string outcome = rows.text(0, 0);
  if (outcome == "no_site") return no_such("site", "site_id");
  if (outcome == "no_camera") return no_such("camera", "camera_uuid");
  BudgetAnswer answer{outcome == "granted", rows.number(0, 1), rows.number(0, 2)};
  if (!answer.granted)
    answer.retry_after = bucket::consume({answer.tokens, answer.capacity, rows.number(0, 3)}, LeaseTime{}).retry_after;
  return answer;
}

}  // namespace weir::postgres
