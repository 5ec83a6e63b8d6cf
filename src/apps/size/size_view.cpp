#include "size_view.hpp"

#include "common/print.hpp"

#include <algorithm>
#include <cmath>

namespace weir::apps {

namespace {

constexpr double kBusyMuch = 15;  // per cent of the machine
constexpr double kHalf = 0.5;

std::string name_of(const sizing::Kind& kind) { return fmt::format("{}x{}", kind.width, kind.height); }

std::string times(double fps) { return fps == 1 ? "once" : fmt::format("{:g} times", fps); }

const sizing::Measured* measured_as(const sizing::Measurement& measured, const sizing::Kind& kind) {
  auto found = std::ranges::find_if(measured.sizes, [&](const sizing::Measured& each) {
    return each.width == kind.width && each.height == kind.height;
  });
  return found == measured.sizes.end() ? nullptr : &*found;
}

SizeRow row_of(const sizing::Measurement& measured, const sizing::Measured& size, double looks_fps) {
  SizeRow row;
  row.kind = {.width = size.width, .height = size.height, .stream_fps = measured.stream_fps, .looks_fps = looks_fps};
  sizing::Machine machine = measured.machine();
  row.moving = sizing::fit(size.costs, row.kind, machine, 1);
  row.half = sizing::fit(size.costs, row.kind, machine, kHalf);
  row.still = sizing::fit(size.costs, row.kind, machine, 0);
  return row;
}

std::string_view limit_words(sizing::Limit limit) {
  switch (limit) {
    case sizing::Limit::detector: return "looking (the detector)";
    case sizing::Limit::decoding: return "decoding";
    case sizing::Limit::memory: return "memory";
  }
  return "";
}

// What a person can change, the most promising first.
std::vector<std::string> help_for(const sizing::Measurement& measured, const SizeRow& row, int cameras) {
  std::vector<std::string> out;
  // Where the cameras fit while half of the scenes move, the advice is about all of them moving.
  int each = row.half.cameras >= cameras ? row.moving.cameras : row.half.cameras;
  if (each > 0) out.push_back(fmt::format("{} such machines (a runner on each)", (cameras + each - 1) / each));
  if (row.moving.limit == sizing::Limit::memory)
    out.emplace_back("more memory, or fewer detectors in each worker (inference_threads)");
  std::string smaller = "a smaller stream, or fewer frames a second, set in the camera";
  bool decoding = row.moving.limit == sizing::Limit::decoding;
  if (decoding) out.push_back(smaller);
  if (const sizing::Measured* size = measured_as(measured, row.kind); size != nullptr && row.kind.looks_fps > 1) {
    SizeRow rarer = row_of(measured, *size, std::max(1.0, std::floor(row.kind.looks_fps / 2)));
    out.push_back(fmt::format("looking {} a second (the cameras' max_fps): then {} fit if everything moves, {} if half of "
                              "the scenes do", times(rarer.kind.looks_fps), rarer.moving.cameras, rarer.half.cameras));
  }
  if (!decoding) out.push_back(smaller);
  out.emplace_back("a keyframe a second, set in the camera, so that still scenes cost little");
  return out;
}

std::string joined(const std::vector<std::string>& parts) { return fmt::format("{}", fmt::join(parts, "; ")); }

json::object to_json(const SizeRow& row, const sizing::Machine& machine) {
  return {{"width", row.kind.width},
          {"height", row.kind.height},
          {"stream_fps", row.kind.stream_fps},
          {"looks_fps", row.kind.looks_fps},
          {"everything_moves", row.moving.cameras},
          {"half_moves", row.half.cameras},
          {"still", row.still.cameras},
          {"limit", sizing::to_string(row.moving.limit)},
          {"camera_mb", sizing::camera_mb(row.kind, machine)}};
}

}  // namespace

std::vector<SizeRow> size_rows(const sizing::Measurement& measured, const SizeQuestion& question) {
  std::vector<SizeRow> rows;
  for (const sizing::Measured& size : measured.sizes)
    for (double looks : question.looks_fps) rows.push_back(row_of(measured, size, looks));
  return rows;
}

std::string size_verdict(const sizing::Measurement& measured, const SizeRow& row, int cameras) {
  std::string them = fmt::format("{} camera{} of {} looked at {} a second", cameras, cameras == 1 ? "" : "s",
                                 name_of(row.kind), times(row.kind.looks_fps));
  if (row.moving.cameras >= cameras)
    return fmt::format("{} fit here, even if everything moves at once (then {} fit).", them, row.moving.cameras);
  std::string out = fmt::format("{} do not fit here if everything moves ({} fit)", them, row.moving.cameras);
  if (row.half.cameras >= cameras)
    return out + fmt::format("; they fit while at most half of the scenes move ({} fit). While more of them move, every "
                             "camera is looked at less often than wanted. What would help: {}.",
                             row.half.cameras, joined(help_for(measured, row, cameras)));
  out += fmt::format(", nor if half of the scenes move ({} fit)", row.half.cameras);
  out += fmt::format("{} all scenes are still ({} fit).",
                     row.still.cameras >= cameras ? "; they fit only while" : ", nor while", row.still.cameras);
  return out + fmt::format(" What would help: {}.", joined(help_for(measured, row, cameras)));
}

std::vector<std::string> size_warnings(const sizing::Measurement& measured) {
  std::vector<std::string> out;
  if (measured.detector_error)
    out.push_back(fmt::format("{} could not be measured, so the figures are without a detector: {}", measured.model,
                              *measured.detector_error));
  if (measured.busy_pct > kBusyMuch)
    out.push_back(fmt::format("other programs used {:.0f} % of the processors before this began: the figures are for a "
                              "machine that has nothing else to do, and are less exact than on a quiet one",
                              measured.busy_pct));
  return out;
}

std::string readable_size(const sizing::Measurement& measured, const SizeQuestion& question) {
  std::string out = fmt::format("This machine: {}, {:g} processor{}, {:.1f} GB of memory; measured in {:.0f} s\n",
                                measured.cpu, measured.processors, measured.processors == 1 ? "" : "s", measured.memory_mb / 1000,
                                measured.took_s);
  Table costs({"MEASURED, MS OF ONE PROCESSOR", "DECODE", "KEYFRAME", "GATE", "DETECT", "LOOKS/S OF ALL"});
  for (const sizing::Measured& each : measured.sizes)
    costs.add({fmt::format("a picture of {}x{} ({}, {} kbit/s)", each.width, each.height, measured.codec, each.kbit),
               fmt::format("{:.2f}", each.costs.decode_ms), fmt::format("{:.2f}", each.costs.keyframe_ms),
               fmt::format("{:.2f}", each.costs.gate_ms), fmt::format("{:.1f}", each.costs.detect_ms),
               fmt::format("{:.0f}", each.looks_per_s)});
  out += fmt::format("\n{}\n", costs.text());
  std::vector<SizeRow> rows = size_rows(measured, question);
  Table fits({"CAMERAS THAT FIT", "LOOKS/S", "EVERYTHING MOVES", "HALF MOVES", "STILL SCENES", "MOST GOES INTO"});
  for (const SizeRow& row : rows)
    fits.add({fmt::format("{} at {:g} fps", name_of(row.kind), row.kind.stream_fps),
              fmt::format("{:g}", row.kind.looks_fps), std::to_string(row.moving.cameras), std::to_string(row.half.cameras),
              std::to_string(row.still.cameras),
              std::string(limit_words(row.moving.limit))});
  out += fits.text();
  out += fmt::format("\nPlanned with {:.0f} % of the processors, the detector {}, and a keyframe a second from each camera.\n"
                     "Derived, not measured: what receiving a stream and publishing events cost. docs/sizing.md has the "
                     "arithmetic.\n", sizing::kBusyShare * 100, measured.model);
  for (const std::string& warning : size_warnings(measured)) out += fmt::format("\nWarning: {}.\n", warning);
  if (question.cameras) out += "\n" + size_verdict(measured, rows.front(), *question.cameras) + "\n";
  return out;
}

json::object size_json(const sizing::Measurement& measured, const SizeQuestion& question) {
  json::object out{{"measurement", json::write_value(measured)}};
  std::vector<SizeRow> rows = size_rows(measured, question);
  json::array shown, warnings;
  for (const SizeRow& row : rows) shown.push_back(to_json(row, measured.machine()));
  for (const std::string& warning : size_warnings(measured)) warnings.emplace_back(warning);
  out["rows"] = std::move(shown);
  out["warnings"] = std::move(warnings);
  if (!question.cameras) return out;
  const SizeRow& row = rows.front();
  out["cameras"] = *question.cameras;
  out["fits"] = json::object{{"everything_moves", row.moving.cameras >= *question.cameras},
                             {"half_moves", row.half.cameras >= *question.cameras},
                             {"still", row.still.cameras >= *question.cameras}};
  out["verdict"] = size_verdict(measured, row, *question.cameras);
  return out;
}

}  // namespace weir::apps
