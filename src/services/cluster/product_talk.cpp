#include "product_talk.hpp"

namespace weir::cluster {

namespace {

struct ListenText {
  std::optional<std::vector<std::string>> subscriptions = {};
};
template <class V>
void fields(V& v, ListenText& l) {
  v.optional("subscriptionIdentifiers", l.subscriptions);
}

Result<ProductMessage> read_listen(const json::object& all) {
  const json::value* payload = all.if_contains("payload");
  if (payload == nullptr) return json::problems_error({{"payload", "is required"}});
  json::Context ctx;
  ListenText text;
  json::read_value(*payload, text, "payload", ctx);
  if (!ctx.problems.empty()) return json::problems_error(ctx.problems);
  Listen out;
  if (!text.subscriptions) return ProductMessage(std::move(out));
  out.subscriptions.emplace();
  for (const std::string& each : *text.subscriptions) {
    TRY(id, Identifier::parse(each));
    out.subscriptions->insert(id.text());
  }
  return ProductMessage(std::move(out));
}

Result<ProductMessage> read_answer(std::string_view text) {
  TRY(command, read_command(text));
  return ProductMessage(std::get<PatchSessionResult>(std::move(command)));
}

std::string write_position(const std::string& id) {
  return json::to_text(json::object{{"type", "position"}, {"streamId", id}});
}

}  // namespace

Result<ProductMessage> read_product_message(std::string_view text) {
  TRY(parsed, json::parse_text(text));
  if (!parsed.is_object()) return json::problems_error({{"body", "must be an object"}});
  const json::object& all = parsed.get_object();
  const json::value* type = all.if_contains("type");
  if (type != nullptr && *type == "listen") return read_listen(all);
  if (type != nullptr && *type == "patchSessionResult") return read_answer(text);
  return json::problems_error({{"type", "must be one of: listen, patchSessionResult"}});
}

std::string write_refusal(const Error& why) {
  return json::to_text(json::object{{"type", "error"}, {"code", why.reason}, {"message", why.message}});
}

// ---- what a product is told ----

bool ProductTalk::wants(std::string_view subscription) const {
  return !wishes_.subscriptions || wishes_.subscriptions->contains(std::string(subscription));
}

std::string ProductTalk::listen_to(std::optional<std::set<std::string>> subscriptions) {
  wishes_.subscriptions = std::move(subscriptions);
  return greeting();
}

std::string ProductTalk::greeting() const {
  json::object out{{"type", "listening"}, {"subscriptionIdentifiers", nullptr}, {"events", wishes_.events}};
  if (wishes_.subscriptions) {
    json::array& list = out["subscriptionIdentifiers"].emplace_array();
    for (const std::string& each : *wishes_.subscriptions) list.emplace_back(each);
  }
  return json::to_text(out);
}

std::optional<std::string> ProductTalk::write_detection_seen(const DetectionSeen& seen) {
  json::value id = nullptr;
  if (!seen.stream_id.empty()) id = seen.stream_id;
  if (!wants(seen.detection.subscription.text())) {
    if (++unheard_ < kPositionEvery || id.is_null()) return std::nullopt;
    unheard_ = 0;
    return write_position(seen.stream_id);
  }
  unheard_ = 0;
  json::object out{{"type", "detection"}, {"streamId", std::move(id)}};
  for (auto& member : write_detection(seen.detection)) out[member.key()] = std::move(member.value());
  return json::to_text(out);
}

std::optional<std::string> ProductTalk::write(const Notice& notice) {
  if (const auto* seen = std::get_if<DetectionSeen>(&notice)) return write_detection_seen(*seen);
  if (const auto* from = std::get_if<ListeningFrom>(&notice)) return write_position(from->stream_id);
  if (std::holds_alternative<DetectionsLost>(notice)) return json::to_text(json::object{{"type", "gap"}});
  if (const auto* patch = std::get_if<SessionPatched>(&notice))
    return json::to_text(json::object{{"type", "patchSession"}, {"sessionId", patch->session}, {"data", patch->data}});
  const auto& event = std::get<ClusterEvent>(notice);
  const json::value* of = event.type == "worker:detection_result" ? event.payload.if_contains("cameraId") : nullptr;
  if (!wishes_.events || (of != nullptr && of->is_string() && !wants(of->get_string()))) return std::nullopt;
  return json::to_text(json::object{{"type", "event"}, {"event", event.type}, {"payload", event.payload}});
}

}  // namespace weir::cluster
