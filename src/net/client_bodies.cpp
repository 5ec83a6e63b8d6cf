#include "client_bodies.hpp"

#include <fmt/format.h>

namespace weir::net {

namespace asio = boost::asio;

namespace {
constexpr size_t kRefusalBytesMax = 16 << 10;

bool answered(ResponseParser& parser) { return parser.header_done() && parser.response().status >= 200; }

// Without a length or chunks nobody can tell the end of a body from a connection that broke.
bool framed(const ClientResponse& response) {
  return response.headers.contains("content-length") || response.headers.contains("transfer-encoding");
}

// Reads what the server says within the upload: an answer, or an end of the connection. Where nothing has come, reads
// nothing.
asio::awaitable<Status> hear(ClientLink& link, ResponseParser& parser) {
  Status heard = ok();
  while (heard && !answered(parser) && !parser.done() && link.readable()) heard = co_await link.read_step(parser);
  co_return heard;
}
}  // namespace

asio::awaitable<Uploaded> upload_body(const ClientRequest& request, ClientLink& link, ResponseParser& parser) {
  Uploaded out;
  std::uint64_t left = request.upload.bytes.value_or(UINT64_MAX);
  for (bool end = false; !end;) {
    link.disarm();
    Result<std::string> piece = co_await request.upload.next();
    link.set_deadline(request.timeout);
    out.passed.own = true;
    if (!piece) {
      out.passed.status = std::move(piece).error();
      co_return out;
    }
    end = piece->empty();
    if (piece->size() > left || (end && request.upload.bytes && left > 0)) {
      out.passed.status = Error{Errc::internal, "bad_source", "the upload has another length than was declared"};
      co_return out;
    }
    out.passed.own = false;
    left -= piece->size();
    std::string head;
    if (!request.upload.bytes) {
      head = fmt::format("{:x}\r\n", piece->size());
      *piece += "\r\n";
    }
    Status written = co_await link.write_part(head, *piece);
    Status heard = ok();
    if (!link.expired) heard = co_await hear(link, parser);
    if (answered(parser)) {
      out.whole = end && written;
      co_return out;
    }
    if (!written || !heard) {
      out.passed.status = !written ? std::move(written) : std::move(heard);
      co_return out;
    }
  }
  co_return out;
}

asio::awaitable<Passed> pour(const ClientRequest& request, ClientLink& link, ResponseParser& parser) {
  Passed out;
  ClientResponse& response = parser.response();
  if (!request.sink || response.body.empty()) co_return out;
  if (response.status / 100 != 2) {
    if (response.body.size() > kRefusalBytesMax)
      out.status = Error{Errc::too_large, "answer_too_large", "the server's refusal is larger than this client reads"};
    co_return out;
  }
  if (!framed(response)) {
    out.status = Error{Errc::unavailable, "bad_answer", "the server does not say where its answer ends"};
    co_return out;
  }
  link.disarm();
  std::string piece = std::exchange(response.body, {});
  out.status = co_await request.sink(std::move(piece));
  out.own = !out.status;
  co_return out;
}

}  // namespace weir::net
