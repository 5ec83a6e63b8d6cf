// ModelBoard: which models the runners have and which labels those have, as each runner listed them when it registered.
//
// The board is a copy of what the store knows of the runners, read again when a request finds it older than a few
// seconds: a request about one camera costs the same with one runner and with a thousand. Where a live runner has a
// model, the silent ones are not asked about it. A tenant's own runners come before those that serve all, and another
// tenant's are not seen. It is for people to look at, and decides nothing. Loop thread only.
#pragma once

#include "weir/base/json.hpp"
#include "weir/base/time.hpp"
#include "weir/camera/config.hpp"
#include "weir/ports/runners.hpp"

#include <map>
#include <tuple>

namespace weir::control_plane {

class ModelBoard {
 public:
  // True where the copy is old and the caller must read it again; meanwhile other requests use the old one.
  bool must_ask(Instant now);
  void ask_again() { asked_.reset(); }
  // Replaces what is known.
  void learn(const std::vector<Runner>& runners);
  // Adds the models of a runner that has just registered.
  void add(const Runner& runner);

  // The labels of the camera's model, sorted; null where no runner listed that model. Valid until the board changes.
  const std::vector<std::string>* labels_for(const camera::Config& config) const;
  // [{"detector","name","default","labels","runners"}] as a caller of this tenant sees them; an empty one sees all.
  json::array list(const TenantId& tenant) const;

 private:
  struct Known {
    bool is_default = false;
    std::vector<std::string> labels = {};
    int runners = 0;
  };
  using Key = std::tuple<TenantId, std::string, std::string>;  // whose, detector, name
  static constexpr Duration kBelieved = 10s;

  void add(const Runner& runner, const std::map<Key, Known>* unless_in);
  static void merge(Known& into, const Known& more);
  const Known* find(const TenantId& tenant, const camera::Model& model) const;

  std::map<Key, Known> models_;
  std::map<std::pair<TenantId, std::string>, std::string> defaults_;  // of a detector: the name
  std::optional<Instant> asked_ = {};
};

}  // namespace weir::control_plane
