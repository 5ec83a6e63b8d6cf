#include "address.hpp"

#include <boost/url/parse.hpp>
#include <boost/url/url.hpp>

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>

namespace weir::ffmpeg {

namespace {
using restart::StreamErrorCode;

int default_port(std::string_view scheme) {
  if (scheme == "rtsp") return 554;
  if (scheme == "rtsps") return 322;
  return scheme == "https" ? 443 : 80;
}

// The rule for literal addresses is the camera's own; here it judges what a name turned out to mean.
std::string address_problem(const std::string& literal, bool loopback) {
  camera::Config config;
  bool v6 = literal.find(':') != std::string::npos;
  config.rtsp_url = Secret(v6 ? "rtsp://[" + literal + "]/" : "rtsp://" + literal + "/");
  auto problems = camera::rule_problems(config, camera::Rules{loopback});
  return problems.empty() ? "" : "the camera's address " + problems.front().what;
}

std::string text_of(const addrinfo& found) {
  char text[INET6_ADDRSTRLEN] = {};
  const void* bytes = found.ai_family == AF_INET6
                          ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6*>(found.ai_addr)->sin6_addr)
                          : &reinterpret_cast<const sockaddr_in*>(found.ai_addr)->sin_addr;
  inet_ntop(found.ai_family, bytes, text, sizeof text);
  return text;
}
}  // namespace

Result<Address> resolve(const Secret& url, bool loopback) {
  auto parsed = boost::urls::parse_uri(url.reveal());
  if (!parsed || parsed->encoded_host().empty())
    return stream_failure(StreamErrorCode::url_refused, "the camera's URL is not one");
  // FFmpeg would cut longer ones off and present something else.
  if (parsed->encoded_userinfo().size() > 127)
    return stream_failure(StreamErrorCode::url_refused, "user and password are longer than 127 characters");
  Address address;
  address.host = parsed->host_address();
  address.port = parsed->has_port() ? parsed->port_number() : default_port(parsed->scheme());
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  in6_addr any{};
  if (inet_pton(AF_INET, address.host.c_str(), &any) == 1 || inet_pton(AF_INET6, address.host.c_str(), &any) == 1)
    hints.ai_flags = AI_NUMERICHOST;
  addrinfo* found = nullptr;
  int failed = getaddrinfo(address.host.c_str(), nullptr, &hints, &found);
  if (failed != 0)
    return stream_failure(StreamErrorCode::dns_failed,
                          fmt::format("the name {} does not resolve: {}", address.host, gai_strerror(failed)));
  // All answers are judged, not only the one that is used: a name that also points inside is not a camera's.
  std::string problem;
  for (const addrinfo* each = found; each != nullptr && problem.empty(); each = each->ai_next) {
    if (each->ai_family != AF_INET && each->ai_family != AF_INET6) continue;
    std::string literal = text_of(*each);
    problem = address_problem(literal, loopback);
    if (address.literal.empty()) address.literal = literal;
  }
  freeaddrinfo(found);
  if (!problem.empty()) return stream_failure(StreamErrorCode::url_refused, problem);
  if (address.literal.empty())
    return stream_failure(StreamErrorCode::dns_failed, fmt::format("the name {} has no address", address.host));
  return address;
}

Secret url_at(const Secret& url, const Address& address) {
  boost::urls::url at(url.reveal());
  at.set_host_address(address.literal);
  return Secret(std::string(at.buffer()));
}

}  // namespace weir::ffmpeg
