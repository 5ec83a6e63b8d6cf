#include "stream.hpp"

#include "detectors.hpp"
#include "forward/forward_process.hpp"
#include "forward/run_record.hpp"
#include "shard.hpp"
#include "stream_voice.hpp"

#include "weir/base/log.hpp"
#include "weir/ffmpeg/annotate.hpp"
#include "weir/ffmpeg/copy.hpp"
#include "weir/forward/destination.hpp"
#include "weir/http_bus/http_bus.hpp"
#include "weir/stream_worker/looker.hpp"

namespace weir::apps {

namespace {

constexpr std::pair<std::string_view, std::string_view> kDefaults[] = {{"log_dir", "logs"}, {"retry_max_delay_ms", "2000"}};
constexpr ForwardNames kNames{"stream-worker", "stream"};
constexpr egress::Voice kVoice{.events = "stream",
                               .metrics = "weir_stream_worker_",
                               .dropped_metric = "weir_stream_worker_dropped_packets_total",
                               .self = "the stream worker",
                               .input_stage = "in",
                               .output_stage = "out"};

// What tells the control plane what is seen; null where nobody said which, or in whose name.
std::unique_ptr<StreamVoice> voice_of(const Settings& s, const egress::SendRight& right, net::Metrics& metrics) {
  http_bus::Config bus{.base_url = s.text("control_plane_url"),
                       .token_file = s.text("worker_token_file"),
                       .ca_file = s.text("control_plane_ca_file")};
  StreamVoice::Config config{.owner = RunnerId::trusted(s.text("stream_owner")),
                             .instance = s.text("instance_id"),
                             .tenant = TenantId::trusted(s.text("stream_tenant")),
                             .site = SiteId::trusted(s.text("stream_site")),
                             .stream = CameraId::trusted(s.text("stream_id"))};
  bool named = !bus.base_url.empty() && !bus.token_file.empty() && !config.owner.empty() && !config.tenant.empty() &&
               !config.site.empty() && right.version() > 0;
  if (!named) {
    log::info("stream.unpublished", "detections are only drawn: no control plane, owner or lease was named");
    return nullptr;
  }
  auto make_bus = [bus](boost::asio::io_context& io) { return *http_bus::HttpBus::create(io, bus); };
  return std::make_unique<StreamVoice>(std::move(config), make_bus, right, metrics);
}

// What draws into the pictures, and what looks at them; or only encodes what RTMP does not carry. Lives as long as the
// process.
class Annotation {
 public:
  Annotation(const Settings& s, const egress::SendRight& right, net::Metrics& metrics)
      : draw_(draws(s)),
        annotating_(metrics.gauge("weir_stream_worker_annotating", "1 while detections are drawn into the pictures")),
        fallbacks_(metrics.counter("weir_stream_worker_fallbacks_total",
                                   "How often pictures were handed on as they came, because drawing was too slow")),
        pictures_(metrics.counter("weir_stream_worker_pictures_total", "Pictures that were encoded")),
        lag_(metrics.gauge("weir_stream_worker_lag_seconds", "How far behind its input the worker was when the last picture left")),
        left_out_(metrics.counter("weir_stream_worker_left_out_total",
                                  "Pictures that were not encoded, because the machine was too slow for all")),
        voice_(draw_ ? voice_of(s, right, metrics) : nullptr),
        looker_(draw_ ? std::make_unique<stream_worker::Looker>(looker_config(s), metrics) : nullptr),
        annotator_(annotate_config(s)) {}

  static bool draws(const Settings& s) { return s.text("stream_mode") == "annotate"; }
  std::unique_ptr<CopyInput> wrap(std::unique_ptr<CopyInput> input) { return annotator_.wrap(std::move(input)); }

 private:
  stream_worker::LookerConfig looker_config(const Settings& s) {
    camera::Model model{s.text("stream_detector"), s.text("stream_model")};
    DetectorFactory make = detector_factory(detector_folders(s));
    return {.max_fps = s.number("max_fps"),
            .min_score = s.number("stream_min_score"),
            .make_detector = [make, model] { return make(model); },
            .seen = [this](const Picture& picture, const Sighting& seen, Duration took) {
              if (voice_) voice_->saw(picture, seen, took);
            }};
  }
  ffmpeg::AnnotateConfig annotate_config(const Settings& s) {
    return {.draw = draw_,
            .for_rtmp = s.flag("rtmp_output"),
            .keyframe = s.duration("keyframe_s"),
            .bitrate_kbit = static_cast<int>(s.integer("bitrate_kbit")),
            .hardware = s.flag("hardware_encoder"),
            .looks = looker_.get(),
            .changed = [this](bool annotating, const std::string& why) { tell(annotating, why); },
            .left = [this](Duration lag) {
              pictures_.add();
              lag_.set(seconds(lag));
            },
            .encodes_for_rtmp = [](const std::string& what) {
              log::info("stream.encoding", "the stream is encoded again, because RTMP does not carry it as it is")
                  .with("what", what);
            },
            .left_out = [this] { left_out_.add(); }};
  }
  void tell(bool annotating, const std::string& why) {
    annotating_.set(annotating ? 1 : 0);
    if (annotating) {
      log::info("stream.annotating", "what is detected is drawn into the pictures").with("why", why);
    } else {
      fallbacks_.add();
      log::warn("stream.passing", "pictures are handed on as they came").with("why", why);
    }
  }

  const bool draw_;
  net::Gauge& annotating_;
  net::Counter& fallbacks_;
  net::Counter& pictures_;
  net::Gauge& lag_;
  net::Counter& left_out_;
  const std::unique_ptr<StreamVoice> voice_;
  const std::unique_ptr<stream_worker::Looker> looker_;
  ffmpeg::Annotator annotator_;
};

// A publisher comes back at any moment, and the hub is near: longer delays would only cost pictures.
forward::Policy policy_of(const Settings& s) {
  forward::Policy policy = read_policy(s);
  if (s.origin("retry_max_delay_ms") == "default") policy.retry.cap = std::max(policy.retry.first, Duration(2s));
  return policy;
}

Status check_plane(const Settings& s) {
  if (s.text("control_plane_url").empty()) return ok();
  boost::asio::io_context io;
  auto client = net::HttpClient::create(io, s.text("control_plane_url"), {.ca_file = s.text("control_plane_ca_file")});
  return client ? ok() : Status(forward::failure(forward::Kind::config_invalid, client.error().message));
}

ForwardJob make_job(const Settings& s, const Secret& from, const Secret& to, egress::Identity identity) {
  ffmpeg::CopyInputConfig input{.url = from,
                                .connect_timeout = s.duration("connect_timeout_s"),
                                .stall_timeout = s.duration("stall_timeout_s")};
  ffmpeg::PublishConfig output{.url = to,
                               .connect_timeout = s.duration("connect_timeout_s"),
                               .stall_timeout = s.duration("dest_stall_timeout_s")};
  auto make_ends = [&s, input, output](egress::SendRight& right, net::Metrics& metrics) mutable {
    output.may_send = [&right](Instant now) { return right.keeps(now); };
    egress::Ends ends{.input = [input] { return ffmpeg::make_copy_input(input); },
                      .output = [output] { return ffmpeg::make_publish_output(output); }};
    if (!Annotation::draws(s) && !s.flag("rtmp_output")) return ends;
    auto annotation = std::make_shared<Annotation>(s, right, metrics);
    ends.input = [annotation, plain = ends.input] { return annotation->wrap(plain()); };
    return ends;
  };
  return {.identity = std::move(identity),
          .voice = kVoice,
          .port_setting = "prom_stream_port",
          .policy = policy_of(s),
          .exit_at_deadline = kExitLeaseLost,
          .ends = make_ends};
}

Result<int> stream(const Arguments& arguments) {
  TRY(settings, set_up_forward(arguments, kNames));
  Secret base = settings.secret("mediamtx_rtsp_base");
  TRY(from, forward::hub_url(base, settings.text("stream_id"), "in"));
  TRY(to, forward::hub_url(base, settings.text("stream_id"), "out"));
  TRY(identity, read_identity(settings));
  TRY(reachable, check_plane(settings));
  log::set_common("inputUrl", redact_url(from.reveal()));
  warn_of_exposed(settings, kVoice, {});
  identity.restarts = count_restarts(forward_log_folder(settings), kNames.file, identity);
  ForwardProcess process(settings, make_job(settings, from, to, std::move(identity)));
  TRY(started, process.start());
  process.run();
}

}  // namespace

int refuse_stream(const Error& error) { return refuse_forward(kVoice, error); }

Command stream_command() {
  return {"stream",
          "Process one published stream: read live/<id>/in from a hub, publish live/<id>/out",
          "weir-worker stream --stream-id demo --run-id r1 --instance-id i1 --mediamtx-rtsp-base rtsp://127.0.0.1:8554\n"
          "weir-worker stream --config stream.yaml",
          "stream-worker",
          {},
          stream,
          kDefaults};
}

}  // namespace weir::apps
