// The two URLs that a forward is configured with: what is accepted can be dialled, by FFmpeg as well and to the same
// place, and nothing of a destination's key survives the redactor that was told its secrets.
#include "target.hpp"

#include "wire/av.hpp"

#include "weir/forward/destination.hpp"
#include "weir/forward/failure.hpp"

#include <boost/url/parse.hpp>

#include <fmt/format.h>

namespace weir::fuzz {
namespace {

constexpr std::string_view kCanary = "xyzzy";  // in every secret, and in nothing else

const std::vector<std::string> kUrls = {
    "rtmp://live.example.com/app/xyzzy-key",
    "RTMP://live.example.com:1935/app/xyzzy-key?auth=xyzzy-token&x=9",
    "rtmps://xyzzy-user:xyzzy-pass@[2001:db8::7]:4443/app/xyzzy-inst/xyzzy-key.flv",
    "rtmps://a.rtmps.example.com:443/rtmp/xyzzy%2Dkey/xyzzy%2fmore?s_bl=1&s_ps=xyzzy",
    "rtmp://127.0.0.1/app/mp4:xyzzy-key#part",
    "rtmp://10.0.0.7/ondemand/xyzzy-key?slist=xyzzy-list",
    "rtmp://h//xyzzy-key",
    "rtmp://h:0/app/xyzzy-key",
    "rtmp://h:70000/app/xyzzy-key",
    "rtmp:///app/xyzzy-key",
    "rtmpt://h/app/xyzzy-key",
    "rtmp://h/xyzzy-key",
    "file:///xyzzy-key",
    "xyzzy-key",
};
const std::vector<std::string> kBases = {"rtsp://mediamtx:8554", "rtsps://xyzzy-user:xyzzy-pass@[::1]:8322//",
                                         "RTSP://hub.example.com/prefix/", "rtsp://h?x=1", "http://h", "rtsp://", ""};
const std::vector<std::string> kIds = {
    "s1", "a_B-9", "0123456789012345678901234567890123456789012345678901234567890123", "", "../x", "a b", "\xC3\xA4"};
const Words kWords = {"rtmp://", "rtmps://", "rtsp://", "://", "/", "//", "///", "\\",   "?",  "?#",       "@",
                      ":",       "%",        "%00",     "%2F", "%", "&",  "=",   ";",    "..", "/app/",    "xyzzy",
                      "[::1]",   "[",        "]",       ":0",  "*", " ",  "\n",  "\xC3", "'",  ".flv",     "slist=",
                      "[fe80::1%25eth0]",    "[v1.x]",  ":65535", ":65536", "127.0.0.1", "%31", "a=b/c"};

std::string drawn(Mutator& mutate, const std::vector<std::string>& all) {
  std::string text = mutate.any(all);
  if (mutate.one_in(3)) return text;
  text = mutate.bytes(text, kWords, mutate.any(all));
  if (mutate.one_in(50)) text.insert(mutate.below(text.size() + 1), mutate.below(1100), 'x');
  return text;
}

// The key, its parts, the query, user and password, as the URL has them and as FFmpeg does; found without the code that
// is tested.
std::vector<std::string_view> secrets_in(std::string_view url) {
  std::vector<std::string_view> found = {url.substr(url.rfind('/') + 1)};
  url.remove_prefix(url.find("://") + 3);
  size_t query = url.find('?');
  if (query != std::string_view::npos) found.push_back(url.substr(query + 1));
  url = url.substr(0, query);
  size_t path = url.find('/'), at = url.substr(0, path).rfind('@');
  if (at != std::string_view::npos) {
    size_t colon = url.find(':');
    found.push_back(url.substr(0, std::min(colon, at)));
    if (colon < at) found.push_back(url.substr(colon + 1, at - colon - 1));
  }
  std::string_view key = url.substr(url.find('/', path + 1) + 1);
  found.push_back(key);
  for (size_t slash; (slash = key.find('/')) != std::string_view::npos; key.remove_prefix(slash + 1))
    found.push_back(key.substr(0, slash));
  found.push_back(key);
  if (key.ends_with(".flv")) found.push_back(key.substr(0, key.size() - 4));
  return found;
}

class DestinationTarget final : public Target {
 public:
  Input draw(Mutator& mutate) override { return {drawn(mutate, kUrls), drawn(mutate, kBases), drawn(mutate, kIds)}; }

  void run(const Input& input) override {
    auto to = forward::read_destination(Secret(input.at(0)));
    ++(to ? accepted_ : refused_);
    if (to) dialled(*to);
    else silent(to.error());
    auto from = forward::hub_url(Secret(input.at(1)), input.at(2), "out");
    ++(from ? inputs_ : refused_inputs_);
    if (from) read(from->reveal(), input.at(1), input.at(2));
    else silent(from.error());
  }

  std::string finish() override {
    return fmt::format("{} destinations accepted, {} refused; {} inputs accepted, {} refused", accepted_, refused_,
                       inputs_, refused_inputs_);
  }
  bool conclusive() const override { return accepted_ > 0 && refused_ > 0 && inputs_ > 0 && refused_inputs_ > 0; }

 private:
  static void silent(const Error& error) {
    check(forward::failure_of(error).kind == forward::Kind::config_invalid, "refused as " + error.reason);
    check(!error.message.empty() && error.message.find(kCanary) == std::string::npos,
          "a refusal repeats a secret: " + error.message);
  }
  static void dialled(const forward::Destination& to) {
    const std::string& url = to.url.reveal();
    check(url.starts_with(to.tls ? "rtmps://" : "rtmp://"), "accepted with another scheme: " + url);
    check(!to.host.empty() && !to.app.empty() && to.port >= 1 && to.port <= 65535,
          fmt::format("accepted with host {:?}, port {}, application {:?}: {}", to.host, to.port, to.app, url));
    as_ffmpeg_reads_it(to);
    auto again = forward::read_destination(to.url);
    check(again && again->url == to.url && again->host == to.host && again->port == to.port && again->app == to.app &&
              again->secrets == to.secrets,
          "what was accepted reads differently the second time: " + url);
    hidden(to);
  }
  static void as_ffmpeg_reads_it(const forward::Destination& to) {
    const std::string& url = to.url.reveal();
    char scheme[16], login[256], host[512], path[2048];
    int port = -1;
    av_url_split(scheme, sizeof scheme, login, sizeof login, host, sizeof host, &port, path, sizeof path, url.c_str());
    if (port < 0) port = to.tls ? 443 : 1935;
    check(port == to.port, fmt::format("FFmpeg dials port {} instead of {}: {}", port, to.port, url));
    // FFmpeg takes an escaped name as it stands, and finds nobody there.
    check(host == to.host || url.find('%') != std::string::npos,
          fmt::format("FFmpeg dials {} instead of {}: {}", host, to.host, url));
    std::string_view stream = std::string_view(path).substr(0, std::string_view(path).find('?'));
    check(url.ends_with(path) && stream.starts_with("/" + to.app + "/") && stream.size() > to.app.size() + 2,
          fmt::format("FFmpeg asks for {} instead of a stream of {}: {}", path, to.app, url));
  }
  static void hidden(const forward::Destination& to) {
    Redactor redactor;
    for (const Secret& each : to.secrets) redactor.learn(each.reveal());
    const std::string& url = to.url.reveal();
    for (std::string_view secret : secrets_in(url)) {
      // Shorter ones are not redacted, and the redactor's own mark cannot be told from an asterisk.
      if (secret.size() < 3 || secret.find('*') != std::string_view::npos) continue;
      std::string said = redactor.redact(fmt::format("cannot open {}: {} is bad", url, secret));
      check(said.find(secret) == std::string::npos, fmt::format("{} is left in {:?} of {}", secret, said, url));
      std::string decoded = percent_decode(secret);
      said = redactor.redact("no such stream: " + decoded);
      check(decoded.size() < 3 || said.find(decoded) == std::string::npos,
            fmt::format("{:?} is left in {:?} of {}", decoded, said, url));
    }
  }
  static void read(const std::string& url, const std::string& base, const std::string& id) {
    check(forward::valid_stream_id(id) && url.ends_with("/live/" + id + "/out"), "accepted as " + url);
    auto parsed = boost::urls::parse_uri(url), before = boost::urls::parse_uri(base);
    check(parsed && before && parsed->encoded_host() == before->encoded_host() && !parsed->has_query(),
          fmt::format("{} leads elsewhere than {}", url, base));
  }

  std::uint64_t accepted_ = 0, refused_ = 0, inputs_ = 0, refused_inputs_ = 0;
};

}  // namespace

std::unique_ptr<Target> make_destination_target() { return std::make_unique<DestinationTarget>(); }

}  // namespace weir::fuzz
