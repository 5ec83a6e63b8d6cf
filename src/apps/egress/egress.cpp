#include "egress.hpp"

#include "forward/forward_process.hpp"
#include "forward/run_record.hpp"

#include "weir/base/log.hpp"
#include "weir/ffmpeg/copy.hpp"

namespace weir::apps {

namespace {

constexpr std::pair<std::string_view, std::string_view> kDefaults[] = {{"log_dir", "logs"}};
constexpr ForwardNames kNames{"egress-forwarder", "egress"};
constexpr std::string_view kSecrets[] = {"dest_rtmp_url"};

std::string shown_host(const forward::Destination& to) {
  bool usual = to.port == (to.tls ? 443 : 1935);
  return usual ? to.host : fmt::format("{}:{}", to.host, to.port);
}

ForwardJob make_job(const Settings& s, const Secret& input_url, const forward::Destination& to,
                    egress::Identity identity) {
  ffmpeg::CopyInputConfig input{.url = input_url,
                                .connect_timeout = s.duration("connect_timeout_s"),
                                .stall_timeout = s.duration("stall_timeout_s")};
  ffmpeg::CopyOutputConfig output{.to = to,
                                  .connect_timeout = s.duration("dest_connect_timeout_s"),
                                  .stall_timeout = s.duration("dest_stall_timeout_s"),
                                  .tls_verify = s.flag("dest_tls_verify"),
                                  .ca_file = s.text("dest_ca_file")};
  return {.identity = std::move(identity),
          .voice = {},
          .port_setting = "prom_egress_port",
          .policy = read_policy(s),
          .ends = [input, output](egress::SendRight& right, net::Metrics&) mutable {
            output.may_send = [&right](Instant now) { return right.keeps(now); };
            return egress::Ends{.input = [input] { return ffmpeg::make_copy_input(input); },
                                .output = [output] { return ffmpeg::make_copy_output(output); }};
          }};
}

Result<int> egress(const Arguments& arguments) {
  TRY(settings, set_up_forward(arguments, kNames));
  if (!settings.flag("egress_enabled")) {
    log::info("egress.disabled", "EGRESS_ENABLED is false: nothing is forwarded");
    return forward::kExitClean;
  }
  TRY(input, forward::hub_url(settings.secret("mediamtx_rtsp_base"), settings.text("stream_id"), "out"));
  TRY(identity, read_identity(settings));
  TRY(to, forward::read_destination(settings.secret("dest_rtmp_url")));
  log::set_common("inputUrl", redact_url(input.reveal()));
  log::set_common("destHost", shown_host(to));
  log::set_common("destApp", to.app);
  warn_of_exposed(settings, {}, kSecrets);
  identity.restarts = count_restarts(forward_log_folder(settings), kNames.file, identity);
  ForwardProcess process(settings, make_job(settings, input, to, std::move(identity)));
  TRY(started, process.start());
  process.run();
}

}  // namespace

int refuse_egress(const Error& error) { return refuse_forward({}, error); }

Command egress_command() {
  return {"egress",
          "Forward one published stream to one RTMP destination, as it is",
          "weir-egress --config forward.yaml\n"
          "echo 'dest_rtmp_url: rtmp://live.example.com/app/KEY' | weir-egress --config - --egress-enabled true "
          "--stream-id s1 --run-id r1 --instance-id i1",
          "egress",
          {},
          egress,
          kDefaults};
}

}  // namespace weir::apps
