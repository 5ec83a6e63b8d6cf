// Agenda: which of many things is due, by its key.
//
// Each key has at most one moment. Setting one, and finding those that are due, costs by how many are touched, not by how
// many there are. Plain value; one thread.
#pragma once

#include "weir/base/time.hpp"

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace weir {

template <class Key>
class Agenda {
 public:
  // Nothing takes the key off the agenda.
  void set(const Key& key, std::optional<Instant> moment) {
    auto known = moments_.find(key);
    if (known != moments_.end()) {
      if (moment == known->second) return;
      order_.erase({known->second, key});
      moments_.erase(known);
    }
    if (!moment) return;
    moments_.emplace(key, *moment);
    order_.emplace(*moment, key);
  }
  // Takes those off whose moment has come, the earliest first.
  std::vector<Key> take_due(Instant now) {
    std::vector<Key> due;
    while (!order_.empty() && order_.begin()->first <= now) {
      due.push_back(order_.begin()->second);
      moments_.erase(due.back());
      order_.erase(order_.begin());
    }
    return due;
  }
  std::optional<Instant> next() const {
    return order_.empty() ? std::nullopt : std::optional(order_.begin()->first);
  }

 private:
  std::map<Key, Instant> moments_;
  std::set<std::pair<Instant, Key>> order_;
};

}  // namespace weir
