#include "lease_by_id.hpp"

#include "request.hpp"

#include "weir/net/token.hpp"

#include <charconv>

namespace weir::control_plane {

struct Renewal {
  TtlBounds bounds;
  std::optional<double> ttl_seconds = {};
};
template <class V>
void fields(V& v, Renewal& r) {
  v.optional("ttl_seconds", r.ttl_seconds, json::range(seconds(r.bounds.low), seconds(r.bounds.high)));
}

namespace {
constexpr std::string_view kPrefix = "lease-";
constexpr size_t kStatsBytesMax = 16 << 10;

Error no_such_lease() { return {Errc::not_found, "lease_not_found", "this is not the id of a lease"}; }
}  // namespace

std::string lease_id(const SubjectId& subject, lease::Version grant) {
  return fmt::format("{}{}", kPrefix, net::base64url(fmt::format("{:x}.{}", grant.n, subject)));
}

Result<TenureId> read_lease_id(std::string_view text) {
  if (!text.starts_with(kPrefix)) return no_such_lease();
  auto place = net::from_base64url(text.substr(kPrefix.size()));
  size_t dot = place ? place->find('.') : std::string::npos;
  if (dot == std::string::npos) return no_such_lease();
  TenureId id;
  const char* end = place->data() + dot;
  auto [stopped, failed] = std::from_chars(place->data(), end, id.grant.n, 16);
  auto subject = SubjectId::parse(std::string_view(*place).substr(dot + 1));
  bool sane = failed == std::errc() && stopped == end && id.grant.n > 0 && id.grant.n <= kVersionMax;
  if (!sane || !subject) return no_such_lease();
  id.subject = *std::move(subject);
  return id;
}

lease::Batch ask_by_id(lease::Operation operation, const TenureId& id, lease::Kind kind, lease::Owner owner) {
  lease::Batch batch;
  batch.operation = operation;
  batch.kind = kind;
  batch.owner = std::move(owner);
  batch.asks.push_back({.subject = id.subject, .version = id.grant});
  return batch;
}

Result<std::optional<Duration>> read_renewal(const std::string& body, TtlBounds bounds) {
  if (body.empty()) return std::optional<Duration>();
  TRY(parsed, json::parse_text(body));
  json::Context ctx;
  Renewal given{bounds};
  json::read_value(parsed, given, "", ctx);
  if (!ctx.problems.empty()) return json::problems_error(ctx.problems);
  return given.ttl_seconds ? std::optional(from_seconds(*given.ttl_seconds)) : std::nullopt;
}

Result<LeaseWord> read_lease_word(const std::string& body, const TenureId& id) {
  LeaseWord word{.subject = id.subject, .grant = id.grant};
  word.heartbeat = true;
  if (body.empty()) return word;
  TRY(parsed, json::parse_text(body));
  if (!parsed.is_object()) return bad_field("body", "must be an object");
  const json::value* named = parsed.get_object().if_contains("processing_stats");
  const json::value& stats = named != nullptr ? *named : parsed;
  if (!stats.is_object()) return bad_field("processing_stats", "must be an object");
  if (json::to_text(stats).size() > kStatsBytesMax)
    return bad_field("processing_stats", fmt::format("must have at most {} bytes", kStatsBytesMax));
  word.stats = stats.get_object();
  return word;
}

}  // namespace weir::control_plane
