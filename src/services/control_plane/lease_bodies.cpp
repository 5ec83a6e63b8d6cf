#include "lease_bodies.hpp"

#include "lease_by_id.hpp"
#include "request.hpp"

#include "weir/forward/destination.hpp"

#include <algorithm>
#include <charconv>
#include <numeric>

namespace weir::control_plane {

using lease::Operation;
using lease::Outcome;
using lease::Refusal;

// What every question starts with.
struct Head {
  RunnerId runner;
  BootId boot;
  std::optional<double> ttl_seconds;
  lease::Home home;
};

struct SingleBody {
  lease::Kind kind;
  Head head;
  SubjectId subject;
  std::optional<std::int64_t> version;
  bool avoid = false;
  LeaseNote note;
};

namespace {
bool has_control(std::string_view text) {
  return std::ranges::any_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7F; });
}
std::string word_problem(const std::string& word) {
  bool sane = !word.empty() && word.size() <= 255 && !has_control(word);
  return sane ? "" : "must have 1 to 255 bytes without control characters";
}
constexpr std::string_view kNoShard = "unassigned";
}  // namespace

template <class V>
void head_fields(V& v, Head& h) {
  v.required("runner_id", h.runner);
  v.optional("ttl_seconds", h.ttl_seconds);
  v.optional("tenant_id", h.home.tenant);
  v.optional("site_id", h.home.site);
}
// A batch names its boot; without one, two hosts with a copied runner_id would be one owner.
template <class V>
void fields(V& v, Head& h) {
  head_fields(v, h);
  v.required("boot_id", h.boot);
}
template <class V>
void fields(V& v, SingleBody& b) {
  head_fields(v, b.head);
  v.optional("boot_id", b.head.boot);
  v.required(lease::id_field(b.kind), b.subject);
  v.optional("version", b.version, json::range<std::int64_t>(0, kVersionMax));
  v.optional("avoid", b.avoid);
  v.optional("shard_id", b.note.shard, word_problem);
  v.optional("config_version", b.note.config_version, word_problem);
  v.optional("zone_version", b.note.zone_version, word_problem);
}

namespace {

void check_ttl(const Head& head, Operation operation, TtlBounds bounds, json::Context& ctx) {
  if (!head.ttl_seconds) {
    if (operation != Operation::release) ctx.add("ttl_seconds", "is required");
    return;
  }
  if (*head.ttl_seconds < seconds(bounds.low) || *head.ttl_seconds > seconds(bounds.high))
    ctx.add("ttl_seconds", fmt::format("must be between {} and {}", seconds(bounds.low), seconds(bounds.high)));
}

// A camera's place is the catalog's; a stream's is said by whoever acquires it first. A cluster stands at no site, and
// serves every tenant where it names none.
void check_home(const lease::Batch& batch, json::Context& ctx) {
  if (!lease::makes_rows(batch) || batch.kind != lease::Kind::stream) return;
  if (batch.home.tenant.empty()) ctx.add("tenant_id", "is required");
  if (batch.home.site.empty()) ctx.add("site_id", "is required");
}

std::string_view subject_problem(lease::Kind kind, std::string_view id) {
  if (kind != lease::Kind::stream) return id_problem(id);
  return forward::valid_stream_id(id) ? "" : "must have 1 to 64 letters, digits, _ or -";
}

lease::Batch batch_of(const Head& head, Operation operation, lease::Kind kind) {
  lease::Batch batch;
  batch.operation = operation;
  batch.kind = kind;
  batch.home = head.home;
  batch.owner = {head.runner, head.boot};
  if (head.ttl_seconds) batch.ttl = from_seconds(*head.ttl_seconds);
  return batch;
}

std::string_view text_of(const json::value& v) { return {v.get_string().data(), v.get_string().size()}; }

bool sane_key(std::string_view key) { return !key.empty() && key.size() <= kKeyBytesMax && !has_control(key); }

// One item of a batch. Paths are made only when there is something to report at them.
class ItemReader {
 public:
  ItemReader(const lease::Batch& batch, json::Context& ctx)
      : operation_(batch.operation), kind_(batch.kind), id_field_(lease::id_field(batch.kind)), ctx_(ctx) {}

  void read(const json::value& v, size_t index, lease::Ask& ask) {
    index_ = index;
    if (!v.is_object()) return ctx_.add(fmt::format("items[{}]", index), "must be an object");
    const json::value* key = nullptr;
    for (const auto& member : v.get_object()) {
      std::string_view name(member.key().data(), member.key().size());
      const json::value& given = member.value();
      if (given.is_null()) continue;
      if (name == id_field_) subject(given, ask);
      else if (name == "version") version(given, ask);
      else if (name == "rotate") flag(given, name, ask.rotate);
      else if (name == "avoid") flag(given, name, ask.avoid);
      else if (name == "key") key = &given;
    }
    if (ask.subject.empty() && !subject_reported_) report(id_field_, "is required");
    settle(ask, key);
    subject_reported_ = version_reported_ = false;
  }

 private:
  void report(std::string_view field, std::string what) {
    ctx_.add(fmt::format("items[{}].{}", index_, field), std::move(what));
  }
  void subject(const json::value& v, lease::Ask& ask) {
    std::string_view problem = v.is_string() ? subject_problem(kind_, text_of(v)) : "must be a string";
    subject_reported_ = !problem.empty();
    if (subject_reported_) return report(id_field_, std::string(problem));
    ask.subject = SubjectId::trusted(std::string(text_of(v)));
  }
  void version(const json::value& v, lease::Ask& ask) {
    bool in_range = v.is_int64() && v.get_int64() >= 0 && v.get_int64() <= kVersionMax;
    version_reported_ = !in_range;
    if (version_reported_)
      return report("version", fmt::format("must be a whole number between 0 and {}", kVersionMax));
    ask.version = lease::Version{v.get_int64()};
  }
  void flag(const json::value& v, std::string_view name, bool& out) {
    if (!v.is_bool()) return report(name, "must be true or false");
    out = v.get_bool();
  }
  // Fields that the operation does not use are dropped; fields that it needs must be there.
  void settle(lease::Ask& ask, const json::value* key) {
    bool acquire = operation_ == Operation::acquire;
    if (acquire) ask.version.reset();
    else if (!ask.version && !version_reported_) report("version", "is required");
    if (operation_ != Operation::renew) ask.rotate = false;
    if (operation_ != Operation::release) ask.avoid = false;
    if (!acquire && !ask.rotate) return;
    if (key == nullptr) return report("key", acquire ? "is required" : "is required with rotate");
    if (!key->is_string() || !sane_key(text_of(*key)))
      return report("key", fmt::format("must be a string of 1 to {} bytes without control characters", kKeyBytesMax));
    ask.key = text_of(*key);
  }

  const Operation operation_;
  const lease::Kind kind_;
  const std::string_view id_field_;
  json::Context& ctx_;
  size_t index_ = 0;
  bool subject_reported_ = false;
  bool version_reported_ = false;
};

void read_items(const json::value& body, lease::Batch& batch, json::Context& ctx) {
  const json::value* items = body.get_object().if_contains("items");
  if (items == nullptr || items->is_null()) return ctx.add("items", "is required");
  if (!items->is_array() || items->get_array().empty() || items->get_array().size() > kBatchItemsMax)
    return ctx.add("items", fmt::format("must be a list of 1 to {} items", kBatchItemsMax));
  const json::array& list = items->get_array();
  batch.asks.resize(list.size());
  ItemReader reader(batch, ctx);
  for (size_t i = 0; i < list.size(); ++i) reader.read(list[i], i, batch.asks[i]);
}

// Two questions about one subject in one batch would have no order.
void check_duplicates(const lease::Batch& batch, json::Context& ctx) {
  const std::vector<lease::Ask>& asks = batch.asks;
  std::vector<std::uint32_t> order(asks.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::sort(order, [&](std::uint32_t a, std::uint32_t b) {
    int compared = asks[a].subject.str().compare(asks[b].subject.str());
    return compared < 0 || (compared == 0 && a < b);
  });
  for (size_t i = 1; i < order.size(); ++i)
    if (asks[order[i]].subject == asks[order[i - 1]].subject)
      ctx.add(fmt::format("items[{}].{}", order[i], lease::id_field(batch.kind)), "appears more than once in this batch");
}

template <class E>
std::string_view name_of(E value) {
  for (const auto& [each, name] : enum_names(E{}))
    if (each == value) return name;
  return "";
}

void append_number(std::string& out, std::int64_t number) {
  std::array<char, 24> digits;
  auto [end, failed] = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  out.append(digits.data(), end);
}

// Ids hold no control characters: only these two need an escape.
void append_id(std::string& out, std::string_view id) {
  out += '"';
  for (char c : id) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  out += '"';
}

void append_answer(std::string& out, const lease::Answer& answer, std::string_view id_field,
                   std::string_view expires_at) {
  out += "{\"";
  out += id_field;
  out += "\":";
  append_id(out, answer.subject.str());
  out += ",\"result\":\"";
  out += name_of(answer.outcome);
  out += "\",\"version\":";
  append_number(out, answer.version.n);
  if (answer.grant.n != 0) {
    out += ",\"grant_version\":";
    append_number(out, answer.grant.n);
  }
  if (!expires_at.empty()) {
    out += ",\"ttl_ms\":";
    append_number(out, std::chrono::duration_cast<std::chrono::milliseconds>(answer.ttl).count());
    out += ",\"expires_at\":\"";
    out += expires_at;
    out += '"';
  }
  if (answer.previous) {
    out += ",\"previous\":{\"boot_id\":";
    append_id(out, answer.previous->boot.str());
    out += ",\"grant_version\":";
    append_number(out, answer.previous->grant.n);
    out += '}';
  }
  if (answer.why != Refusal::none) {
    out += ",\"reason\":\"";
    out += name_of(answer.why);
    out += '"';
  }
  if (answer.outcome == Outcome::held) out += answer.yours ? ",\"yours\":true" : ",\"yours\":false";
  out += '}';
}

// Whether an owner holds the subject now, so that the answer says until when.
bool says_expiry(Outcome outcome) {
  return outcome == Outcome::granted || outcome == Outcome::renewed || outcome == Outcome::rotated ||
         outcome == Outcome::held || outcome == Outcome::kept;
}

json::object previous_of(const lease::Tenure& tenure) {
  return {{"boot_id", tenure.boot.str()}, {"grant_version", tenure.grant.n}};
}

}  // namespace

Result<SingleAsk> read_single(const json::value& body, Operation operation, TtlBounds bounds, lease::Kind kind) {
  json::Context ctx;
  SingleBody given{.kind = kind};
  json::read_value(body, given, "", ctx);
  if (body.is_object()) check_ttl(given.head, operation, bounds, ctx);
  SingleAsk ask{batch_of(given.head, operation, kind), std::move(given.note)};
  lease::Ask& only = ask.batch.asks.emplace_back();
  only.subject = std::move(given.subject);
  std::string_view problem = only.subject.empty() ? "" : subject_problem(kind, only.subject.str());
  if (!problem.empty()) ctx.add(std::string(lease::id_field(kind)), std::string(problem));
  check_home(ask.batch, ctx);
  if (!ctx.problems.empty()) return json::problems_error(ctx.problems);
  if (given.version && operation != Operation::acquire) only.version = lease::Version{*given.version};
  only.avoid = given.avoid && operation == Operation::release;
  return ask;
}

Result<lease::Batch> read_batch(const json::value& body, Operation operation, TtlBounds bounds, lease::Kind kind) {
  json::Context ctx;
  Head head;
  json::read_value(body, head, "", ctx);
  if (!body.is_object()) return json::problems_error(ctx.problems);
  check_ttl(head, operation, bounds, ctx);
  lease::Batch batch = batch_of(head, operation, kind);
  check_home(batch, ctx);
  read_items(body, batch, ctx);
  if (ctx.problems.empty()) check_duplicates(batch, ctx);
  if (!ctx.problems.empty()) return json::problems_error(ctx.problems);
  return batch;
}

std::string write_batch(std::span<const lease::Answer> answers, lease::Kind kind) {
  std::string out;
  out.reserve(32 + answers.size() * 208);
  out += "{\"items\":[";
  // The cameras of one batch mostly end at the same moment.
  WallTime last{};
  std::string text;
  for (const lease::Answer& answer : answers) {
    if (out.back() == '}') out += ',';
    if (says_expiry(answer.outcome) && (text.empty() || answer.expires_at != last)) {
      last = answer.expires_at;
      text = to_iso(last);
    }
    append_answer(out, answer, lease::id_field(kind), says_expiry(answer.outcome) ? std::string_view(text) : std::string_view());
  }
  out += "]}";
  return out;
}

json::object write_single(const SingleAsk& ask, const lease::Answer& answer) {
  const lease::Owner& owner = ask.batch.owner;
  json::object out{{lease::id_field(ask.batch.kind), answer.subject.str()},
                   {"owner_id", owner.runner.str()},
                   {"runner_id", owner.runner.str()},
                   {"boot_id", owner.boot.str()},
                   {"lease_id", lease_id(answer.subject, answer.grant)},
                   {"shard_id", ask.note.shard.empty() ? kNoShard : std::string_view(ask.note.shard)},
                   {"expires_at", to_iso(answer.expires_at)},
                   {"version", answer.version.n},
                   {"grant_version", answer.grant.n},
                   {"ttl_ms", std::chrono::duration_cast<std::chrono::milliseconds>(answer.ttl).count()},
                   {"status", "active"}};
  if (answer.previous) out["previous"] = previous_of(*answer.previous);
  if (ask.batch.operation == Operation::acquire) {
    out["tenant_id"] = answer.tenant.str();
    out["site_id"] = answer.site.str();
    out["acquired_at"] = to_iso(answer.acquired_at);
  }
  return out;
}

namespace {
// Lease time tells when the lease was given its present time, except across a pause of the store; that moment is a
// renewal's, where it is clearly not the grant's.
json::value renewed_at(const LeaseView& view) {
  WallTime given = view.expires_at - view.row.ttl;
  return given - view.row.acquired_at > 50ms ? json::value(to_iso(given)) : json::value(nullptr);
}

void write_note(json::object& out, const LeaseView& view) {
  const LeaseNote& note = view.note;
  out["shard_id"] = note.shard.empty() ? kNoShard : std::string_view(note.shard);
  out["renewed_at"] = renewed_at(view);
  out["last_heartbeat"] = to_iso(std::max(note.heard, view.row.acquired_at));
  out["processing_stats"] = note.stats;
  if (!note.config_version.empty()) out["config_version"] = note.config_version;
  if (!note.zone_version.empty()) out["zone_version"] = note.zone_version;
}
}  // namespace

json::object write_lease(const LeaseView& view, bool delivers) {
  const lease::LeaseRow& row = view.row;
  bool owned = !row.owner.runner.empty();
  std::string_view status = !owned         ? "free"
                            : row.revoked  ? "revoked"
                            : row.released ? "released"
                            : view.expired ? "expired"
                            : delivers || view.note.heard != WallTime{} ? "active"
                                                                        : "pending";
  json::object out{{lease::id_field(row.kind), row.subject.str()}, {"tenant_id", row.tenant.str()},
                   {"site_id", row.site.str()},       {"status", status},
                   {"version", row.version.n},        {"grant_version", row.grant.n},
                   {"assignable", row.assignable}};
  if (!row.cluster.empty()) out["cluster"] = row.cluster.str();
  if (!owned) return out;
  out["owner_id"] = row.owner.runner.str();
  out["runner_id"] = row.owner.runner.str();
  out["boot_id"] = row.owner.boot.str();
  out["lease_id"] = lease_id(row.subject, row.grant);
  write_note(out, view);
  out["ttl_ms"] = std::chrono::duration_cast<std::chrono::milliseconds>(row.ttl).count();
  out["acquired_at"] = to_iso(row.acquired_at);
  out["expires_at"] = to_iso(view.expires_at);
  if (row.previous) out["previous"] = previous_of(*row.previous);
  return out;
}

Error refusal_error(const lease::Answer& answer, lease::Kind kind) {
  json::object about{{lease::id_field(kind), answer.subject.str()}};
  std::string_view what = lease::to_string(kind);
  switch (answer.outcome) {
    case Outcome::held:
      about["expires_at"] = to_iso(answer.expires_at);
      return {Errc::conflict, "lease_held", fmt::format("somebody else holds this {}", what), std::move(about)};
    case Outcome::lost:
      about["current_version"] = answer.version.n;
      return {Errc::not_found, "lease_lost", "the lease is no longer yours", std::move(about)};
    case Outcome::refused: break;
    default: return {Errc::conflict, "lease_unknown", "the store cannot say now; ask again", std::move(about)};
  }
  switch (answer.why) {
    case Refusal::not_found:
      return {Errc::not_found, fmt::format("{}_not_found", what), fmt::format("there is no such {}", what),
              std::move(about)};
    case Refusal::disabled:
      return {Errc::unprocessable, "camera_disabled", "the camera is disabled or not processed by leases",
              std::move(about)};
    case Refusal::boot_dead:
      return {Errc::conflict, "boot_dead", "this boot's last will was carried out", std::move(about)};
    case Refusal::cordoned:
      return {Errc::unprocessable, "runner_cordoned", "the runner is cordoned or draining", std::move(about)};
    case Refusal::avoided:
      return {Errc::conflict, "lease_avoided",
              "this runner was relieved of the camera a moment ago, and another can take it", std::move(about)};
    case Refusal::settling:
      return {Errc::conflict, "lease_settling", "the store came back a moment ago; holders may renew first",
              std::move(about)};
    case Refusal::taken:
      return {Errc::conflict, "id_taken", fmt::format("this id is not free for a {} of yours", what), std::move(about)};
    case Refusal::none: break;
  }
  return {Errc::conflict, "lease_unknown", "the store cannot say now; ask again", std::move(about)};
}

}  // namespace weir::control_plane
