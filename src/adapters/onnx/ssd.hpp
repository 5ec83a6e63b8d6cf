// Ssd: what the last numbers of a quantised detection model mean, before anything merged them into detections.
//
// For each of many places (anchors) the model says a byte for each class, and how the box there differs from the
// anchor. Of all that is certain enough the most certain stays, and what overlaps it goes, whatever its class; then the
// most certain of the rest. The same answers as TensorFlow Lite's own operator gives, which scales, sorts and merges
// all places; here only those above the asked for score are touched. Pure functions; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace weir::onnx {

struct SsdHead {
  struct Anchor {
    float y = 0, x = 0, height = 0, width = 0;  // y and x are its centre's
  };
  std::vector<Anchor> anchors = {};
  int columns = 0;  // bytes a place: classes, and before them those of the background
  int background = 0;
  std::array<float, 256> score_of = {};   // what a byte means; never falls
  std::array<float, 256> offset_of = {};  // of a box against its anchor
  Anchor scale = {1, 1, 1, 1};            // by which these are divided
  float min_score = 0;
  float iou_max = 0;
  int boxes_max = 0;
};

struct SsdBox {
  float top = 0, left = 0, bottom = 0, right = 0;  // shares of the picture
  float score = 0;
  int klass = 0;
};

// Most certain first. `offsets` has four bytes an anchor, `scores` as many as there are columns.
std::vector<SsdBox> find_boxes(const SsdHead& head, std::span<const std::uint8_t> offsets,
                               std::span<const std::uint8_t> scores, double min_score);

}  // namespace weir::onnx
