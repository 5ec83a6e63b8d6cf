// Advice: what in a camera's configuration is well-formed and still surely a mistake.
//
// Such a configuration is accepted, because Weir may learn what is wrong with it only later: the size of the picture
// when the camera first streams, the labels of a model when a runner that has it registers. Each warning says what is
// wrong, with the numbers, and what to write instead; it is shown until the configuration is mended. Advice does not
// warn of what it does not know. The work grows with the number of points and labels alone: the control plane advises
// on every camera of a list. Pure functions; any thread.
#pragma once

#include "weir/camera/config.hpp"

#include <string>
#include <vector>

namespace weir::camera {

struct Warning {
  std::string code;     // zone_relative, zone_tiny, zone_outside, zone_partly_outside, label_unknown
  std::string field;    // "zones[0].polygon", "allow_labels[1]"
  std::string message;  // a sentence for a person
};

struct Facts {
  std::optional<FrameSize> stream = {};              // the picture of the camera's main stream; none: unknown
  const std::vector<std::string>* labels = nullptr;  // what the camera's model can say, sorted; null: unknown
};

inline constexpr size_t kWarningsMax = 20;  // of one camera; the others appear when these are mended

std::vector<Warning> advise(const Config& config, const Facts& facts);
// On one zone of this camera; fields are named as in the zone's own body: "polygon".
std::vector<Warning> advise_on(const Zone& zone, const Config& config, const Facts& facts);

// The label that was probably meant: the same but for case, else one that differs in at most two letters (in one
// where the label is short). "" where none is near.
std::string nearest_label(const std::string& wrong, const std::vector<std::string>& labels);

}  // namespace weir::camera
