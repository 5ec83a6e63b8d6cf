#include "weir/go2rtc/restream.hpp"

#include "stream_words.hpp"

#include "weir/base/clock.hpp"
#include "weir/base/spawn.hpp"
#include "weir/net/client.hpp"

#include <boost/asio/io_context.hpp>

#include <algorithm>
#include <cctype>
#include <condition_variable>
#include <mutex>

namespace weir::go2rtc {

namespace asio = boost::asio;

namespace {

using restart::StreamErrorCode;

constexpr Duration kBetweenLooks = 100ms;
constexpr Duration kAnswer = 1s;  // of a program on this machine
constexpr Duration kPartingAnswer = 200ms;
constexpr int kPartingLooks = 5;

Error interrupted() { return Error{Errc::unavailable, "interrupted", "the source was told to stop"}; }

class Restream final : public VideoSource {
 public:
  Restream(const Config& config, const CameraId& camera, const Secret& url, Judge judge,
           std::unique_ptr<VideoSource> stream)
      : config_(config),
        name_(stream_name(camera, url)),
        url_(url),
        judge_(std::move(judge)),
        stream_(std::move(stream)) {}

  Result<StreamFacts> open() override;
  Result<PacketPtr> read() override { return stream_->read(); }
  Result<std::vector<PicturePtr>> decode(const PacketPtr& packet) override { return stream_->decode(packet); }
  Result<PicturePtr> decode_alone(const PacketPtr& packet) override { return stream_->decode_alone(packet); }
  void restart_decoder() override { stream_->restart_decoder(); }
  void close() override;
  void interrupt() override;
  StreamFacts facts() const override { return stream_->facts(); }

 private:
  Status announce();
  Status wait_until_delivering();
  Error reason_for(Error failure, WallTime since);
  enum class Asks { until_stopped, in_parting };
  Result<Look> look(Asks how);
  Result<net::ClientResponse> ask(net::Method method, std::string target, Asks how = Asks::until_stopped);
  bool stopped();
  void rest(Duration time);

  const Config config_;
  const std::string name_;
  const Secret url_;
  const Judge judge_;
  const std::unique_ptr<VideoSource> stream_;  // go2rtc's
  Secret source_;                              // what go2rtc was told
  bool announced_ = false;
  std::mutex mutex_;
  std::condition_variable told_;
  bool stop_ = false;
};

bool Restream::stopped() {
  std::lock_guard guard(mutex_);
  return stop_;
}

void Restream::interrupt() {
  {
    std::lock_guard guard(mutex_);
    stop_ = true;
  }
  told_.notify_all();
  stream_->interrupt();
}

void Restream::rest(Duration time) {
  std::unique_lock lock(mutex_);
  told_.wait_for(lock, time, [this] { return stop_; });
}

Result<net::ClientResponse> Restream::ask(net::Method method, std::string target, Asks how) {
  asio::io_context io{1};
  TRY(client, net::HttpClient::create(io, config_.api));
  net::ClientRequest request{.method = method,
                             .target = std::move(target),
                             .timeout = how == Asks::in_parting ? kPartingAnswer : kAnswer,
                             .replayable = true};
  std::optional<Result<net::ClientResponse>> answer;
  auto asking = [&]() -> asio::awaitable<void> { answer.emplace(co_await client.send(std::move(request))); };
  spawn(io.get_executor(), asking(), "a question to go2rtc");
  while (!answer && !io.stopped() && (how == Asks::in_parting || !stopped())) io.run_one_for(50ms);
  if (!answer) return interrupted();
  // Without the target, in which the camera's URL stands.
  if (!*answer)
    return stream_failure(StreamErrorCode::tcp_refused, fmt::format("go2rtc does not answer at {}", config_.api));
  return std::move(**answer);
}

Result<Look> Restream::look(Asks how) {
  TRY(answer, ask(net::Method::get, "/api/streams?src=" + percent_encode(name_), how));
  if (answer.status == 404) return stream_failure(StreamErrorCode::rtsp_protocol, "go2rtc has forgotten the stream");
  auto look = read_look(answer.body, source_);
  return look ? look : stream_failure(StreamErrorCode::rtsp_protocol, look.error().message);
}

// A stream that go2rtc has under this name already gets the same source, and goes on. Nobody is dialled yet.
Status Restream::announce() {
  TRY(judged, judge_(url_));
  if (stopped()) return interrupted();
  source_ = source_of(judged, std::max(config_.connect_timeout, config_.stall_timeout));
  TRY(answer, ask(net::Method::patch,
                  fmt::format("/api/streams?name={}&src={}", percent_encode(name_), percent_encode(source_.reveal()))));
  if (answer.status != 200)
    return stream_failure(StreamErrorCode::url_refused,
                          fmt::format("go2rtc refuses the camera's URL with status {}", answer.status));
  announced_ = true;
  TRY(seen, look(Asks::until_stopped));
  if (!seen.ours)
    return stream_failure(StreamErrorCode::url_refused,
                          "go2rtc has a stream whose name is the path of the camera's URL, and "
                          "takes the one for the other: rename that stream");
  return ok();
}

// go2rtc answers a reader with a description that it remembers, and holds the connection while it dials: only bytes
// that grow show that the camera delivers.
Status Restream::wait_until_delivering() {
  std::optional<std::uint64_t> first;
  for (Instant end = boot_now() + config_.connect_timeout; boot_now() < end; rest(kBetweenLooks)) {
    TRY(seen, look(Asks::until_stopped));
    if (!first) first = seen.bytes;
    if (seen.bytes > *first) return ok();
  }
  return stream_failure(StreamErrorCode::stalled, fmt::format("go2rtc has received nothing from the camera for {} s",
                                                              seconds(config_.connect_timeout)));
}

Result<StreamFacts> Restream::open() {
  WallTime since = wall_now();
  TRY(announced, announce());
  auto facts = stream_->open();
  if (!facts) return reason_for(facts.error(), since);
  TRY(delivering, wait_until_delivering());
  return facts;
}

// go2rtc answers "not found" whatever it was that kept it from the camera.
Error Restream::reason_for(Error failure, WallTime since) {
  if (failure.reason == interrupted().reason) return failure;
  auto log = ask(net::Method::get, "/api/log");
  if (!log || log->status != 200) return failure;
  auto reason = read_reason(log->body, name_, since);
  if (!reason) return failure;
  Redactor redactor;
  redactor.learn_url(source_.reveal());
  return stream_failure(reason->code, redactor.redact(reason->detail));
}

// go2rtc needs a moment to see that a reader has gone. A stream that stays costs nothing: without a reader it dials
// nobody.
void Restream::close() {
  stream_->close();
  if (!std::exchange(announced_, false)) return;
  for (int i = 0; i < kPartingLooks; ++i) {
    auto seen = look(Asks::in_parting);
    if (!seen) return;
    if (seen->readers == 0) {
      (void)ask(net::Method::del, "/api/streams?src=" + percent_encode(name_), Asks::in_parting);
      return;
    }
    std::unique_lock lock(mutex_);
    told_.wait_for(lock, kBetweenLooks / 2, [] { return false; });
  }
}

}  // namespace

bool can_restream(const Secret& url) {
  std::string scheme = url.reveal().substr(0, url.reveal().find("://"));
  std::ranges::transform(scheme, scheme.begin(), [](unsigned char c) { return std::tolower(c); });
  return scheme == "rtsp" || scheme == "rtsps";
}

Result<std::unique_ptr<VideoSource>> make_restream(const Config& config, const CameraId& camera, const Secret& url,
                                                   Judge judge, const OpenStream& open) {
  if (!can_restream(url))
    return stream_failure(StreamErrorCode::url_refused, "go2rtc is given only rtsp and rtsps URLs");
  TRY(stream, open(Secret(fmt::format("{}/{}", config.rtsp_base, percent_encode(stream_name(camera, url))))));
  return std::unique_ptr<VideoSource>(new Restream(config, camera, url, std::move(judge), std::move(stream)));
}

}  // namespace weir::go2rtc
