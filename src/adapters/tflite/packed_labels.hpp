// PackedLabels: the label list that a .tflite file carries, in a ZIP archive behind the model. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weir::tflite {

// Of the archive's text files the one with "label" in its name, else the first. Empty where there is none, or where it
// is compressed: the tools that write these archives store.
std::vector<std::string> packed_labels(std::string_view file);

}  // namespace weir::tflite
