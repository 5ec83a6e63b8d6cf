// `weir size` in words: how many cameras of which kind fit on a machine that was measured, and whether a given number
// of cameras fits. Plain functions; any thread.
#pragma once

#include "weir/sizing/measurement.hpp"

#include <optional>

namespace weir::apps {

struct SizeQuestion {
  std::vector<double> looks_fps = {2, 6, 12};  // a row of the table for each
  std::optional<int> cameras = {};             // how many the person has, of the first row's kind
};

// A resolution that is looked at so many times a second, and how many of its cameras fit.
struct SizeRow {
  sizing::Kind kind;
  sizing::Fit moving, half, still;
};
std::vector<SizeRow> size_rows(const sizing::Measurement& measured, const SizeQuestion& question);

// Whether `cameras` of the row's kind fit, in sentences, and what would help where they do not.
std::string size_verdict(const sizing::Measurement& measured, const SizeRow& row, int cameras);
// What makes the figures worth less; each a sentence.
std::vector<std::string> size_warnings(const sizing::Measurement& measured);

std::string readable_size(const sizing::Measurement& measured, const SizeQuestion& question);
json::object size_json(const sizing::Measurement& measured, const SizeQuestion& question);

}  // namespace weir::apps
