#include "weir/http_plane/will_office.hpp"

#include "weir/base/json.hpp"
#include "weir/base/log.hpp"

#include <algorithm>

namespace weir::http_plane {

Result<std::unique_ptr<WillOffice>> HttpWillOffice::create(boost::asio::io_context& io, const std::string& urls,
                                                           const std::string& ca_file) {
  TRY(client, net::HttpClient::create(io, urls, {.ca_file = ca_file}));
  int addresses = 1 + static_cast<int>(std::ranges::count(urls, ','));
  return std::unique_ptr<WillOffice>(std::make_unique<HttpWillOffice>(std::move(client), addresses));
}

boost::asio::awaitable<WillAnswer> HttpWillOffice::carry_out(Testament testament) {
  net::ClientRequest request{.method = net::Method::post, .timeout = 1s, .replayable = true};
  request.target = fmt::format("/v1/runners/{}/release-all", percent_encode(testament.runner.str()));
  request.body = json::to_text(json::object{{"boot_id", testament.boot.str()}});
  request.headers.emplace_back("Authorization", "Will " + testament.will.reveal());
  // The answer of another server at one of the addresses says nothing about this will: then the next address is asked.
  request.usable = [](const net::ClientResponse& said) { return said.status < 300; };
  auto answer = co_await client_.send(std::move(request));
  if (!answer) co_return WillAnswer::none;
  if (answer->status < 300) {
    log::info("runner.will", "the last will was carried out").with("boot_id", testament.boot).with("answer", answer->body);
    co_return WillAnswer::carried_out;
  }
  co_return net::response_error(*answer).reason == "will_refused" ? WillAnswer::refused : WillAnswer::none;
}

}  // namespace weir::http_plane
