// `weir-worker labels`: the labels of the models on this machine. A runner asks it once, when it starts, and tells the
// control plane; `weir model labels --local` is the same for a person. Main thread only.
#pragma once

#include "common/command.hpp"

namespace weir::apps {

Command labels_command();

}  // namespace weir::apps
