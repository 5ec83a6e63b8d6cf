#include "probe.hpp"

#include "common/files.hpp"
#include "common/print.hpp"

#include "weir/base/clock.hpp"
#include "weir/base/log.hpp"
#include "weir/restart/retry_policy.hpp"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace weir::apps {

namespace {

constexpr double kAdaptiveIntervalMax = 1.15;

// How long a bare connection takes; none where it does not come about, which the stream's own dial explains better.
std::optional<double> connect_ms(const ffmpeg::Address& address, Duration timeout) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(address.literal.c_str(), std::to_string(address.port).c_str(), &hints, &found) != 0) return {};
  int fd = socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  Instant before = boot_now();
  bool started = connect(fd, found->ai_addr, found->ai_addrlen) == 0 || errno == EINPROGRESS;
  freeaddrinfo(found);
  pollfd waiting{fd, POLLOUT, 0};
  int failed = 1;
  socklen_t size = sizeof failed;
  if (started && poll(&waiting, 1, static_cast<int>(timeout / 1ms)) == 1)
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &size);
  Duration took = boot_now() - before;
  close(fd);
  return failed == 0 ? std::optional(seconds(took) * 1000) : std::nullopt;
}

// Reads for a while and measures; by the stream's own time, because a camera may begin with a burst.
void watch(VideoSource& source, const ProbePlan& plan, Diagnosis& diagnosis, PicturePtr& last) {
  Instant started = boot_now();
  std::optional<Duration> first, key;
  Duration latest{};
  std::int64_t packets = 0;
  size_t bytes = 0;
  for (;;) {
    Duration watched = boot_now() - started;
    if (watched >= plan.watch_max || (watched >= plan.watch && diagnosis.keyframes >= 2)) break;
    auto packet = source.read();
    if (!packet) {
      // A file may end; a stream may not.
      if (source.facts().peer.empty() && packets > 1) break;
      diagnosis.error = stream_error(packet.error());
      break;
    }
    const Packet& each = **packet;
    if (!first) first = latest = each.stream_time;
    latest = std::max(latest, each.stream_time);
    ++packets;
    bytes += each.bytes();
    if (each.key) {
      ++diagnosis.keyframes;
      if (key)
        diagnosis.keyframe_interval_s =
            std::max(diagnosis.keyframe_interval_s.value_or(0), seconds(each.stream_time - *key));
      key = each.stream_time;
    }
    auto pictures = source.decode(*packet);
    if (!pictures) {
      diagnosis.error = stream_error(pictures.error());
      break;
    }
    if (!pictures->empty()) last = pictures->back();
  }
  diagnosis.facts = source.facts();
  diagnosis.decoded = last != nullptr;
  diagnosis.watched_s = seconds(boot_now() - started);
  if (double span = first ? seconds(latest - *first) : 0; span > 0) {
    diagnosis.fps = static_cast<double>(packets - 1) / span;
    diagnosis.bitrate_kbit = static_cast<double>(bytes) * 8 / 1000 / span;
  }
}

}  // namespace

Diagnosis probe(const ffmpeg::SourceConfig& config, const ProbePlan& plan, std::string* snapshot) {
  Diagnosis diagnosis;
  const std::string& url = config.url.reveal();
  diagnosis.url = redact_url(url);
  diagnosis.tls = url.starts_with("rtsps:") || url.starts_with("https:");
  auto failed = [&](const Error& error) {
    diagnosis.error = stream_error(error);
    return diagnosis;
  };
  auto source = ffmpeg::make_source(config);
  if (!source) return failed(source.error());
  if (!url.starts_with("file:")) {
    auto address = ffmpeg::resolve(config.url, config.loopback);
    if (!address) return failed(address.error());
    diagnosis.address = address->literal.find(':') == std::string::npos
                            ? fmt::format("{}:{}", address->literal, address->port)
                            : fmt::format("[{}]:{}", address->literal, address->port);
    diagnosis.connect_ms = connect_ms(*address, config.connect_timeout);
  }
  Instant before = boot_now();
  auto facts = (*source)->open();
  if (!facts) return failed(facts.error());
  diagnosis.open_s = seconds(boot_now() - before);
  PicturePtr last;
  watch(**source, plan, diagnosis, last);
  if (snapshot != nullptr && last) *snapshot = last->to_jpeg(0, 85);
  (*source)->close();
  return diagnosis;
}

std::vector<std::string> advice_on(const Diagnosis& diagnosis) {
  std::vector<std::string> advice;
  if (diagnosis.error) {
    advice.emplace_back(restart::retry_policy(diagnosis.error->code).advice);
    if (diagnosis.error->code == restart::StreamErrorCode::rtsp_auth_failed)
      advice.emplace_back("The password was tried once only. Special characters in it are escaped: %40 for @.");
    if (diagnosis.error->detail.find("another session") != std::string::npos)
      advice.emplace_back("Set max_sessions for this camera, or close another viewer.");
    if (!diagnosis.open_s) return advice;
  }
  const StreamFacts& facts = diagnosis.facts;
  if (!diagnosis.decoded && !diagnosis.error)
    advice.emplace_back(fmt::format("No picture could be decoded within {:.0f} s; the first keyframe comes late.",
                                    diagnosis.watched_s));
  if (facts.codec != "mjpeg") {
    if (diagnosis.keyframes == 0)
      advice.emplace_back("No keyframe came while watching: the camera uses intra-refresh or a very long interval. "
                          "Weir decodes such a stream in full.");
    else if (!diagnosis.keyframe_interval_s)
      advice.emplace_back("Only one keyframe came while watching; set the keyframe interval to 1 s in the camera, so "
                          "that adaptive decoding applies.");
    else if (*diagnosis.keyframe_interval_s > kAdaptiveIntervalMax)
      advice.emplace_back(fmt::format("The keyframe interval is {:.1f} s; set it to 1 s in the camera, so that "
                                      "adaptive decoding applies and a still scene costs only its keyframes.",
                                      *diagnosis.keyframe_interval_s));
  }
  if (facts.codec == "hevc") advice.emplace_back("H.265 saves bandwidth but costs more to decode than H.264.");
  if (facts.reordered)
    advice.emplace_back("The camera sends B-frames, which delay every picture; a live camera does better without.");
  if (facts.width * facts.height > 1920 * 1088)
    advice.emplace_back("The picture is larger than a detector uses; a substream of at most 1920x1080 saves decoding.");
  if (diagnosis.fps > 16)
    advice.emplace_back("The camera sends more pictures than Weir looks at (max_fps); 10 a second are enough.");
  if (diagnosis.tls) advice.emplace_back("The connection is encrypted, but the camera's certificate was not verified.");
  return advice;
}

std::string readable(const Diagnosis& diagnosis) {
  std::string text = harmless(diagnosis.url) + "\n";
  auto line = [&](std::string_view name, const std::string& value) {
    text += fmt::format("  {:<12}{}\n", name, harmless(value));
  };
  if (!diagnosis.address.empty()) line("resolves", diagnosis.address);
  if (diagnosis.connect_ms) line("reachable", fmt::format("in {:.0f} ms", *diagnosis.connect_ms));
  if (diagnosis.open_s) {
    const StreamFacts& facts = diagnosis.facts;
    line("stream", fmt::format("open after {:.2f} s{}", *diagnosis.open_s, diagnosis.tls ? ", encrypted" : ""));
    line("video",
         fmt::format("{} {}x{}{}", facts.codec, facts.width, facts.height, facts.reordered ? ", B-frames" : ""));
    line("rate", fmt::format("{:.1f} pictures a second, {:.0f} kbit/s", diagnosis.fps, diagnosis.bitrate_kbit));
    line("keyframes", diagnosis.keyframe_interval_s
                          ? fmt::format("every {:.1f} s", *diagnosis.keyframe_interval_s)
                          : fmt::format("{} in {:.0f} s", diagnosis.keyframes, diagnosis.watched_s));
    line("audio", facts.audio ? "yes (not fetched)" : "no");
  }
  if (diagnosis.error)
    line("result", fmt::format("{}: {}", restart::to_string(diagnosis.error->code), diagnosis.error->detail));
  else
    line("result", diagnosis.decoded ? "good" : "no picture");
  for (const std::string& sentence : advice_on(diagnosis)) text += "  - " + sentence + "\n";
  return text;
}

json::object to_json(const Diagnosis& diagnosis) {
  auto number = [](std::optional<double> value) { return value ? json::value(*value) : json::value(nullptr); };
  json::object out;
  out["url"] = diagnosis.url;
  out["ok"] = !diagnosis.error && diagnosis.decoded;
  out["address"] = diagnosis.address;
  out["connect_ms"] = number(diagnosis.connect_ms);
  out["open_s"] = number(diagnosis.open_s);
  if (diagnosis.error) {
    out["code"] = restart::to_string(diagnosis.error->code);
    out["detail"] = diagnosis.error->detail;
  }
  if (diagnosis.open_s) {
    const StreamFacts& facts = diagnosis.facts;
    out["codec"] = facts.codec;
    out["width"] = facts.width;
    out["height"] = facts.height;
    out["fps"] = diagnosis.fps;
    out["bitrate_kbit"] = diagnosis.bitrate_kbit;
    out["keyframe_interval_s"] = number(diagnosis.keyframe_interval_s);
    out["b_frames"] = facts.reordered;
    out["audio"] = facts.audio;
    out["tls"] = diagnosis.tls;
  }
  json::array advice;
  for (const std::string& sentence : advice_on(diagnosis)) advice.emplace_back(sentence);
  out["advice"] = std::move(advice);
  return out;
}

namespace {
Result<int> run_probe(const Arguments& arguments) {
  log::set_level(log::Level::off);
  std::string url = arguments.text("<url>");
  if (url == "-") {
    TRY(text, read_file("-", 64 << 10));
    url = trimmed(text);
  } else if (redact_url(url) != url) {
    complain("note: other users of this machine can see a command's arguments; give - and the URL on standard input");
  }
  ffmpeg::SourceConfig config;
  config.url = Secret(url);
  config.loopback = config.files = true;  // a person who may run this command is on the machine already
  std::string transport = arguments.has("transport") ? arguments.text("transport") : "tcp";
  if (transport != "tcp" && transport != "udp") return usage_error("--transport must be tcp or udp");
  if (transport == "udp") config.transport = camera::Transport::udp;
  std::string jpeg;
  Diagnosis diagnosis = probe(config, ProbePlan{}, &jpeg);
  if (arguments.has("snapshot") && !jpeg.empty()) {
    TRY(written, write_file(arguments.text("snapshot"), jpeg, 0600));
  }
  if (arguments.has("json"))
    print_json(to_json(diagnosis));
  else
    print(readable(diagnosis));
  return !diagnosis.error && diagnosis.decoded ? 0 : 1;
}
}  // namespace

Command probe_command() {
  return {.path = "probe",
          .sentence = "Looks at a camera once and says what it found, and what to change.",
          .example = "weir-worker probe rtsp://192.0.2.7/stream1 --snapshot now.jpg\n"
                     "echo 'rtsp://user:password@192.0.2.7/stream1' | weir-worker probe -",
          .settings = "",
          .options = {{"<url>", "URL", "the camera's; - reads it from standard input, where nobody sees it", true},
                      {"transport", "tcp|udp", "how the video travels; tcp by default"},
                      {"snapshot", "FILE", "writes the last picture as a JPEG"},
                      {"json", "", "prints JSON"}},
          .run = run_probe};
}

}  // namespace weir::apps
