// Neighbour: a part of the simulated world beside the runners, such as published streams. It shares the runners' store
// and that store's troubles, and draws from a generator of its own, so that what the runners live through does not
// depend on it. One thread.
#pragma once

#include "network.hpp"
#include "world.hpp"

namespace weir::sim {

// What it shares.
struct Surroundings {
  Timeline& time;
  SimStore& store;
  Checks& checks;
  const Troubles& troubles;
  std::function<void()> served;  // to be called after each request that the store has answered
};

class Neighbour {
 public:
  virtual ~Neighbour() = default;
  // Its parts start, and things go wrong until the troubles' end.
  virtual void begin() = 0;
  virtual bool at_rest() const = 0;
  // The longest that it may take after the faults until it is at rest, and in words what it is while it is not.
  virtual Duration rest_within() const = 0;
  virtual std::string_view unrest() const = 0;
  // Traces the state of everything, for a person.
  virtual void describe() = 0;
};

}  // namespace weir::sim
