#include "clip.hpp"

#include "program.hpp"
#include "shard.hpp"
#include "where.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>

namespace weir::test {

namespace fs = std::filesystem;

std::string clip(const std::string& kind) {
  std::string folder = std::string(WEIR_SOURCE_DIR) + "/build/clips", path = folder + "/" + kind + ".mkv";
  if (fs::exists(path)) return path;
  fs::create_directories(folder);
  bool large = kind == "large", people = kind == "people";
  std::vector<std::string> words{
      "ffmpeg", "-nostdin", "-loglevel", "error", "-y", "-f", people ? "avi" : "lavfi", "-i",
      people  ? part("footage/vtest.avi")
      : large ? "testsrc=size=1280x720:rate=25,noise=alls=60:allf=t"
              : "testsrc=size=320x240:rate=25",
      "-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000", "-t", people ? "20" : "6", "-pix_fmt", "yuv420p", "-g",
      "25"};
  auto add = [&](std::vector<std::string> more) { words.insert(words.end(), more.begin(), more.end()); };
  if (kind == "vp8") add({"-c:v", "libvpx", "-deadline", "realtime", "-cpu-used", "8", "-b:v", "500k"});
  else if (kind == "vp9") add({"-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8", "-b:v", "500k"});
  else if (kind == "hevc") add({"-c:v", "libx265", "-preset", "ultrafast", "-x265-params", "log-level=none"});
  else if (kind == "bframes") add({"-c:v", "libx264", "-preset", "veryfast", "-bf", "2"});
  else add({"-c:v", "libx264", "-preset", "ultrafast", "-tune", "zerolatency"});
  if (large) add({"-b:v", "8M", "-maxrate", "8M", "-bufsize", "8M"});
  bool opus = kind == "opus" || kind == "vp8" || kind == "vp9";
  if (kind == "pcm") add({"-c:a", "pcm_mulaw", "-ar", "8000", "-ac", "1"});
  else add({"-c:a", opus ? "libopus" : "aac"});
  std::string draft = fmt::format("{}.{}", path, ::getpid());
  add({"-f", "matroska", draft});
  TempDir notes;
  Program encoder(notes.path() + "/log", words);
  EXPECT_EQ(encoder.wait(60s), 0) << encoder.log();
  fs::rename(draft, path);
  return path;
}

}  // namespace weir::test
