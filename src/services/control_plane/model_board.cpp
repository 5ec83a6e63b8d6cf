#include "model_board.hpp"

#include <algorithm>

namespace weir::control_plane {

bool ModelBoard::must_ask(Instant now) {
  if (asked_ && now - *asked_ < kBelieved) return false;
  asked_ = now;
  return true;
}

void ModelBoard::learn(const std::vector<Runner>& runners) {
  models_.clear();
  defaults_.clear();
  for (const Runner& runner : runners)
    if (runner.live) add(runner, nullptr);
  const std::map<Key, Known> alive = models_;
  for (const Runner& runner : runners)
    if (!runner.live) add(runner, &alive);
}

void ModelBoard::add(const Runner& runner) { add(runner, nullptr); }

void ModelBoard::add(const Runner& runner, const std::map<Key, Known>* unless_in) {
  for (const ModelLabels& model : runner.models) {
    Key key{runner.tenant, model.detector, model.name};
    if (unless_in != nullptr && unless_in->contains(key)) continue;
    Known said{model.is_default, model.labels, 1};
    std::ranges::sort(said.labels);
    merge(models_[key], said);
    if (model.is_default) defaults_[{runner.tenant, model.detector}] = model.name;
  }
}

void ModelBoard::merge(Known& into, const Known& more) {
  into.is_default = into.is_default || more.is_default;
  into.runners += more.runners;
  if (into.labels == more.labels) return;  // nearly always
  std::vector<std::string> both;
  std::ranges::set_union(into.labels, more.labels, std::back_inserter(both));
  into.labels = std::move(both);
}

const ModelBoard::Known* ModelBoard::find(const TenantId& tenant, const camera::Model& model) const {
  std::string name = model.name;
  if (auto found = defaults_.find({tenant, model.detector}); name.empty() && found != defaults_.end())
    name = found->second;
  auto found = models_.find({tenant, model.detector, name});
  return found == models_.end() ? nullptr : &found->second;
}

const std::vector<std::string>* ModelBoard::labels_for(const camera::Config& config) const {
  const Known* known = find(config.tenant, config.model);
  if (known == nullptr) known = find(TenantId(), config.model);
  return known == nullptr ? nullptr : &known->labels;
}

json::array ModelBoard::list(const TenantId& tenant) const {
  std::map<std::pair<std::string, std::string>, Known> seen;
  for (const auto& [key, known] : models_) {
    const auto& [whose, detector, name] = key;
    if (tenant.empty() || whose.empty() || whose == tenant) merge(seen[{detector, name}], known);
  }
  json::array out;
  for (const auto& [key, known] : seen)
    out.push_back(json::object{{"detector", key.first},
                               {"name", key.second},
                               {"default", known.is_default},
                               {"labels", json::write_value(known.labels)},
                               {"runners", known.runners}});
  return out;
}

}  // namespace weir::control_plane
