#include "weir/cluster/field_mapping.hpp"

namespace weir::cluster {

namespace {

template <class T>
void read_table(const json::value& v, std::map<std::string, T, std::less<>>& out, const std::string& path,
                json::Context& ctx) {
  if (!v.is_object()) return ctx.add(path, "must be an object of labels with their values");
  for (const auto& [label, meaning] : v.get_object())
    json::read_value(meaning, out[std::string(label)], fmt::format("{}.{}", path, std::string_view(label)), ctx);
}

template <class T>
std::optional<T> most_certain(const std::map<std::string, T, std::less<>>& table, const std::vector<Box>& boxes) {
  std::optional<T> said;
  double best = -1;
  for (const Box& box : boxes) {
    auto found = table.find(box.label);
    if (found == table.end() || box.score <= best) continue;
    said = found->second;
    best = box.score;
  }
  return said;
}

}  // namespace

Result<FieldMapping> read_field_mapping(std::string_view text) {
  TRY(parsed, json::parse_text(text));
  if (!parsed.is_object()) return json::problems_error({{"", "must be an object"}});
  FieldMapping out;
  json::Context ctx;
  for (const auto& [name, table] : parsed.get_object()) {
    std::string field(name);
    if (field == "carModel") read_table(table, out.car_model, field, ctx);
    else if (field == "carBrand") read_table(table, out.car_brand, field, ctx);
    else if (field == "carYear") read_table(table, out.car_year, field, ctx);
    else if (field == "bodyType") read_table(table, out.body_type, field, ctx);
    else if (field == "licensePlateText") read_table(table, out.license_plate_text, field, ctx);
    else if (field == "licensePlateType") read_table(table, out.license_plate_type, field, ctx);
    else ctx.add(field, "is no field of a detection");
  }
  if (!ctx.problems.empty()) return json::problems_error(ctx.problems);
  return out;
}

Detection describe(const FieldMapping& mapping, const std::vector<Box>& boxes) {
  return {.car_model = most_certain(mapping.car_model, boxes),
          .car_brand = most_certain(mapping.car_brand, boxes),
          .car_year = most_certain(mapping.car_year, boxes),
          .body_type = most_certain(mapping.body_type, boxes),
          .license_plate_text = most_certain(mapping.license_plate_text, boxes),
          .license_plate_type = most_certain(mapping.license_plate_type, boxes)};
}

}  // namespace weir::cluster
