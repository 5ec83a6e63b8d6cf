#include "weir/http_plane/stream_plane.hpp"

#include "answer_fields.hpp"

namespace weir::http_plane {

namespace asio = boost::asio;

namespace {

constexpr Duration kSilence = 45s;  // a feed that says nothing for this long is gone; it is kept alive every 15 s
constexpr std::string_view kOrders = "publication.ordered.#";

json::object object_of(const json::value& v, std::string_view name) {
  const json::value* found = field(v, name);
  return found != nullptr && found->is_object() ? found->get_object() : json::object();
}
WallTime time_of(const json::value& v, std::string_view name) {
  return from_iso(text_of(v, name)).value_or(WallTime{});
}

// An answer is the view with the record's own fields in it; where nobody has told anything, there is no view.
Result<StreamRecord> read_record(const json::value& answer) {
  StreamRecord out{.id = SubjectId::trusted(text_of(answer, "stream_id")),
                   .tenant = TenantId::trusted(text_of(answer, "tenant_id")),
                   .site = SiteId::trusted(text_of(answer, "site_id")),
                   .wishes = object_of(answer, "wishes"),
                   .memory = object_of(answer, "memory"),
                   .told_at = time_of(answer, "told_at"),
                   .holder = RunnerId::trusted(text_of(answer, "holder"))};
  if (out.id.empty() || out.tenant.empty()) return bad_answer();
  if (out.told_at == WallTime{}) return out;
  out.view = answer.get_object();
  for (const char* own : {"tenant_id", "site_id", "wishes", "memory", "told_at", "holder"}) out.view.erase(own);
  return out;
}

std::string target_of(const SubjectId& id, std::string_view rest = "") {
  return fmt::format("/v1/streams/{}{}", percent_encode(id.str()), rest);
}

std::string batch_text(const event::Event& event) {
  auto quoted = [](const std::string& text) { return json::to_text(json::value(text)); };
  std::string out = fmt::format(R"({{"items":[{{"topic":{},"routing_key":{},"event_id":{},)", quoted(event.topic),
                                quoted(event.routing_key), quoted(event.event_id));
  if (event.stamp)
    fmt::format_to(std::back_inserter(out), R"("stream_id":{},"lease_version":{},)", quoted(event.stamp->camera.str()),
                   event.stamp->version.n);
  return out + "\"payload\":" + event.payload + "}]}";
}

Status read_confirmation(const std::string& body, const event::Event& event) {
  auto parsed = json::parse_text(body);
  const json::value* items = parsed ? field(*parsed, "items") : nullptr;
  if (items == nullptr || !items->is_array() || items->get_array().size() != 1) return bad_answer();
  const json::value& only = items->get_array()[0];
  std::string result = text_of(only, "result");
  if (text_of(only, "event_id") != event.event_id) return bad_answer();
  if (result == "stale") return stale_word();
  return result == "accepted" || result == "duplicate" ? ok() : Status(bad_answer());
}

Error feed_ended(const std::string& data) {
  Error error{Errc::unavailable, "stream_ended", "the control plane ended the feed of orders"};
  auto said = json::parse_text(data);
  if (!said) return error;
  if (std::string code = text_of(*said, "code"); !code.empty()) error.reason = code;
  if (std::string message = text_of(*said, "message"); !message.empty()) error.message = message;
  return error;
}

}  // namespace

Result<std::unique_ptr<HttpStreamPlane>> HttpStreamPlane::create(asio::io_context& io, Clock& clock, Config config) {
  TRY(events, net::HttpClient::create(io, config.url, {.forget_unsent = true, .ca_file = config.ca_file}));
  TRY(talk, PlaneTalk::create(io, clock, std::move(config)));
  return std::unique_ptr<HttpStreamPlane>(new HttpStreamPlane(std::move(talk), std::move(events)));
}

Status HttpStreamPlane::use(const std::string& url, Secret api_key) {
  TRY(known, talk_->use(url, std::move(api_key)));
  return events_.use(url);
}

// ---- records ----

asio::awaitable<Result<StreamRecord>> HttpStreamPlane::record(SubjectId id) {
  StreamRecord out;
  PlaneTalk::Read read = [&](json::value& answer) -> Status {
    TRY(record, read_record(answer));
    out = std::move(record);
    return ok();
  };
  Status heard = co_await talk_->ask(net::Method::get, target_of(id), {}, talk_->config().patience, std::move(read),
                                     true, PlaneTalk::Refusals::some_but_missing);
  if (heard) co_return std::move(out);
  Error why = std::move(heard).error();
  // Another server's 404 must not be read as "nobody has wished anything".
  if (why.code == Errc::not_found && why.reason != "stream_not_found") why.code = Errc::unavailable;
  co_return why;
}

asio::awaitable<Result<std::vector<StreamRecord>>> HttpStreamPlane::records() {
  CO_TRY(items, co_await talk_->list("/v1/streams?limit=200"));
  std::vector<StreamRecord> out;
  out.reserve(items.size());
  for (const json::value& item : items) {
    CO_TRY(record, read_record(item));
    out.push_back(std::move(record));
  }
  co_return std::move(out);
}

asio::awaitable<Result<Nothing>> HttpStreamPlane::tell(StreamTold told) {
  json::object body{{"runner_id", told.by.runner.str()},
                    {"boot_id", told.by.boot.str()},
                    {"version", told.version.n},
                    {"memory", std::move(told.memory)},
                    {"view", std::move(told.view)}};
  PlaneTalk::Read read = [](json::value&) { return ok(); };
  co_return co_await talk_->ask(net::Method::post, target_of(told.id, "/told"), json::to_text(body),
                                talk_->config().patience, std::move(read));
}

// ---- events ----

asio::awaitable<Result<Nothing>> HttpStreamPlane::publish(event::Event event) {
  CO_TRY(token, co_await talk_->runner_token());
  net::ClientRequest request{.method = net::Method::post, .target = "/v1/events/batch", .body = batch_text(event),
                             .bearer = token, .timeout = talk_->config().patience, .replayable = true};
  if (event.stamp) request.write_by = event.stamp->deadline;
  Status heard = ok();
  request.usable = [&](const net::ClientResponse& answer) {
    bool good = answer.status == 200;
    heard = good ? read_confirmation(answer.body, event) : Status(net::response_error(answer));
    return good ? heard || heard.error().code == Errc::conflict : !net::says_nothing(answer);
  };
  CO_TRY(answered, co_await events_.send(std::move(request)));
  if (!heard && heard.error().code == Errc::unauthorized) talk_->refused(token);
  co_return heard;
}

Status HttpStreamPlane::take(const net::StreamedEvent& frame, const std::function<void(const StreamOrder&)>& each) {
  if (frame.event == "error") return feed_ended(frame.data);
  if (frame.event == "gap") {
    cursor_.clear();
    return Error{Errc::unavailable, "orders_missing",
                 "orders may have been given that the control plane no longer has"};
  }
  if (!frame.id.empty()) cursor_ = frame.id;
  if (frame.progress) return ok();
  TRY(parsed, json::parse_text(frame.data));
  const json::value* said = field(parsed, "payload");
  if (said == nullptr) return bad_answer();
  StreamOrder order{SubjectId::trusted(text_of(*said, "stream_id")), text_of(*said, "order")};
  const json::value* on = field(*said, "on");
  if (on != nullptr && on->is_bool()) order.forward = on->get_bool();
  std::string to = text_of(*said, "runner_id");
  bool ours = to.empty() || to == talk_->config().runner.str();
  if (ours && !order.id.empty()) each(order);
  return ok();
}

asio::awaitable<Status> HttpStreamPlane::follow(std::function<void(const StreamOrder&)> each) {
  CO_TRY(token, co_await talk_->runner_token());
  net::ClientRequest request{.target = fmt::format("/v1/events?pattern={}", percent_encode(kOrders)), .bearer = token,
                             .timeout = talk_->config().patience};
  if (!cursor_.empty()) request.target += "&after=" + percent_encode(cursor_);
  request.usable = [](const net::ClientResponse& head) {
    if (head.status != 200) return !net::says_nothing(head);
    auto type = head.headers.find("content-type");
    return type != head.headers.end() && type->second.starts_with("text/event-stream");
  };
  Status taken = ok();
  Status followed = co_await events_.follow(std::move(request), kSilence, [&](const net::StreamedEvent& frame) {
    taken = take(frame, each);
    return bool(taken);
  });
  if (!taken) co_return std::move(taken).error();
  if (!followed && followed.error().code == Errc::unauthorized) talk_->refused(token);
  if (!followed) co_return std::move(followed).error();
  co_return Error{Errc::unavailable, "stream_ended", "the control plane ended the feed of orders"};
}

}  // namespace weir::http_plane
