#include "address.hpp"

#include <boost/url/parse.hpp>
#include <boost/url/url.hpp>

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <mutex>

namespace weir::ffmpeg {

namespace {
using restart::StreamErrorCode;

int default_port(const std::string& scheme) {
  if (scheme == "rtsp") return 554;
  if (scheme == "rtsps") return 322;
  return scheme == "https" ? 443 : 80;
}

// The rule for literal addresses is the camera's own; here it judges what a name turned out to mean.
std::string address_problem(const std::string& literal, bool loopback) {
  camera::Config config;
  config.rtsp_url = Secret("rtsp://" + bracketed(literal) + "/");
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

// Which of a name's addresses could not be reached last, by name and port: a source lives for one dial only, and the
// next one goes on from there. Any thread.
class Turns {
 public:
  std::string next(const Address& address, const std::vector<std::string>& literals) {
    std::lock_guard guard(mutex_);
    auto failed = failed_.find(place(address));
    if (failed == failed_.end()) return literals.front();
    auto at = std::ranges::find(literals, failed->second);
    return at == literals.end() || std::next(at) == literals.end() ? literals.front() : *std::next(at);
  }
  void failed(const Address& address) {
    std::lock_guard guard(mutex_);
    failed_[place(address)] = address.literal;
  }

 private:
  static std::string place(const Address& address) { return fmt::format("{} {}", address.host, address.port); }
  std::mutex mutex_;
  std::map<std::string, std::string> failed_;
};

Turns& turns() {
  static Turns all;
  return all;
}
}  // namespace

Result<std::vector<std::string>> system_lookup(const std::string& host) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  in6_addr any{};
  if (inet_pton(AF_INET, host.c_str(), &any) == 1 || inet_pton(AF_INET6, host.c_str(), &any) == 1)
    hints.ai_flags = AI_NUMERICHOST;
  addrinfo* found = nullptr;
  int failed = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (failed != 0)
    return stream_failure(StreamErrorCode::dns_failed,
                          fmt::format("the name {} does not resolve: {}", host, gai_strerror(failed)));
  std::vector<std::string> literals;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next)
    if (each->ai_family == AF_INET || each->ai_family == AF_INET6) literals.push_back(text_of(*each));
  freeaddrinfo(found);
  return literals;
}

std::string scheme_of(const boost::urls::url_view& url) {
  std::string scheme(url.scheme());
  std::ranges::transform(scheme, scheme.begin(), [](unsigned char c) { return std::tolower(c); });
  return scheme;
}

int port_of(const Secret& url) {
  auto parsed = boost::urls::parse_uri(url.reveal());
  if (!parsed) return 0;
  return parsed->has_port() ? parsed->port_number() : default_port(scheme_of(*parsed));
}

Result<Address> resolve_by(const Lookup& lookup, const Secret& url, bool loopback) {
  auto parsed = boost::urls::parse_uri(url.reveal());
  if (!parsed || parsed->encoded_host().empty())
    return stream_failure(StreamErrorCode::url_refused, "the camera's URL cannot be read as a URL");
  // FFmpeg would cut longer ones off and present something else.
  if (parsed->encoded_userinfo().size() > 127)
    return stream_failure(StreamErrorCode::url_refused, "user and password are longer than 127 characters");
  Address address;
  address.host = parsed->host_address();
  address.port = port_of(url);
  TRY(literals, lookup(address.host));
  // All answers are judged, not only the one that is used: a name that also leads to an address which is refused is
  // not a camera's.
  for (const std::string& literal : literals)
    if (std::string problem = address_problem(literal, loopback); !problem.empty())
      return stream_failure(StreamErrorCode::url_refused, problem);
  if (literals.empty())
    return stream_failure(StreamErrorCode::dns_failed, fmt::format("the name {} has no address", address.host));
  address.literal = turns().next(address, literals);
  return address;
}

Result<Address> resolve(const Secret& url, bool loopback) { return resolve_by(system_lookup, url, loopback); }

void after_dial(const Address& address, const Error& error, bool connected) {
  bool unreachable = error.reason == restart::to_string(StreamErrorCode::tcp_refused) ||
                     error.reason == restart::to_string(StreamErrorCode::tcp_timeout);
  if (unreachable && !connected) turns().failed(address);
}

std::string bracketed(const std::string& host) {
  return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

Secret url_at(const Secret& url, const Address& address) {
  boost::urls::url at(url.reveal());
  at.set_scheme(scheme_of(at));
  at.set_host_address(address.literal);
  return Secret(std::string(at.buffer()));
}

}  // namespace weir::ffmpeg
