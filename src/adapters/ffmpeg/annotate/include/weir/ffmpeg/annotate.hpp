// Annotator: makes inputs of a forward whose pictures show what was seen in them.
//
// Each input that it makes reads another one, decodes its video, offers pictures to be looked at, draws boxes, labels,
// scores and the time into every picture, and hands the pictures on as H.264 under their own presentation times; sound
// passes unchanged. Where it cannot keep up with the stream, it hands pictures on as they came (passes) and comes back
// after a rest. In an H.264 stream it changes over at a keyframe of the input, within the connection of the output; in
// other streams the input ends, and the next one that it makes is announced in the other form.
//
// Where the stream is to be carried by RTMP, its video leaves as H.264 and its sound as AAC, whatever they were, and
// whether pictures are drawn into or not. Of pictures that have to be encoded for that, those are left out for which
// the machine is too slow, but for one a second.
// One forward uses it, and one thread at a time its inputs; it outlives them.
#pragma once

#include "weir/forward/keep_up.hpp"
#include "weir/ports/looks.hpp"
#include "weir/ports/media_copy.hpp"

namespace weir::ffmpeg {

struct AnnotateConfig {
  bool draw = true;        // false: pictures are as they came, encoded again or not
  bool for_rtmp = false;   // what RTMP does not carry is encoded again
  Duration keyframe = 2s;
  int bitrate_kbit = 0;    // 0: by size and rate
  bool hardware = true;    // encoders are tried before the software's
  forward::KeepUp::Limits limits = {};
  Looks* looks = nullptr;  // outlives the annotator; null: only the time is drawn
  // Pictures are drawn into from now on, or are not; `why` is one sentence. Called when that changes, and once with the
  // first picture of the first input.
  std::function<void(bool annotating, const std::string& why)> changed = [](bool, const std::string&) {};
  // A picture that was encoded left, that much later than when the input was last waited for.
  std::function<void(Duration lag)> left = [](Duration) {};
  // Said of each connection of the input that RTMP does not carry as it is: "vp8 as h264, opus as aac".
  std::function<void(const std::string& what)> encodes_for_rtmp = [](const std::string&) {};
  // A picture was left out, because the machine is too slow.
  std::function<void()> left_out = [] {};
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
