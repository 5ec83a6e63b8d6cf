#include "weir/http_bus/http_bus.hpp"

#include "weir/base/json.hpp"

#include <fstream>

namespace weir::http_bus {

namespace asio = boost::asio;

namespace {

std::string item_text(const event::Event& event) {
  auto quoted = [](const std::string& text) { return json::to_text(json::value(text)); };
  std::string out = fmt::format(R"({{"topic":{},"routing_key":{},"event_id":{},)", quoted(event.topic),
                                quoted(event.routing_key), quoted(event.event_id));
  if (event.stamp)
    fmt::format_to(std::back_inserter(out), R"("camera_uuid":{},"lease_version":{},)",
                   quoted(event.stamp->camera.str()), event.stamp->version.n);
  return out + "\"payload\":" + event.payload + "}";
}

std::optional<Instant> earliest_deadline(std::span<const event::Event> events) {
  std::optional<Instant> earliest;
  for (const event::Event& event : events)
    if (event.stamp) earliest = earliest ? std::min(*earliest, event.stamp->deadline) : event.stamp->deadline;
  return earliest;
}

Error bad_answer() {
  return {Errc::unavailable, "bad_answer", "the control plane's answer cannot be read; nothing is known"};
}

// The answers must be those of exactly the events that were sent, in their order.
Status read_answers(const std::string& body, std::span<const event::Event> events, std::vector<Confirmation>& out) {
  auto parsed = json::parse_text(body);
  const json::value* items = parsed && parsed->is_object() ? parsed->get_object().if_contains("items") : nullptr;
  if (items == nullptr || !items->is_array() || items->get_array().size() != events.size()) return bad_answer();
  for (size_t i = 0; i < events.size(); ++i) {
    const json::object* item = items->get_array()[i].if_object();
    const json::value* id = item != nullptr ? item->if_contains("event_id") : nullptr;
    const json::value* result = item != nullptr ? item->if_contains("result") : nullptr;
    if (id == nullptr || result == nullptr || *id != json::value(events[i].event_id)) return bad_answer();
    if (*result == "accepted") out.push_back(Confirmation::accepted);
    else if (*result == "duplicate") out.push_back(Confirmation::duplicate);
    else if (*result == "stale") out.push_back(Confirmation::stale);
    else return bad_answer();
  }
  return ok();
}

Result<DeliveredEvent> read_delivered(const net::StreamedEvent& event) {
  TRY(parsed, json::parse_text(event.data));
  const json::object* data = parsed.if_object();
  const json::value* key = data != nullptr ? data->if_contains("routing_key") : nullptr;
  const json::value* payload = data != nullptr ? data->if_contains("payload") : nullptr;
  if (key == nullptr || !key->is_string() || payload == nullptr) return bad_answer();
  return DeliveredEvent{{event.event, std::string(key->get_string()), {}, json::to_text(*payload)}, event.id};
}

Error stream_error(const std::string& data) {
  Error error{Errc::unavailable, "stream_ended", "the control plane ended the stream"};
  if (auto parsed = json::parse_text(data); parsed && parsed->is_object()) {
    const json::object& said = parsed->get_object();
    if (const auto* code = said.if_contains("code"); code != nullptr && code->is_string())
      error.reason = std::string(code->get_string());
    if (const auto* message = said.if_contains("message"); message != nullptr && message->is_string())
      error.message = std::string(message->get_string());
  }
  return error;
}

// A refusal by a proxy, or by another server, says nothing about the events: they are sent again later. But where the
// request is too large for a proxy on the way, a smaller one may pass.
Error refusal(const net::ClientResponse& response) {
  Error error = net::response_error(response);
  bool in_our_words = error.reason != fmt::format("http_{}", response.status);
  if (!in_our_words && error.code != Errc::too_large) error.code = Errc::unavailable;
  return error;
}

}  // namespace

Result<std::unique_ptr<HttpBus>> HttpBus::create(asio::io_context& io, Config config) {
  TRY(client, net::HttpClient::create(io, config.base_url, {.forget_unsent = true, .ca_file = config.ca_file}));
  return std::unique_ptr<HttpBus>(new HttpBus(std::move(config), std::move(client)));
}

asio::awaitable<Status> HttpBus::send(std::span<const event::Event> events, std::string body,
                                      std::vector<Confirmation>& answers) {
  net::ClientRequest request;
  request.method = net::Method::post;
  request.target = "/v1/events/batch";
  request.body = std::move(body);
  request.bearer = config_.token;
  request.timeout = config_.timeout;
  request.replayable = true;  // event ids make a second time harmless
  request.write_by = earliest_deadline(events);
  Status read = ok();
  request.usable = [&](const net::ClientResponse& response) {
    if (response.status == 200) return bool(read = read_answers(response.body, events, answers));
    read = refusal(response);
    return !net::says_nothing(response);
  };
  CO_TRY(response, co_await client_.send(std::move(request)));
  co_return read;
}

// A file that is missing or empty changes nothing: the token that was read last may still be good.
void HttpBus::read_token_file() {
  std::string word;
  std::ifstream(config_.token_file) >> word;
  if (!word.empty()) config_.token = Secret(std::move(word));
}

asio::awaitable<Result<std::vector<Confirmation>>> HttpBus::publish(std::vector<event::Event> events) {
  if (!config_.token_file.empty()) read_token_file();
  std::vector<Confirmation> answers;
  answers.reserve(events.size());
  for (size_t begin = 0; begin < events.size();) {
    std::string body = R"({"items":[)";
    size_t end = begin;
    while (end < events.size() && end - begin < config_.items_max) {
      std::string item = item_text(events[end]);
      if (end > begin && body.size() + item.size() > config_.body_bytes_max) break;
      if (end > begin) body += ',';
      body += item;
      ++end;
    }
    body += "]}";
    CO_TRY(sent, co_await send(std::span(events).subspan(begin, end - begin), std::move(body), answers));
    begin = end;
  }
  co_return std::move(answers);
}

asio::awaitable<Status> HttpBus::subscribe(Subscription subscription,
                                           std::function<bool(const DeliveredEvent&)> each) {
  net::ClientRequest request;
  request.target = "/v1/events?pattern=" + percent_encode(subscription.pattern);
  if (!subscription.after.empty()) request.target += "&after=" + percent_encode(subscription.after);
  request.bearer = config_.token;
  request.timeout = config_.timeout;
  request.usable = [](const net::ClientResponse& response) {
    if (response.status != 200) return !net::says_nothing(response);
    auto type = response.headers.find("content-type");
    return type != response.headers.end() && type->second.starts_with("text/event-stream");
  };
  std::optional<Error> ended;
  bool gap = false, enough = false;
  Status followed = co_await client_.follow(std::move(request), config_.silence, [&](const net::StreamedEvent& event) {
    if (event.progress) {
      if (subscription.progress) subscription.progress(event.id);
      return true;
    }
    if (event.event == "gap") {
      gap = true;
      return true;
    }
    if (event.event == "error") {
      ended = stream_error(event.data);
      return false;
    }
    auto delivered = read_delivered(event);
    if (!delivered) {
      ended = std::move(delivered).error();
      return false;
    }
    delivered->after_gap = std::exchange(gap, false);
    enough = !each(*delivered);
    return !enough;
  });
  if (ended) co_return *std::move(ended);
  if (!followed || enough) co_return followed;
  co_return Error{Errc::unavailable, "stream_ended", "the control plane ended the stream"};
}

}  // namespace weir::http_bus
