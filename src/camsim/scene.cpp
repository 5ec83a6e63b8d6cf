#include "scene.hpp"

#include "gst.hpp"

#include <gst/app/gstappsink.h>

#include <filesystem>

namespace weir::camsim {

namespace {

constexpr int kTurnSeconds = 10;      // of `halfstill`
constexpr double kShortSeconds = 20;  // of scenes that are not as long as the footage

size_t pixels_bytes(const Profile& p) { return static_cast<size_t>(p.width) * static_cast<size_t>(p.height) * 3 / 2; }

class Footage final : public FrameSource {
 public:
  Footage(const Profile& profile, Pipeline pipeline)
      : pipeline_(std::move(pipeline)), out_(pipeline_.element<GstAppSink>("out")), picture_(pixels_bytes(profile)) {
    pipeline_.play();
  }

  Result<const Pixels*> next() override {
    GstSample* sample = gst_app_sink_pull_sample(out_.get());
    if (sample == nullptr) {
      TRY(healthy, pipeline_.status());
      return nullptr;
    }
    gsize copied = gst_buffer_extract(gst_sample_get_buffer(sample), 0, picture_.data(), picture_.size());
    gst_sample_unref(sample);
    if (copied != picture_.size()) return Error{Errc::internal, "bad_video", "a decoded picture has the wrong size"};
    return &picture_;
  }

 private:
  Pipeline pipeline_;
  Ref<GstAppSink> out_;
  Pixels picture_;
};

// Shows the pictures of another source, and repeats the last one while `stands` says so.
class Standing final : public FrameSource {
 public:
  Standing(std::unique_ptr<FrameSource> from, std::function<bool(std::int64_t)> stands)
      : from_(std::move(from)), stands_(std::move(stands)) {}

  Result<const Pixels*> next() override {
    if (shown_++ > 0 && stands_(shown_ - 1)) return last_;
    TRY(picture, from_->next());
    return last_ = picture;
  }

 private:
  std::unique_ptr<FrameSource> from_;
  std::function<bool(std::int64_t)> stands_;
  const Pixels* last_ = nullptr;
  std::int64_t shown_ = 0;
};

// A shaded wall and a light square that crosses it once in the loop and comes back, so that the loop has no jump.
class Wandering final : public FrameSource {
 public:
  Wandering(const Profile& profile, int frames)
      : profile_(profile), frames_(frames), picture_(pixels_bytes(profile), 128) {}

  Result<const Pixels*> next() override {
    int width = profile_.width, height = profile_.height, side = height / 6;
    double way = static_cast<double>(shown_++ % frames_) / frames_;  // 0 … 1
    double there = way < 0.5 ? way * 2 : 2 - way * 2;                // 0 … 1 … 0
    int left = static_cast<int>(there * (width - side)), top = height / 3 + static_cast<int>(there * height / 3);
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x) {
        bool inside = x >= left && x < left + side && y >= top && y < top + side;
        picture_[static_cast<size_t>(y) * static_cast<size_t>(width) + static_cast<size_t>(x)] =
            static_cast<std::uint8_t>(inside ? 210 : 60 + 60 * x / width + 30 * y / height);
      }
    return &picture_;
  }

 private:
  const Profile profile_;
  const int frames_;
  Pixels picture_;
  int shown_ = 0;
};

class Limited final : public FrameSource {
 public:
  Limited(std::unique_ptr<FrameSource> from, int frames) : from_(std::move(from)), left_(frames) {}
  Result<const Pixels*> next() override {
    if (left_ == 0) return nullptr;
    --left_;
    return from_->next();
  }

 private:
  std::unique_ptr<FrameSource> from_;
  int left_;
};

Result<std::unique_ptr<FrameSource>> open_footage(const Profile& p, const std::string& file) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file, ignored))
    return Error{Errc::not_found, "no_footage", fmt::format("there is no video file \"{}\"", file)};
  TRY(pipeline,
      Pipeline::create(fmt::format("filesrc name=in ! decodebin ! videoconvert ! videoscale ! videorate ! "
                                   "video/x-raw,format=I420,width={},height={},framerate={}/1,pixel-aspect-ratio=1/1 ! "
                                   "appsink name=out sync=false max-buffers=4",
                                   p.width, p.height, p.fps)));
  g_object_set(pipeline.element<GstElement>("in").get(), "location", file.c_str(), nullptr);
  return std::unique_ptr<FrameSource>(std::make_unique<Footage>(p, std::move(pipeline)));
}

}  // namespace

Result<std::unique_ptr<FrameSource>> FrameSource::create(const Profile& p, const std::string& footage_file) {
  bool endless = p.scene == Scene::still || p.scene == Scene::moving;
  double seconds = p.seconds > 0 ? p.seconds : endless ? kShortSeconds : 1000;
  int frames = std::clamp(static_cast<int>(seconds * p.fps), 1, 65'535);  // more do not fit into the stamp
  std::unique_ptr<FrameSource> scene;
  if (p.scene == Scene::moving) {
    scene = std::make_unique<Wandering>(p, frames);
  } else {
    TRY(footage, open_footage(p, footage_file));
    scene = std::move(footage);
    if (p.scene == Scene::still) scene = std::make_unique<Standing>(std::move(scene), [](auto) { return true; });
    if (p.scene == Scene::halfstill)
      scene = std::make_unique<Standing>(
          std::move(scene), [turn = kTurnSeconds * p.fps](std::int64_t shown) { return shown / turn % 2 == 1; });
  }
  return std::unique_ptr<FrameSource>(std::make_unique<Limited>(std::move(scene), frames));
}

}  // namespace weir::camsim
