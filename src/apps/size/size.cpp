#include "admin/admin.hpp"
#include "common/print.hpp"
#include "measuring.hpp"
#include "runner/runner.hpp"
#include "size_options.hpp"
#include "size_view.hpp"

#include "weir/base/spawn.hpp"
#include "weir/posix/child_process.hpp"

#include <boost/asio/io_context.hpp>

#include <unistd.h>

#include <cmath>
#include <cstdio>

namespace weir::apps {

namespace asio = boost::asio;

namespace {

constexpr Duration kPatience = 2min;
constexpr std::string_view kUsualSizes = "1920x1080,1280x720,640x360";

Result<SizeQuestion> read_question(const Arguments& arguments) {
  SizeQuestion question;
  TRY(looks, arguments.number("fps"));
  if (looks && (*looks < 0.1 || *looks > 60)) return usage_error("--fps must be between 0.1 and 60");
  TRY(cameras, arguments.number("cameras"));
  if (cameras && (*cameras < 1 || *cameras > 100000 || *cameras != std::floor(*cameras)))
    return usage_error("--cameras must be a whole number between 1 and 100000");
  if (looks) question.looks_fps = {*looks};
  // A person who gives only a number of cameras means cameras of the default kind.
  else if (cameras) question.looks_fps = {6};
  if (cameras) question.cameras = static_cast<int>(*cameras);
  return question;
}

Result<int> size(const Arguments& arguments) {
  TRY(settings, arguments.settings());
  TRY(question, read_question(arguments));
  TRY(checked, read_size_options(arguments));  // the helper reads them again
  std::vector<std::string> words = passed_on(settings, "size");
  std::string sizes = arguments.has("resolution") ? arguments.text("resolution")
                      : question.cameras          ? "1920x1080"
                                                  : std::string(kUsualSizes);
  words.insert(words.end(), {"--resolution", sizes});
  for (const char* option : {"codec", "stream-fps", "model"})
    if (arguments.has(option)) words.insert(words.end(), {fmt::format("--{}", option), arguments.text(option)});
  if (::isatty(2) == 1) std::fputs("measuring this machine: up to half a minute\n", stderr);
  asio::io_context io(1);
  RealClock clock;
  posix::PosixHost host(io);
  Result<sizing::Measurement> measured = Error{Errc::internal, "measure", "nothing was measured"};
  auto ask = [&]() -> asio::awaitable<void> {
    measured = co_await measure_machine(host, clock, std::move(words), kPatience);
  };
  spawn(io.get_executor(), ask(), "measuring");
  io.run();
  if (!measured) return measured.error();
  if (arguments.has("json")) print_json(size_json(*measured, question));
  else print(readable_size(*measured, question));
  return 0;
}

}  // namespace

std::vector<Command> size_commands() {
  return {{"size",
           "Measure this machine and say how many cameras fit on it",
           "weir size\nweir size --cameras 40 --fps 6 --resolution 1920x1080\n"
           "weir size --resolution 3840x2160 --codec hevc --json",
           "size",
           {{"cameras", "N", "How many cameras you have: says whether they fit, and what would help"},
            {"fps", "F", "How many times a second each is looked at (its max_fps); 2, 6 and 12 by default"},
            {"resolution", "WxH,…", "What they send; 1920x1080, 1280x720 and 640x360 by default"},
            {"stream-fps", "N", "Pictures a second that they send; 25 by default"},
            {"codec", "CODEC", "h264 (default), hevc or mjpeg"},
            {"model", "DETECTOR/NAME", "Another than the default model; none leaves the detector out"},
            {"json", "", "Print JSON"}},
           size}};
}

}  // namespace weir::apps
