#include "base_url.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace weir::net {

namespace {

Error url_error(std::string_view problem) {
  return Error{Errc::invalid, "bad_url", fmt::format("the server's URL {}", problem), {{"field", "url"}}};
}

Result<BaseUrl> parse_base(std::string_view url) {
  BaseUrl out;
  out.tls = url.starts_with("https://") || url.starts_with("wss://");
  if (!out.tls && !url.starts_with("http://") && !url.starts_with("ws://"))
    return url_error("must start with http:// or https://");
  url.remove_prefix(url.find("//") + 2);
  for (unsigned char c : url)
    if (c <= 0x20 || c == 0x7F || c == '@' || c == '?' || c == '#')
      return url_error("must be http://host:port or https://host:port with at most a path behind it");
  size_t slash = url.find('/');
  std::string_view authority = url.substr(0, slash);
  if (slash != std::string_view::npos) out.prefix = url.substr(slash);
  while (out.prefix.ends_with('/')) out.prefix.pop_back();
  size_t bracket = authority.rfind(']');
  size_t colon = authority.find(':', bracket == std::string_view::npos ? 0 : bracket);
  out.host = authority.substr(0, colon);
  std::string_view usual = out.tls ? "443" : "80";
  out.port = colon == std::string_view::npos ? usual : authority.substr(colon + 1);
  if (out.host.starts_with('[') && out.host.ends_with(']')) out.host = out.host.substr(1, out.host.size() - 2);
  unsigned port = 0;
  auto [end, bad] = std::from_chars(out.port.data(), out.port.data() + out.port.size(), port);
  if (out.host.empty()) return url_error("names no host");
  if (bad != std::errc() || end != out.port.data() + out.port.size() || port == 0 || port > 65535)
    return url_error("must have a port between 1 and 65535");
  out.name = authority;
  return out;
}

}  // namespace

Result<BaseUrls> parse_bases(std::string_view urls) {
  BaseUrls out;
  for (size_t at = 0; at <= urls.size();) {
    size_t comma = std::min(urls.find(',', at), urls.size());
    std::string_view one = urls.substr(at, comma - at);
    while (one.starts_with(' ')) one.remove_prefix(1);
    while (one.ends_with(' ')) one.remove_suffix(1);
    TRY(base, parse_base(one));
    out.push_back(std::make_shared<BaseUrl>(std::move(base)));
    at = comma + 1;
  }
  return out;
}

}  // namespace weir::net
