#include "weir/opencv/hog.hpp"

#include "hog_module.hpp"

#include "weir/base/shared_library.hpp"

#include <cmath>

namespace weir::opencv {

namespace {

constexpr int kWidthMax = 800;  // the time grows with the area, and people near a camera of many pixels are large
constexpr int kPeopleMax = 100;

class HogDetector final : public Detector {
 public:
  explicit HogDetector(WeirHogPeople people) : people_(people) {}

  Result<std::vector<std::vector<Detection>>> detect(std::span<const Look> looks) override {
    std::vector<std::vector<Detection>> all;
    for (const Look& look : looks) {
      TRY(found, find(look));
      all.push_back(std::move(found));
    }
    return all;
  }

 private:
  Result<std::vector<Detection>> find(const Look& look) {
    Region region = region_of(look);
    double scale = std::min(1.0, double(kWidthMax) / region.width);
    int width = std::max(1, int(std::lround(region.width * scale)));
    int height = std::max(1, int(std::lround(region.height * scale)));
    rgb_.resize(3 * static_cast<size_t>(width) * static_cast<size_t>(height));
    if (!look.picture->to_rgb(region, width, height, rgb_))
      return stream_failure(restart::StreamErrorCode::codec_unsupported, "its pixels cannot be converted");
    WeirHogPerson people[kPeopleMax];
    int count = people_(rgb_.data(), width, height, people, kPeopleMax);
    if (count < 0) return model_failure("OpenCV's people detector failed");
    std::vector<Detection> found;
    for (const WeirHogPerson& p : std::span(people, static_cast<size_t>(count))) {
      Box box = clipped({region.x + p.x / scale, region.y + p.y / scale, region.x + (p.x + p.width) / scale,
                         region.y + (p.y + p.height) / scale},
                        region);
      if (p.score >= look.min_score && box.x1 < box.x2 && box.y1 < box.y2) found.push_back({"person", p.score, box});
    }
    return found;
  }

  WeirHogPeople people_;
  std::vector<std::uint8_t> rgb_;
};

}  // namespace

Result<std::unique_ptr<Detector>> make_hog(const ModelFiles& files) {
  TRY(library, for_model(load_library(files.library)));
  TRY(people, for_model(find_symbol(library, "weir_hog_people")));
  return std::unique_ptr<Detector>(std::make_unique<HogDetector>(reinterpret_cast<WeirHogPeople>(people)));
}

}  // namespace weir::opencv
