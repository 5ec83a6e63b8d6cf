#include "weir/forward/destination.hpp"

#include "weir/forward/failure.hpp"

#include <boost/url/parse.hpp>
#include <boost/url/url.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace weir::forward {

namespace {
// What FFmpeg's RTMP client has room for; it would cut longer ones off and present something else.
constexpr size_t kPathMax = 1000, kUserMax = 49, kPasswordMax = 49, kHostMax = 199;

Error refused(std::string why) { return failure(Kind::config_invalid, std::move(why)); }

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}
}  // namespace

Result<Destination> read_destination(const Secret& url) {
  if (url.empty()) return refused("DEST_RTMP_URL is not set, and EGRESS_ENABLED is true");
  auto parsed = boost::urls::parse_uri(url.reveal());
  if (!parsed) return refused("DEST_RTMP_URL is not a URL");
  std::string scheme = lower(parsed->scheme());
  if (scheme != "rtmp" && scheme != "rtmps") return refused("DEST_RTMP_URL must begin with rtmp:// or rtmps://");
  if (parsed->encoded_host().empty()) return refused("DEST_RTMP_URL names no host");
  if (parsed->encoded_host().size() > kHostMax) return refused("DEST_RTMP_URL's host is too long");
  // Boost 1.81 takes 74000 for 8464.
  std::string_view digits = parsed->port();
  while (digits.size() > 1 && digits[0] == '0') digits.remove_prefix(1);
  if (parsed->has_port() && (digits.empty() || digits == "0" || digits.size() > 5 || std::stoi(std::string(digits)) > 65535))
    return refused("DEST_RTMP_URL's port is not a number from 1 to 65535");
  if (parsed->encoded_user().size() > kUserMax || parsed->encoded_password().size() > kPasswordMax)
    return refused(fmt::format("DEST_RTMP_URL's user and password may have at most {} characters each", kUserMax));
  std::string_view path = parsed->encoded_path();
  size_t app_end = path.find('/', 1);
  if (path.size() < 2 || path[0] != '/' || app_end == 1 || app_end == std::string_view::npos || app_end + 1 == path.size())
    return refused("DEST_RTMP_URL must have the form rtmp://host/app/key");
  if (path.size() + parsed->encoded_query().size() > kPathMax)
    return refused(fmt::format("DEST_RTMP_URL's path may have at most {} characters", kPathMax));

  Destination to;
  boost::urls::url dialled(*parsed);
  dialled.set_scheme(scheme);
  dialled.remove_fragment();
  to.url = Secret(std::string(dialled.buffer()));
  to.tls = scheme == "rtmps";
  to.host = parsed->host_address();
  to.port = parsed->has_port() ? parsed->port_number() : to.tls ? 443 : 1935;
  to.app = std::string(path.substr(1, app_end - 1));
  auto keep = [&](std::string_view part) {
    if (!part.empty()) to.secrets.emplace_back(std::string(part));
  };
  std::string_view key = path.substr(app_end + 1);
  keep(key);
  for (std::string_view rest = key; !rest.empty();) {
    size_t end = rest.find('/');
    keep(rest.substr(0, end));
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  }
  // FFmpeg publishes "key.flv" as "key", and a server's error may repeat that.
  if (key.ends_with(".flv")) {
    key.remove_suffix(4);
    keep(key);
    keep(key.substr(key.rfind('/') + 1));
  }
  keep(parsed->encoded_query());
  // Boost 1.81 reads past the end of an empty query.
  if (!parsed->encoded_query().empty())
    for (auto pair : parsed->encoded_params()) keep(pair.value);
  // FFmpeg takes what follows the last slash, be it in the query, for the name of the stream.
  std::string_view all = to.url.reveal();
  keep(all.substr(all.rfind('/') + 1));
  keep(parsed->encoded_user());
  keep(parsed->encoded_password());
  return to;
}

bool valid_stream_id(std::string_view id) {
  return !id.empty() && id.size() <= 64 && std::ranges::all_of(id, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-';
  });
}

Result<Secret> hub_url(const Secret& base, const std::string& id, std::string_view end) {
  if (id.empty()) return refused("STREAM_ID is not set");
  if (!valid_stream_id(id)) return refused("STREAM_ID must have 1 to 64 letters, digits, '_' and '-'");
  auto parsed = boost::urls::parse_uri(base.reveal());
  if (!parsed || parsed->encoded_host().empty()) return refused("MEDIAMTX_RTSP_BASE is not a URL");
  std::string scheme = lower(parsed->scheme());
  if (scheme != "rtsp" && scheme != "rtsps") return refused("MEDIAMTX_RTSP_BASE must begin with rtsp:// or rtsps://");
  if (!parsed->encoded_path().empty() && parsed->encoded_path()[0] != '/') return refused("MEDIAMTX_RTSP_BASE is not a URL");
  if (parsed->has_query() || parsed->has_fragment()) return refused("MEDIAMTX_RTSP_BASE may not have a query");
  std::string text = base.reveal();
  while (text.ends_with('/')) text.pop_back();
  return Secret(fmt::format("{}/live/{}/{}", text, id, end));
}

}  // namespace weir::forward
