#include "model_labels.hpp"

#include "print.hpp"

#include "weir/camera/config.hpp"
#include "weir/ports/model_labels.hpp"

#include <algorithm>

namespace weir::apps {

namespace {

std::string title(const ModelLabels& model) {
  return model.name.empty() ? model.detector : fmt::format("{} ({})", model.name, model.detector);
}

bool is_meant(const ModelLabels& model, const std::string& wanted) {
  return wanted.empty() || model.name == wanted || (model.detector == wanted && model.is_default);
}

std::string names_of(const std::vector<ModelLabels>& models) {
  std::vector<std::string> names;
  for (const ModelLabels& model : models) names.push_back(title(model));
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

Result<int> print_labels(const json::array& models, const std::string& wanted, bool as_json) {
  TRY(all, json::read<std::vector<ModelLabels>>(models));
  std::vector<size_t> found;
  for (size_t i = 0; i < all.size(); ++i)
    if (is_meant(all[i], wanted)) found.push_back(i);
  if (found.empty() && (!wanted.empty() || !as_json))
    return Error{Errc::not_found, "model_not_found",
                 all.empty() ? "there is no model whose labels are known"
                             : fmt::format("no model is called {}; there are: {}", wanted, names_of(all))};
  if (as_json) {
    json::array items;
    for (size_t i : found) items.push_back(models[i]);
    print_json(json::object{{"items", std::move(items)}});
    return 0;
  }
  auto usual = std::ranges::find_if(found, [&](size_t i) { return is_meant(all[i], camera::Model{}.detector); });
  ModelLabels& shown = all[wanted.empty() && usual != found.end() ? *usual : found[0]];
  if (found.size() > 1)
    complain(fmt::format("these are the labels of {}; name one for its own: {}", title(shown), names_of(all)));
  std::ranges::sort(shown.labels);  // a person looks for a word
  for (const std::string& label : shown.labels) print_line(harmless(label));
  return 0;
}

}  // namespace weir::apps
