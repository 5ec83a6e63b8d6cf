#include "measuring.hpp"

#include "common/detector_folders.hpp"
#include "common/files.hpp"
#include "runner/runner.hpp"

#include "weir/base/log.hpp"
#include "weir/posix/child_process.hpp"
#include "weir/posix/machine.hpp"

#include <boost/asio/experimental/awaitable_operators.hpp>

#include <sys/stat.h>

#include <algorithm>
#include <cmath>

namespace weir::apps {

namespace asio = boost::asio;
using namespace asio::experimental::awaitable_operators;

namespace {

constexpr Duration kFirstStartMax = 20s;  // it takes four; of a machine that is so busy, nothing is learned
constexpr size_t kFileBytesMax = 1 << 16;

// Another file, another measurement. A library of the system's, outside of library_dir, is not looked at.
std::string about_file(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return "none";
  return fmt::format("{} {} {}", path.substr(path.rfind('/') + 1), found.st_size, found.st_mtim.tv_sec);
}

// What the costs of a picture depend on.
json::object identity_of(const Settings& settings) {
  posix::MachineFacts machine = posix::machine_facts();
  DetectorFolders folders = detector_folders(settings);
  return {{"cpu", machine.cpu},
          {"processors", machine.processors},
          {"model", about_file(fmt::format("{}/{}.tflite", folders.models, kDefaultModel))},
          {"onnx", about_file(fmt::format("{}/{}", folders.libraries, kOnnxLibrary))},
          {"tflite", about_file(fmt::format("{}/{}", folders.libraries, kTfliteLibrary))}};
}

struct Kept {
  json::object identity;
  std::string measured_at;
  sizing::Measurement measurement;
};
template <class V>
void fields(V& v, Kept& k) {
  v.required("identity", k.identity);
  v.required("measured_at", k.measured_at);
  v.required("measurement", k.measurement);
}

// Compared as text: in a file, 2 and 2.0 are one number.
bool same(const json::object& a, const json::object& b) {
  return json::to_text(a) == json::to_text(b);
}

std::string counted(double n, std::string_view what) { return fmt::format("{:g} {}{}", n, what, n == 1 ? "" : "s"); }

// An optional, because the two that race must have a default.
asio::awaitable<std::optional<Result<sizing::Measurement>>> ask(ProcessHost& host, std::vector<std::string> arguments) {
  std::string helper = posix::helper_path("worker");
  arguments.insert(arguments.begin(), {"measure", "--json"});
  auto started = host.start({.path = helper, .arguments = std::move(arguments)});
  if (!started) co_return started.error();
  auto line = co_await (*started)->read_line();
  int code = co_await (*started)->wait();
  if (!line || code != 0)
    co_return Error{Errc::unavailable, "measure", fmt::format("`{} measure` ended with exit code {}", helper, code)};
  co_return json::read_text<sizing::Measurement>(*line);
}

}  // namespace

asio::awaitable<Result<sizing::Measurement>> measure_machine(ProcessHost& host, Clock& clock,
                                                             std::vector<std::string> arguments, Duration limit) {
  auto first = co_await (ask(host, std::move(arguments)) || clock.wait(limit));
  if (first.index() == 0) co_return *std::get<0>(std::move(first));
  co_return Error{Errc::unavailable, "measure", fmt::format("measuring took longer than {:g} s", seconds(limit))};
}

Capacity capacity_from(const sizing::Measurement& measured, std::string_view measured_at) {
  const sizing::Measured& size = measured.sizes.front();
  sizing::Kind kind{.width = size.width, .height = size.height, .stream_fps = measured.stream_fps};
  int cameras = std::max(1, sizing::fit(size.costs, kind, measured.machine(), sizing::kUsualMotion).cameras);
  return {cameras, fmt::format("{}: {}, {:.1f} ms a picture, measured on {} at {}", counted(cameras, "camera"),
                               counted(measured.processors, "processor"), size.costs.detect_ms, measured.cpu,
                               measured_at)};
}

Capacity capacity_guessed(double processors, std::string_view why) {
  int cameras = std::max(1, static_cast<int>(processors * sizing::kCamerasPerProcessor));
  return {cameras, fmt::format("{}: {} of {} each, a guess: this machine could not be measured ({})",
                               counted(cameras, "camera"), counted(processors, "processor"),
                               sizing::kCamerasPerProcessor, why)};
}

asio::awaitable<Capacity> machine_capacity(ProcessHost& host, Clock& clock, const Settings& settings) {
  std::string path = settings.text("state_dir") + "/machine.json";
  json::object identity = identity_of(settings);
  auto text = read_file(path, kFileBytesMax);
  auto kept = text ? json::read_text<Kept>(*text) : Result<Kept>(text.error());
  if (kept && same(kept->identity, identity)) co_return capacity_from(kept->measurement, kept->measured_at);
  log::info("runner.measuring", kept ? "this machine is another than when it was measured; it is measured again"
                                     : "this machine is measured once, for a few seconds");
  std::vector<std::string> arguments = passed_on(settings, "size");
  arguments.emplace_back("--quick");
  auto measured = co_await measure_machine(host, clock, std::move(arguments), kFirstStartMax);
  double processors = posix::machine_facts().processors;
  if (!measured) co_return capacity_guessed(processors, measured.error().message);
  // The guess is not kept: the model or library that is missing may be there at the next start.
  if (measured->detector_error) co_return capacity_guessed(processors, *measured->detector_error);
  Kept fresh{std::move(identity), to_iso(clock.wall()), *measured};
  if (auto written = write_file(path, json::to_text(json::write_value(fresh)) + "\n", 0600); !written)
    log::warn("runner.capacity", written.error().message);
  co_return capacity_from(*measured, fresh.measured_at);
}

}  // namespace weir::apps
