#include "measure.hpp"

#include "common/print.hpp"
#include "detectors.hpp"

#include "weir/base/clock.hpp"
#include "weir/base/log.hpp"
#include "weir/ffmpeg/clip.hpp"
#include "weir/ffmpeg/source.hpp"
#include "weir/motion/gate.hpp"
#include "weir/posix/machine.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <ctime>
#include <latch>
#include <thread>

namespace weir::apps {

namespace {

// How long each kind of work is repeated. The detector's work costs most and decides most.
struct Times {
  Duration encode, decode, keyframe, gate, detect;
};
constexpr Times kThorough{3s, 800ms, 400ms, 300ms, 1500ms}, kQuick{1200ms, 400ms, 200ms, 150ms, 1000ms};

double cpu_ms() {
  timespec used{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) * 1e3 + static_cast<double>(used.tv_nsec) / 1e6;
}

// A file without a name: gone with this process, however it ends.
class MemoryFile {
 public:
  MemoryFile() : fd_(::memfd_create("clip", MFD_CLOEXEC)) {}
  ~MemoryFile() { ::close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  std::string path() const { return fmt::format("/proc/self/fd/{}", fd_); }

 private:
  const int fd_;
};

struct Repeated {
  double each_ms = 0;  // processor time
  double per_s = 0;
};

// One thread's part of a measurement: what is made before the clock runs, then the same work again and again, which
// answers how many pictures it was.
using Work = std::function<Result<int>()>;
using Prepare = std::function<Result<Work>()>;

Result<Repeated> repeat(int threads, Duration time, const Prepare& prepare) {
  std::latch ready(threads + 1);
  std::atomic<long> pictures = 0;
  std::vector<Status> ended(static_cast<size_t>(threads), ok());
  std::atomic<std::int64_t> until = 0;
  std::vector<std::jthread> running;
  for (Status& end : ended)
    running.emplace_back([&] {
      Result<Work> work = prepare();
      ready.arrive_and_wait();
      if (!work) return (void)(end = work.error());
      do {
        Result<int> done = (*work)();
        if (!done) return (void)(end = done.error());
        pictures += *done;
      } while (until == 0 || boot_now().time_since_epoch().count() < until);
    });
  ready.arrive_and_wait();
  Instant began = boot_now();
  double before = cpu_ms();
  until = (began + time).time_since_epoch().count();
  running.clear();
  double used = cpu_ms() - before, took = seconds(boot_now() - began);
  for (const Status& end : ended)
    if (!end) return end.error();
  auto count = static_cast<double>(std::max(1L, pictures.load()));
  return Repeated{used / count, count / took};
}

// A clip in memory, as each thread reads it.
class Clip {
 public:
  static Result<std::unique_ptr<Clip>> encode(const MeasurePlan& plan, const camera::FrameSize& size, Duration time_max) {
    auto clip = std::make_unique<Clip>();
    ffmpeg::ClipConfig config{plan.streams.codec, size.width, size.height, plan.streams.stream_fps, time_max};
    TRY(facts, ffmpeg::write_clip(clip->file_.path(), config));
    clip->kbit_ = facts.kbit;
    return clip;
  }
  int kbit() const { return kbit_; }

  struct Reading {
    std::unique_ptr<VideoSource> source;
    std::vector<PacketPtr> packets;
  };
  Result<std::shared_ptr<Reading>> read() const {
    ffmpeg::SourceConfig config;
    config.url = Secret("file://" + file_.path());
    config.files = true;
    config.realtime = false;
    auto out = std::make_shared<Reading>();
    TRY(source, ffmpeg::make_source(config));
    out->source = std::move(source);
    TRY(facts, out->source->open());
    for (auto packet = out->source->read(); packet; packet = out->source->read()) out->packets.push_back(*packet);
    if (out->packets.empty() || !out->packets.front()->key)
      return Error{Errc::internal, "clip", "the clip that was encoded for measuring cannot be read"};
    return out;
  }
  // The clip's pictures, decoded: these are shown to gate and detector.
  Result<std::vector<PicturePtr>> pictures() const {
    TRY(reading, read());
    std::vector<PicturePtr> all;
    for (const PacketPtr& packet : reading->packets) {
      TRY(some, reading->source->decode(packet));
      all.insert(all.end(), some.begin(), some.end());
    }
    if (all.empty()) return Error{Errc::internal, "clip", "the clip that was encoded for measuring shows no picture"};
    return all;
  }

 private:
  MemoryFile file_;
  int kbit_ = 0;
};

Prepare decoding(const Clip& clip) {
  return [&clip]() -> Result<Work> {
    TRY(reading, clip.read());
    return Work([reading = std::move(reading)]() -> Result<int> {
      reading->source->restart_decoder();
      for (const PacketPtr& packet : reading->packets) {
        TRY(decoded, reading->source->decode(packet));
      }
      return static_cast<int>(reading->packets.size());
    });
  };
}

Prepare keyframes(const Clip& clip) {
  return [&clip]() -> Result<Work> {
    TRY(reading, clip.read());
    return Work([reading = std::move(reading)]() -> Result<int> {
      TRY(decoded, reading->source->decode_alone(reading->packets.front()));
      return 1;
    });
  };
}

Prepare gating(const std::vector<PicturePtr>& pictures) {
  return [&pictures]() -> Result<Work> {
    auto gate = std::make_shared<motion::MotionGate>(camera::MotionGating{});
    return Work([gate, &pictures, next = size_t{0}]() mutable -> Result<int> {
      const Picture& picture = *pictures[next++ % pictures.size()];
      gate->look(picture.luma(), picture.luma_stride(), picture.width(), picture.height());
      return 1;
    });
  };
}

// The first look is not counted: libraries prepare themselves then.
Prepare detecting(const std::vector<PicturePtr>& pictures, const DetectorFactory& make, const camera::Model& model) {
  return [&pictures, &make, &model]() -> Result<Work> {
    TRY(made, make(model));
    auto detector = std::shared_ptr<Detector>(std::move(made));
    Work work = [detector, &pictures, next = size_t{0}]() mutable -> Result<int> {
      std::vector<Look> looks(detector->batch_max());
      for (Look& look : looks) look = {pictures[next++ % pictures.size()], {}, 0.3};
      TRY(found, detector->detect(looks));
      return static_cast<int>(looks.size());
    };
    TRY(first, work());
    return work;
  };
}

std::string name_of(const camera::Model& model) {
  std::string name = !model.name.empty() ? model.name : model.detector == "tflite" ? kDefaultModel : "";
  return name.empty() ? model.detector : model.detector + "/" + name;
}

// What everything on the machine uses, in per cent of all processors, while this process waits.
double busy_now() {
  posix::Machine machine;
  machine.look({});
  ::usleep(300'000);
  return machine.look({}).host_cpu_pct;
}

}  // namespace

Result<sizing::Measurement> measure(const MeasurePlan& plan, const DetectorFactory& make) {
  Instant began = boot_now();
  posix::MachineFacts facts = posix::machine_facts();
  sizing::Measurement out{.cpu = facts.cpu, .processors = facts.processors, .memory_mb = facts.memory_mb};
  out.busy_pct = busy_now();
  out.model = name_of(plan.streams.model);
  out.codec = plan.streams.codec;
  out.stream_fps = plan.streams.stream_fps;
  const Times& times = plan.quick ? kQuick : kThorough;
  int threads = std::max(1, static_cast<int>(std::ceil(facts.processors)));
  for (const camera::FrameSize& size : plan.streams.sizes) {
    sizing::Measured one{.width = size.width, .height = size.height};
    TRY(clip, Clip::encode(plan, size, times.encode));
    one.kbit = clip->kbit();
    TRY(pictures, clip->pictures());
    TRY(full, repeat(threads, times.decode, decoding(*clip)));
    TRY(key, repeat(threads, times.keyframe, keyframes(*clip)));
    TRY(gate, repeat(threads, times.gate, gating(pictures)));
    one.costs = {.decode_ms = full.each_ms, .keyframe_ms = key.each_ms, .gate_ms = gate.each_ms};
    if (!out.detector_error && plan.streams.model.detector != "none") {
      auto looks = repeat(threads, times.detect, detecting(pictures, make, plan.streams.model));
      if (looks) one.costs.detect_ms = looks->each_ms, one.looks_per_s = looks->per_s;
      else out.detector_error = looks.error().message;
    }
    out.sizes.push_back(one);
  }
  out.took_s = seconds(boot_now() - began);
  return out;
}

namespace {

Result<int> run_measure(const Arguments& arguments) {
  log::set_level(log::Level::off);
  TRY(settings, arguments.settings());
  TRY(options, read_size_options(arguments));
  TRY(measured, measure({options, arguments.has("quick")}, detector_factory(detector_folders(settings))));
  if (arguments.has("json")) {
    print_line(json::to_text(json::write_value(measured)));
    return 0;
  }
  Table table({"RESOLUTION", "DECODE MS", "KEYFRAME MS", "GATE MS", "DETECT MS", "LOOKS/S", "KBIT/S"});
  for (const sizing::Measured& each : measured.sizes)
    table.add({fmt::format("{}x{}", each.width, each.height), fmt::format("{:.2f}", each.costs.decode_ms),
               fmt::format("{:.2f}", each.costs.keyframe_ms), fmt::format("{:.2f}", each.costs.gate_ms),
               fmt::format("{:.1f}", each.costs.detect_ms), fmt::format("{:.0f}", each.looks_per_s),
               fmt::format("{}", each.kbit)});
  print(table.text());
  if (measured.detector_error) complain(fmt::format("{} was not measured: {}", measured.model, *measured.detector_error));
  return 0;
}

}  // namespace

Command measure_command() {
  return {.path = "measure",
          .sentence = "Measures what a picture costs on this machine; `weir size` says how many cameras that makes.",
          .example = "weir-worker measure\nweir-worker measure --resolution 1280x720,3840x2160 --codec hevc --json",
          .settings = "size",
          .options = {{"resolution", "WxH,…", "sizes of the picture; 1920x1080 by default"},
                      {"codec", "CODEC", "h264 (default), hevc or mjpeg"},
                      {"stream-fps", "N", "pictures a second that the camera sends; 25 by default"},
                      {"model", "DETECTOR/NAME", "another than the default model; none leaves the detector out"},
                      {"quick", "", "takes about 4 s, for less exact figures"},
                      {"json", "", "prints JSON"}},
          .run = run_measure};
}

}  // namespace weir::apps
