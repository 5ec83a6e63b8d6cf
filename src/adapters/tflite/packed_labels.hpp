// PackedLabels: the texts that a .tflite file carries, in a ZIP archive behind the model, the label list among them.
// Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weir::tflite {

// The labels in the archive's text file with "label" in its name, else in its first text file. Empty where there is
// none, or where it is compressed: the tools that write these archives do not compress.
std::vector<std::string> packed_labels(std::string_view file);
// The content of the archive's file of this name; empty where there is none, or where it is compressed.
std::string_view packed_text(std::string_view file, std::string_view name);

}  // namespace weir::tflite
