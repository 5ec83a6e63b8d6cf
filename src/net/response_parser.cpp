#include "response_parser.hpp"

#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>

namespace weir::net {

namespace http = boost::beast::http;
using boost::system::error_code;

namespace {
constexpr std::uint32_t kHeaderBytesMax = 64 << 10;
constexpr size_t kBodyReserveMax = 1 << 20;
constexpr size_t kLastChunkBytes = 5;  // as in RequestParser: less of a last chunk must not reach Beast

std::string lower(boost::beast::string_view text) {
  std::string out(text.data(), text.size());
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  return out;
}

Error answer_error(const error_code& failed) {
  if (failed == http::error::body_limit)
    return Error{Errc::too_large, "answer_too_large", "the server's answer is larger than this client accepts"};
  if (failed == http::error::partial_message)
    return Error{Errc::unavailable, "answer_cut", "the server closed the connection within its answer"};
  return Error{Errc::unavailable, "bad_answer", "the server's answer is not HTTP as this client knows it"};
}
}  // namespace

class ResponseParser::Impl final : public http::basic_parser<false> {
 public:
  Impl(size_t body_bytes_max, bool head_request) {
    header_limit(kHeaderBytesMax);
    body_limit(body_bytes_max);
    skip(head_request);
  }
  ClientResponse response;
  std::optional<Error> problem;

 private:
  void on_request_impl(http::verb, boost::beast::string_view, boost::beast::string_view, int, error_code&) override {}
  void on_response_impl(int code, boost::beast::string_view, int, error_code&) override { response.status = code; }
  void on_field_impl(http::field, boost::beast::string_view name, boost::beast::string_view value,
                     error_code& failed) override {
    // Beast bounds what it holds, not what it has handed over.
    header_bytes_ += name.size() + value.size() + 4;
    if (header_bytes_ > kHeaderBytesMax) failed = http::error::header_limit;
    if (failed || header_seen_) return;
    auto [place, fresh] = response.headers.try_emplace(lower(name), value.data(), value.size());
    if (!fresh) place->second.append(", ").append(value.data(), value.size());
  }
  void on_header_impl(error_code&) override { header_seen_ = true; }
  void on_body_init_impl(const boost::optional<std::uint64_t>& length, error_code&) override {
    if (length) response.body.reserve(std::min<size_t>(*length, kBodyReserveMax));
  }
  size_t on_body_impl(boost::beast::string_view part, error_code&) override {
    response.body.append(part.data(), part.size());
    return part.size();
  }
  void on_chunk_header_impl(std::uint64_t, boost::beast::string_view, error_code&) override {}
  size_t on_chunk_body_impl(std::uint64_t, boost::beast::string_view part, error_code& failed) override {
    return on_body_impl(part, failed);
  }
  void on_finish_impl(error_code&) override {}

  size_t header_bytes_ = 0;
  bool header_seen_ = false;
};

ResponseParser::ResponseParser(size_t body_bytes_max, bool head_request)
    : impl_(std::make_unique<Impl>(body_bytes_max, head_request)) {}
ResponseParser::~ResponseParser() = default;

size_t ResponseParser::feed(std::string_view bytes) {
  size_t used = 0;
  while (used < bytes.size() && !impl_->is_done() && !impl_->problem) {
    std::string_view rest = bytes.substr(used);
    if (impl_->is_header_done() && impl_->chunked() && rest.size() < kLastChunkBytes) break;
    error_code failed;
    used += impl_->put(boost::asio::buffer(rest.data(), rest.size()), failed);
    if (failed == http::error::need_more) break;
    if (failed) impl_->problem = answer_error(failed);
  }
  return used;
}

void ResponseParser::feed_end() {
  error_code failed = http::error::partial_message;
  if (impl_->got_some()) impl_->put_eof(failed);
  if (failed && !impl_->problem) impl_->problem = answer_error(failed);
}

bool ResponseParser::header_done() const { return impl_->is_header_done(); }
bool ResponseParser::done() const { return impl_->is_done(); }
bool ResponseParser::keep_alive() const { return impl_->keep_alive(); }
const std::optional<Error>& ResponseParser::problem() const { return impl_->problem; }
ClientResponse& ResponseParser::response() { return impl_->response; }

}  // namespace weir::net
