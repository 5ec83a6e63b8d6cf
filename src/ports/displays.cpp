#include "weir/ports/displays.hpp"

#include <cmath>

namespace weir {

std::string crop_problem(const SubscriptionOptions& o) {
  int given = o.crop_x1.has_value() + o.crop_y1.has_value() + o.crop_x2.has_value() + o.crop_y2.has_value();
  if (given == 0) return "";
  if (given < 4) return "must be given together with the other corners: crop_x1, crop_y1, crop_x2 and crop_y2";
  if (*o.crop_x1 < *o.crop_x2 && *o.crop_y1 < *o.crop_y2) return "";
  return "must lie left of crop_x2, and crop_y1 above crop_y2";
}

std::string write_options(const SubscriptionOptions& options) { return json::to_text(json::write_value(options)); }

SubscriptionOptions read_options(std::string_view text) {
  auto read = json::read_text<SubscriptionOptions>(text);
  return read ? *std::move(read) : SubscriptionOptions();
}

Result<SubscriptionParts> parts_of(std::string_view identifier) {
  size_t at = identifier.find(';');
  auto display = DisplayId::parse(identifier.substr(0, at));
  auto camera = CameraId::parse(at == identifier.npos ? "" : identifier.substr(at + 1));
  if (display && camera) return SubscriptionParts{*std::move(display), *std::move(camera)};
  return json::problems_error(
      {{std::string(SubscriptionTag::name), "must be a display's id, a semicolon and a camera_uuid"}});
}

SubscriptionOptions completed(SubscriptionOptions options, const camera::Config& camera) {
  if (!options.snapshot_url && camera.snapshot) {
    options.snapshot_url = camera.snapshot->url;
    if (!options.snapshot_interval_ms)
      options.snapshot_interval_ms = static_cast<int>(std::lround(camera.snapshot->interval_s * 1000));
  }
  if (!options.crop_x1 && camera.crop) {
    options.crop_x1 = camera.crop->x;
    options.crop_y1 = camera.crop->y;
    options.crop_x2 = camera.crop->x + camera.crop->width;
    options.crop_y2 = camera.crop->y + camera.crop->height;
  }
  return options;
}

}  // namespace weir
