// Wire: how times, durations and crops stand in the cluster's JSON. Private to this folder; pure functions, any thread.
#pragma once

#include "weir/cluster/subscription.hpp"

namespace weir::cluster::wire {

// A field that is null where there is nothing, instead of missing.
template <class V, class T>
void nullable(V& v, std::string_view name, std::optional<T>& value) {
  if constexpr (V::reading) v.optional(name, value);
  else v.required(name, value);
}

template <class V>
void moment(V& v, std::string_view name, WallTime& at) {
  std::string text = V::reading ? std::string() : to_iso(at);
  v.required(name, text, [](const std::string& given) -> std::string {
    return from_iso(given) ? "" : "must be a time such as 2026-01-31T09:05:07.123Z";
  });
  if constexpr (V::reading)
    if (auto read = from_iso(text)) at = *read;
}

template <class V>
void milliseconds(V& v, std::string_view name, std::optional<std::chrono::milliseconds>& length) {
  std::optional<std::int64_t> count;
  if (length) count = length->count();
  v.optional(name, count, json::range<std::int64_t>(1, 86'400'000));
  if (V::reading && count) length = std::chrono::milliseconds(*count);
}

// cropX1, cropY1, cropX2, cropY2: all of them, or none.
template <class V>
void crop(V& v, std::optional<Crop>& out) {
  std::optional<int> x1, y1, x2, y2;
  if (out) x1 = out->x1, y1 = out->y1, x2 = out->x2, y2 = out->y2;
  v.optional("cropX1", x1, json::range(0, 100'000));
  v.optional("cropY1", y1, json::range(0, 100'000));
  v.optional("cropX2", x2, json::range(0, 100'000));
  v.optional("cropY2", y2, json::range(0, 100'000));
  if constexpr (V::reading) {
    bool all = x1 && y1 && x2 && y2, any = x1 || y1 || x2 || y2;
    v.rule("cropX1", any && !all ? "needs cropY1, cropX2 and cropY2 beside it" : "");
    v.rule("cropX2", all && (*x1 >= *x2 || *y1 >= *y2) ? "must lie right of cropX1, and cropY2 below cropY1" : "");
    if (all) out = Crop{*x1, *y1, *x2, *y2};
  }
}

}  // namespace weir::cluster::wire
