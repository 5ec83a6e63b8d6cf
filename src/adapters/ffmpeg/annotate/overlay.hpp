// Overlay: what is drawn over a picture: a box with label and score for each detection, and the time.
// Pure but for the canvas; one thread.
#pragma once

#include "canvas.hpp"

#include "weir/ports/looks.hpp"

namespace weir::ffmpeg {

// `sighting` may be null, or of a picture of another size.
void draw_overlay(Canvas& canvas, const Sighting* sighting, WallTime time);

}  // namespace weir::ffmpeg
