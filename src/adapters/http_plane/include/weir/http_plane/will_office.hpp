// HttpWillOffice: the control plane as the office that carries out last wills, over HTTP. Loop thread only.
#pragma once

#include "weir/net/client.hpp"
#include "weir/ports/last_will.hpp"

namespace weir::http_plane {

class HttpWillOffice final : public WillOffice {
 public:
  // `urls`: one or several with commas between; `ca_file`: authorities besides the system's, for https.
  static Result<std::unique_ptr<WillOffice>> create(boost::asio::io_context& io, const std::string& urls,
                                                    const std::string& ca_file);
  HttpWillOffice(net::HttpClient client, int addresses) : client_(std::move(client)), addresses_(addresses) {}
  int addresses() const override { return addresses_; }
  boost::asio::awaitable<WillAnswer> carry_out(Testament testament) override;

 private:
  net::HttpClient client_;
  const int addresses_;
};

}  // namespace weir::http_plane
