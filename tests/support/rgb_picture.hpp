// RgbPicture: a picture in memory for tests of detectors, frames of the real footage among them, and where the foreign
// parts lie that such tests need. Test thread only.
#pragma once

#include "where.hpp"

#include "weir/ports/video_source.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace weir::testing {

class RgbPicture final : public Picture {
 public:
  RgbPicture(int width, int height, std::vector<std::uint8_t> rgb)
      : width_(width), height_(height), rgb_(std::move(rgb)) {
    for (size_t i = 0; i + 2 < rgb_.size(); i += 3)
      luma_.push_back(static_cast<std::uint8_t>((rgb_[i] * 77 + rgb_[i + 1] * 150 + rgb_[i + 2] * 29) >> 8));
  }
  // All of one grey.
  RgbPicture(int width, int height, std::uint8_t grey = 128)
      : RgbPicture(width, height, std::vector<std::uint8_t>(static_cast<size_t>(width * height * 3), grey)) {}

  int width() const override { return width_; }
  int height() const override { return height_; }
  const std::uint8_t* luma() const override { return luma_.data(); }
  int luma_stride() const override { return width_; }
  // Bilinear, between the centres of pixels.
  bool to_rgb(Region from, int out_width, int out_height, std::span<std::uint8_t> out) const override {
    for (int y = 0; y < out_height; ++y) {
      double sy = std::clamp((y + 0.5) * from.height / out_height - 0.5, 0.0, from.height - 1.0);
      for (int x = 0; x < out_width; ++x) {
        double sx = std::clamp((x + 0.5) * from.width / out_width - 0.5, 0.0, from.width - 1.0);
        for (int c = 0; c < 3; ++c) out[static_cast<size_t>((y * out_width + x) * 3 + c)] = between(from, sx, sy, c);
      }
    }
    return true;
  }
  std::string to_jpeg(int, int) const override { return ""; }

 private:
  double at(int x, int y, int c) const {
    return rgb_[static_cast<size_t>((std::min(y, height_ - 1) * width_ + std::min(x, width_ - 1)) * 3 + c)];
  }
  std::uint8_t between(const Region& from, double sx, double sy, int c) const {
    int x = static_cast<int>(sx), y = static_cast<int>(sy);
    double fx = sx - x, fy = sy - y;
    x += from.x, y += from.y;
    double top = at(x, y, c) * (1 - fx) + at(x + 1, y, c) * fx;
    double bottom = at(x, y + 1, c) * (1 - fx) + at(x + 1, y + 1, c) * fx;
    return static_cast<std::uint8_t>(top * (1 - fy) + bottom * fy + 0.5);
  }

  int width_, height_;
  std::vector<std::uint8_t> rgb_, luma_ = {};
};

// A foreign part fetched by tools/parts; "" where it is not there, and the test that needs it is skipped.
inline std::string part(const std::string& path) {
  const char* folder = std::getenv("WEIR_PARTS");
  std::string full = fmt::format("{}/{}", folder != nullptr ? folder : WEIR_SOURCE_DIR "/build/parts", path);
  return std::filesystem::exists(full) ? full : "";
}

// One frame of the footage of pedestrians (768x576), decoded by the ffmpeg command; nothing where either is missing.
inline PicturePtr footage_frame(int second) {
  constexpr int kWidth = 768, kHeight = 576;
  std::string command = fmt::format("ffmpeg -v quiet -nostdin -ss {} -i '{}' -frames:v 1 -pix_fmt rgb24 -f rawvideo -",
                                    second, part("footage/vtest.avi"));
  std::vector<std::uint8_t> rgb(kWidth * kHeight * 3);
  FILE* pipe = popen(command.c_str(), "re");
  size_t bytes = pipe != nullptr ? std::fread(rgb.data(), 1, rgb.size(), pipe) : 0;
  if (pipe != nullptr) pclose(pipe);
  return bytes == rgb.size() ? std::make_shared<RgbPicture>(kWidth, kHeight, std::move(rgb)) : nullptr;
}

}  // namespace weir::testing
