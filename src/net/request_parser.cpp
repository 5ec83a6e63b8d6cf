#include "request_parser.hpp"

#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>

#include <optional>

namespace weir::net {

namespace http = boost::beast::http;
using boost::system::error_code;

namespace {
constexpr size_t kTargetBytesMax = 8 << 10;
constexpr size_t kBodyReserveMax = 64 << 10;  // a declared length is a claim, not yet a reason to allocate
// What the shortest end of a chunked body takes. Beast's parser asserts that it never sees less of a last chunk.
constexpr size_t kLastChunkBytes = 5;

std::string_view view(boost::beast::string_view text) { return {text.data(), text.size()}; }

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  return out;
}

Method method_from(std::string_view word) {
  for (Method each : {Method::get, Method::head, Method::post, Method::put, Method::patch, Method::del,
                      Method::options})
    if (to_string(each) == word) return each;
  return Method::other;
}

Refusal refusal_for(const error_code& failed) {
  if (failed == http::error::body_limit) return {413, "too_large", "the body is larger than this server accepts"};
  if (failed == http::error::header_limit)
    return {431, "header_too_large", "the header is larger than this server accepts"};
  if (failed == http::error::bad_target) return {400, "bad_request", "path: the request target is malformed"};
  return {400, "bad_request", "the request is malformed"};
}

class Message final : public http::basic_parser<true> {
 public:
  Message(const ServerLimits& limits, Request& into)
      : header_bytes_max_(limits.header_bytes_max), into_(into), body_bytes_max_(limits.body_bytes_max) {
    header_limit(static_cast<std::uint32_t>(std::min<size_t>(limits.header_bytes_max, UINT32_MAX)));
    body_limit(boost::none);  // Beast would judge before it is known which route is asked
  }

  void begin_body(std::uint64_t bytes_max) {
    body_bytes_max_ = bytes_max;
    auto declared = content_length();
    if (declared && *declared > bytes_max) refusal = refusal_for(http::error::body_limit);
  }

  std::optional<Refusal> refusal;
  std::string target;
  bool http11 = false;
  bool expects_continue = false;

 private:
  // An error is noted with its own words before Beast is told to stop.
  void refuse(Refusal why, error_code& failed) {
    refusal = why;
    failed = http::error::bad_value;
  }

  // Beast bounds what it holds, not what it has handed over; fields that trickle in are counted here.
  bool count(size_t bytes, error_code& failed) {
    header_bytes_ += bytes;
    if (header_bytes_ > header_bytes_max_) failed = http::error::header_limit;
    return !failed;
  }

  void on_request_impl(http::verb, boost::beast::string_view method, boost::beast::string_view raw, int version,
                       error_code& failed) override {
    into_.method = method_from(view(method));
    http11 = version == 11;
    if (raw.size() > kTargetBytesMax) return refuse({414, "target_too_long", "path: the target is too long"}, failed);
    if (count(method.size() + raw.size() + 12, failed)) target = view(raw);
  }

  void on_field_impl(http::field, boost::beast::string_view name, boost::beast::string_view value,
                     error_code& failed) override {
    if (!count(name.size() + value.size() + 4, failed) || header_seen_) return;  // trailers are counted and dropped
    auto [place, fresh] = into_.headers.try_emplace(lower(view(name)), view(value));
    if (fresh) return;
    if (place->first == "host") return refuse({400, "bad_request", "the request has two Host headers"}, failed);
    place->second += place->first == "cookie" ? "; " : ", ";
    place->second += view(value);
  }

  void on_header_impl(error_code& failed) override {
    header_seen_ = true;
    if (http11 && !into_.headers.contains("host"))
      return refuse({400, "bad_request", "the request has no Host header"}, failed);
    // Anything but plain chunks could be read differently by a proxy in front.
    if (into_.headers.contains("transfer-encoding") &&
        (!http11 || lower(into_.header("transfer-encoding")) != "chunked"))
      return refuse({400, "bad_request", "the only transfer encoding understood is chunked"}, failed);
    std::string expect = lower(into_.header("expect"));
    if (!expect.empty() && expect != "100-continue")
      return refuse({417, "expectation_failed", "the only expectation understood is 100-continue"}, failed);
    expects_continue = http11 && !expect.empty();
  }

  void on_body_init_impl(const boost::optional<std::uint64_t>& length, error_code&) override {
    if (length) into_.body.reserve(std::min<size_t>(*length, kBodyReserveMax));
  }
  size_t on_body_impl(boost::beast::string_view part, error_code& failed) override {
    body_bytes_ += part.size();
    if (body_bytes_ > body_bytes_max_)
      failed = http::error::body_limit;
    else
      into_.body.append(part.data(), part.size());
    return part.size();
  }
  void on_chunk_header_impl(std::uint64_t size, boost::beast::string_view, error_code& failed) override {
    if (size > body_bytes_max_ - std::min(body_bytes_, body_bytes_max_)) failed = http::error::body_limit;
  }
  size_t on_chunk_body_impl(std::uint64_t, boost::beast::string_view part, error_code& failed) override {
    return on_body_impl(part, failed);
  }
  void on_finish_impl(error_code&) override {}
  void on_response_impl(int, boost::beast::string_view, int, error_code&) override {}  // requests only

  const size_t header_bytes_max_;
  Request& into_;
  size_t header_bytes_ = 0;
  bool header_seen_ = false;
  std::uint64_t body_bytes_max_, body_bytes_ = 0;
};

}  // namespace

class RequestParser::Impl {
 public:
  std::optional<Message> message;
};

RequestParser::RequestParser(const ServerLimits& limits) : limits_(limits), impl_(std::make_unique<Impl>()) {}
RequestParser::~RequestParser() = default;

void RequestParser::reset(Request& into) { impl_->message.emplace(limits_, into); }

size_t RequestParser::feed(std::string_view bytes) {
  Message& message = *impl_->message;
  size_t used = 0;
  while (used < bytes.size() && !message.is_done() && !message.refusal) {
    std::string_view rest = bytes.substr(used);
    if (message.is_header_done() && message.chunked() && rest.size() < kLastChunkBytes) break;
    bool in_header = !message.is_header_done();
    error_code failed;
    used += message.put(boost::asio::buffer(rest.data(), rest.size()), failed);
    if (failed == http::error::need_more) break;
    if (failed && !message.refusal) message.refusal = refusal_for(failed);
    if (in_header && message.is_header_done()) break;
  }
  return used;
}

void RequestParser::begin_body(std::uint64_t bytes_max) { impl_->message->begin_body(bytes_max); }

const std::optional<Refusal>& RequestParser::refusal() const { return impl_->message->refusal; }
bool RequestParser::header_done() const { return impl_->message->is_header_done(); }
bool RequestParser::done() const { return impl_->message->is_done(); }
bool RequestParser::waits_for_continue() const { return impl_->message->expects_continue && header_done() && !done(); }
bool RequestParser::keep_alive() const { return impl_->message->keep_alive(); }
bool RequestParser::http11() const { return impl_->message->http11; }
std::string_view RequestParser::raw_target() const { return impl_->message->target; }

}  // namespace weir::net
