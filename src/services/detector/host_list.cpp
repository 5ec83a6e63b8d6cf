#include "weir/detector/host_list.hpp"

#include <boost/url/parse.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace weir::detector {

namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> out;
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = std::min(text.find(',', begin), text.size());
    std::string word = lower(text.substr(begin, end - begin));
    begin = end + 1;
    word.erase(0, word.find_first_not_of(' '));
    word.erase(word.find_last_not_of(' ') + 1);
    if (!word.empty()) out.push_back(std::move(word));
  }
  return out;
}

Error bad_url() {
  return {Errc::invalid, "bad_url", "the address must begin with http:// or https:// and name a host"};
}

}  // namespace

Result<WebPlace> web_place(const Secret& url) {
  auto parsed = boost::urls::parse_uri(url.reveal());
  if (!parsed || parsed->encoded_host().empty()) return bad_url();
  std::string scheme = lower(std::string(parsed->scheme()));
  if (scheme != "http" && scheme != "https") return bad_url();
  std::string path(parsed->encoded_path());
  if (!path.empty() && !path.starts_with('/')) return bad_url();  // "host:5x" is no port 5
  WebPlace place{.host = lower(std::string(parsed->encoded_host())), .port = std::string(parsed->port()),
                 .credentials = parsed->has_userinfo()};
  if (place.port.empty()) place.port = scheme == "https" ? "443" : "80";
  place.base = fmt::format("{}://{}:{}", scheme, place.host, place.port);
  place.path = path.empty() ? "/" : path;
  place.target = place.path;
  if (parsed->has_query()) place.target += "?" + std::string(parsed->encoded_query());
  return place;
}

Result<HostList> HostList::parse(std::string_view text) {
  HostList out;
  for (const std::string& word : words(text)) {
    std::string url = "http://" + word;  // what is parsed refers to it
    auto parsed = boost::urls::parse_uri(url);
    if (!parsed || parsed->has_userinfo() || parsed->encoded_host().empty() || !parsed->encoded_path().empty() ||
        parsed->has_query())
      return Error{Errc::invalid, "bad_host",
                   fmt::format("number {} of the hosts is no host, nor a host with a port", out.hosts_.size() + 1)};
    out.hosts_.push_back({std::string(parsed->encoded_host()), std::string(parsed->port())});
  }
  return out;
}

Result<HostList> HostList::of_urls(std::string_view urls) {
  HostList out;
  for (const std::string& url : words(urls)) {
    TRY(place, web_place(Secret(url)));
    out.hosts_.push_back({place.host, place.port});
  }
  return out;
}

HostList HostList::loopback() {
  HostList out;
  out.hosts_ = {{"127.0.0.1", ""}, {"localhost", ""}, {"[::1]", ""}};
  return out;
}

bool HostList::has(const WebPlace& place) const {
  return std::ranges::any_of(hosts_, [&](const Entry& each) {
    return each.host == place.host && (each.port.empty() || each.port == place.port);
  });
}

std::string HostList::text() const {
  std::vector<std::string> all;
  for (const Entry& each : hosts_) all.push_back(each.port.empty() ? each.host : each.host + ":" + each.port);
  return fmt::format("{}", fmt::join(all, ", "));
}

}  // namespace weir::detector
