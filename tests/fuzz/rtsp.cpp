// A camera that answers what it likes, on the other end of an RTSP source: nothing it says makes a call last longer
// than its bound, brings a credential into a log or an error, or leads the source to another address.
#include "call_check.hpp"
#include "dial_watch.hpp"
#include "picture_check.hpp"
#include "rtsp_answers.hpp"

#include "camera_testing.hpp"

#include "weir/ffmpeg/source.hpp"

#include <mutex>

namespace weir::fuzz {
namespace {

namespace testing = ffmpeg::testing;

constexpr Duration kConnectMax = 600ms, kStallMax = 300ms;
constexpr Duration kPatience = 60ms;  // of the camera, until it takes a silent client for gone
constexpr Duration kSlack = 2s;       // of a busy machine, with sanitizers
constexpr int kPicturesMax = 24;
constexpr std::string_view kUser = "admin", kCanary = "xyzzy-canary";
// As it stands in the URL, decoded, and as Basic authentication says it: base64 of user:password.
constexpr std::string_view kSecrets[] = {kCanary, "xyzzy%2Dcanary", "YWRtaW46eHl6enktY2FuYXJ5"};

void check_silent(std::string_view where, const std::string& text) { fuzz::check_silent(kSecrets, where, text); }

std::string between(std::string_view text, std::string_view before, std::string_view after) {
  size_t from = text.find(before);
  if (from == std::string_view::npos) return "";
  from += before.size();
  return std::string(text.substr(from, text.find(after, from) - from));
}

// Puts in what the answer can only know from the request.
std::string filled_in(std::string answer, const std::string& request) {
  for (auto [mark, value] : {std::pair{kNumber, between(request, "CSeq: ", "\r")},
                             {kUrl, between(request, " ", " ")},
                             {kLogin, between(request, "Authorization: ", "\r")}})
    for (size_t at = answer.find(mark); at != std::string::npos; at = answer.find(mark, at + value.size()))
      answer.replace(at, mark.size(), value);
  return answer;
}

class RtspTarget final : public Target {
 public:
  RtspTarget() : answers_(std::make_unique<RtspAnswers>()), camera_([this](testing::Dial& dial) { serve(dial); }) {
    test::StallMonitor::get();
    watch_dials(camera_.port());
    files_ = open_files();
  }
  ~RtspTarget() override { watch_dials(0); }

  Input draw(Mutator& mutate) override { return answers_->draw(mutate); }

  void run(const Input& input) override {
    {
      std::lock_guard lock(mutex_);
      script_ = input;
    }
    ffmpeg::SourceConfig config{
        .url = Secret(camera_.url(fmt::format("/stream?token={}", kCanary), fmt::format("{}:{}@", kUser, kCanary))),
        .transport = input.at(0).at(0) == 'u' ? camera::Transport::udp : camera::Transport::tcp,
        .loopback = true,
        .connect_timeout = kConnectMax,
        .stall_timeout = kStallMax};
    auto source = ffmpeg::make_source(config);
    check(static_cast<bool>(source), "the source was refused");
    watch_stream(**source);
    within("close", kSlack, [&] {
      (*source)->close();
      return Nothing{};
    });
    source->reset();
    check_silent("the log", log_.take());
    Dials dials = take_dials();
    check(dials.elsewhere.empty(), dials.elsewhere.empty() ? "" : "it went elsewhere: " + dials.elsewhere.front());
    check(dials.to_peer == 1, fmt::format("{} dials instead of one", dials.to_peer));
  }

  std::string finish() override {
    // The camera may still be at its last connection.
    std::ptrdiff_t left = open_files() - files_;
    check(left <= 1, fmt::format("{} connections were left open", left));
    return fmt::format("{} streams opened, {} refused, {} pictures", opened_, refused_, pictures_);
  }
  bool conclusive() const override { return opened_ > 0 && refused_ > 0 && pictures_ > 0; }

 private:
  void watch_stream(VideoSource& source) {
    motion::MotionGate gate{camera::MotionGating{}};
    auto failed = [&](const auto& result) {
      if (result) return false;
      check_silent("an error", result.error().reason + result.error().message + json::to_text(result.error().details));
      return true;
    };
    if (failed(within("open", kConnectMax + kStallMax + kSlack, [&] { return source.open(); })))
      return void(++refused_);
    ++opened_;
    for (int i = 0; i < kPicturesMax; ++i) {
      auto packet = within("read", kStallMax + kSlack, [&] { return source.read(); });
      if (failed(packet)) return;
      if ((*packet)->key && i % 5 == 4) {
        auto picture = source.decode_alone(*packet);
        if (failed(picture)) return;
        if (*picture) see(**picture, gate);
        continue;
      }
      auto pictures = source.decode(*packet);
      if (failed(pictures)) return;
      for (const PicturePtr& picture : *pictures) see(*picture, gate);
    }
  }
  void see(const Picture& picture, motion::MotionGate& gate) {
    ++pictures_;
    check_picture(picture, gate);
  }

  // The camera's thread: one answer a request, whatever the request is.
  void serve(testing::Dial& dial) {
    Input script;
    {
      std::lock_guard lock(mutex_);
      script = script_;
    }
    timeval patience{0, std::chrono::microseconds(kPatience).count()};
    setsockopt(dial.fd(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    for (size_t i = 1; i < script.size(); ++i) {
      std::string request = dial.request();
      if (request.empty() || !dial.send(filled_in(script[i], request))) return;
    }
    if (script.at(0).at(1) == 'h') dial.hold();
  }

  LogFile log_;
  std::unique_ptr<RtspAnswers> answers_;
  // Guards the script, which the camera's thread copies.
  std::mutex mutex_;
  Input script_;
  testing::ScriptedCamera camera_;
  std::ptrdiff_t files_ = 0;
  std::uint64_t opened_ = 0, refused_ = 0, pictures_ = 0;
};

}  // namespace

std::unique_ptr<Target> make_rtsp_target() { return std::make_unique<RtspTarget>(); }

}  // namespace weir::fuzz
