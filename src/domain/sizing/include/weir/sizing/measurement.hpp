// Measurement: what `weir-worker measure` found out about a machine, as it prints it and others read it.
// Plain values; any thread.
#pragma once

#include "weir/sizing/fit.hpp"

#include <optional>
#include <string>
#include <vector>

namespace weir::sizing {

// What pictures of one size cost.
struct Measured {
  int width = 0, height = 0;
  int kbit = 0;                  // of the stream that was decoded
  Costs costs = {};
  double looks_per_s = 0;        // of the detector, all processors at work; less than it could where others use them too
};
template <class V>
void fields(V& v, Measured& m) {
  v.required("width", m.width, json::range(16, 16384));
  v.required("height", m.height, json::range(16, 16384));
  v.required("kbit", m.kbit);
  v.required("costs", m.costs);
  v.required("looks_per_s", m.looks_per_s);
}

struct Measurement {
  std::string cpu;
  double processors = 1;
  double memory_mb = 0;
  double busy_pct = 0;           // of all processors, by others, before it began
  std::string model;
  std::string codec;
  double stream_fps = 25;
  std::vector<Measured> sizes;
  std::optional<std::string> detector_error = {};  // why detect_ms is 0 everywhere
  double took_s = 0;

  Machine machine() const { return {processors, memory_mb}; }
};
template <class V>
void fields(V& v, Measurement& m) {
  v.required("cpu", m.cpu);
  v.required("processors", m.processors, json::range(0.01, 1e5));
  v.required("memory_mb", m.memory_mb);
  v.required("busy_pct", m.busy_pct);
  v.required("model", m.model);
  v.required("codec", m.codec);
  v.required("stream_fps", m.stream_fps);
  v.required("sizes", m.sizes, json::length(1, 64));
  v.optional("detector_error", m.detector_error);
  v.required("took_s", m.took_s);
}

}  // namespace weir::sizing
