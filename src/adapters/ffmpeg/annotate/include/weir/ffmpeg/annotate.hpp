// Annotator: makes inputs of a forward whose pictures show what was seen in them.
//
// Each input that it makes reads another one, decodes its video, offers pictures to be looked at, draws boxes, labels,
// scores and the time into every picture, and hands the pictures on as H.264 under their own presentation times; sound
// passes unchanged. Where it cannot keep up with the stream, it hands pictures on as they came (passes) and comes back
// after a rest. In an H.264 stream it changes over at a keyframe of the input, within the connection of the output; in
// other streams the input ends, and the next one that it makes is announced in the other form.
// One forward uses it, and one thread at a time its inputs; it outlives them.
#pragma once

#include "weir/forward/keep_up.hpp"
#include "weir/ports/looks.hpp"
#include "weir/ports/media_copy.hpp"

namespace weir::ffmpeg {

struct AnnotateConfig {
  Duration keyframe = 2s;
  int bitrate_kbit = 0;    // 0: by size and rate
  bool hardware = true;    // encoders are tried before the software's
  forward::KeepUp::Limits limits = {};
  Looks* looks = nullptr;  // outlives the annotator; null: only the time is drawn
  // Pictures are drawn into from now on, or are not; `why` is one sentence. Called when that changes, and once with the
  // first picture of the first input.
  std::function<void(bool annotating, const std::string& why)> changed = [](bool, const std::string&) {};
  // A picture left, that much later than when the input was last waited for.
  std::function<void(Duration lag)> left = [](Duration) {};
};

class Annotator {
 public:
  explicit Annotator(AnnotateConfig config);
  ~Annotator();
  Annotator(const Annotator&) = delete;
  std::unique_ptr<CopyInput> wrap(std::unique_ptr<CopyInput> input);

  struct State;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace weir::ffmpeg
