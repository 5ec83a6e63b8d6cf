// Bodies that pass through piece by piece: a request's into its handler, an answer's out of its source.
#include "response_head.hpp"
#include "upload.hpp"
#include "weir/base/log.hpp"

#include <fmt/format.h>

namespace weir::net {

namespace asio = boost::asio;

// ---- requests ----
Error Connection::Upload::problem() const {
  const auto& refusal = of_.refusal_;
  if (!refusal) return Error{Errc::unavailable, "client_gone", "the client went away within its request"};
  return Error{refusal->status == 413 ? Errc::too_large : Errc::invalid, std::string(refusal->code),
               std::string(refusal->message)};
}

asio::awaitable<Result<std::string>> Connection::Upload::read_some() {
  Read more = Read::complete;
  while (more == Read::complete && !of_.refusal_) {
    if (of_.in_.begin < of_.in_.end && !of_.parser_.done()) of_.parse();
    if (of_.parser_.refusal()) more = of_.refused();
    if (!of_.request_.body.empty()) co_return std::exchange(of_.request_.body, {});
    if (of_.parser_.done()) co_return std::string();
    if (of_.refusal_) break;
    of_.enter(Phase::reading, of_.shared_->limits.read_timeout);
    more = co_await of_.read_more();
    of_.phase_ = Phase::handling;
    of_.deadline_ = Instant::max();
  }
  co_return problem();
}

// ---- answers ----
asio::awaitable<Result<std::string>> Connection::next_piece(BodySource& source) {
  phase_ = Phase::handling;
  deadline_ = Instant::max();
  std::exception_ptr thrown;
  try {
    co_return co_await source.next();
  } catch (...) {
    thrown = std::current_exception();
  }
  co_return Error{Errc::internal, closed_hard_ ? "stopping" : "internal", what(thrown)};
}

// Once the head is out, closing the connection too early is the only way to say that the rest does not come.
asio::awaitable<bool> Connection::write_source(Response& response, bool keep_alive) {
  bool bodiless = request_.method == Method::head || !has_body(response.status);
  BodySource& source = response.source;
  bool head_sent = co_await write_response(response, keep_alive);
  if (!head_sent || bodiless) co_return head_sent;
  bool chunked = !source.bytes && parser_.http11();
  std::uint64_t left = source.bytes.value_or(UINT64_MAX);
  error_code failed;
  for (;;) {
    Result<std::string> piece = co_await next_piece(source);
    if (shared_->abandoned) co_return false;
    bool end = piece && piece->empty(), wrong = piece && (piece->size() > left || (end && source.bytes && left > 0));
    if (!piece || wrong) {
      log::warn("http.body_failed", "an answer was cut off: its source failed")
          .with("request_id", request_.request_id)
          .with("why", piece ? "it yielded another length than it had declared" : piece.error().message);
      torn_ = true;
      co_return false;
    }
    left -= piece->size();
    head_.clear();
    if (chunked) fmt::format_to(std::back_inserter(head_), "{:x}\r\n", piece->size());
    if (chunked) *piece += "\r\n";  // behind the last chunk, whose size is 0, this ends the body
    enter(Phase::writing, shared_->limits.write_timeout);
    co_await socket_.write_all(head_, *piece, failed);
    if (end || failed) co_return !failed;
  }
}

}  // namespace weir::net
