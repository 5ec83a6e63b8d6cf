// BaseUrl: where a service is asked, and what its name was last resolved to.
// Loop thread only.
#pragma once

#include "weir/base/result.hpp"

#include <boost/asio/ip/tcp.hpp>

#include <memory>
#include <string>
#include <vector>

namespace weir::net {

struct BaseUrl {
  bool tls = false;
  std::string host, port, prefix;
  std::string name;  // "host:port", as the Host header and messages say it
  std::vector<boost::asio::ip::tcp::endpoint> known = {};

  bool same(const BaseUrl& other) const { return tls == other.tls && name == other.name && prefix == other.prefix; }
};
using BaseUrls = std::vector<std::shared_ptr<BaseUrl>>;

// "http://a:8080, http://b:8080": addresses of one and the same service.
Result<BaseUrls> parse_bases(std::string_view urls);

}  // namespace weir::net
