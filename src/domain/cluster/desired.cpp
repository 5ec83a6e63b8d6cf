#include "weir/cluster/desired.hpp"

#include <unordered_map>
#include <variant>

namespace weir::cluster {

namespace {

template <class Row>
auto by_id(std::span<const Row> rows) {
  std::unordered_map<decltype(Row::id), const Row*> index;
  for (const Row& row : rows) index.emplace(row.id, &row);
  return index;
}
template <class Index, class Id>
auto* found(const Index& index, const Id& id) {
  auto at = index.find(id);
  return at == index.end() ? nullptr : at->second;
}

class Reading {
 public:
  explicit Reading(const Rows& rows)
      : rows_(rows), cameras_(by_id(rows.cameras)), playlists_(by_id(rows.playlists)), models_(by_id(rows.models)) {}

  Desired make() {
    for (const DisplayRow& each : rows_.displays) enter(each.id, of(each));
    for (const AdHocRow& each : rows_.ad_hoc) enter(each.identifier, of(each));
    return std::move(desired_);
  }

 private:
  struct Refusal {
    std::string reason;
  };
  using Answer = std::variant<DesiredSubscription, Refusal>;

  void enter(const std::string& what, Answer answer) {
    if (const auto* refusal = std::get_if<Refusal>(&answer))
      return desired_.left_out.push_back({what, refusal->reason});
    auto& made = std::get<DesiredSubscription>(answer);
    std::string id = made.id.text();
    if (!desired_.subscriptions.emplace(id, std::move(made)).second)
      desired_.left_out.push_back({what, "another row asks for the same subscription"});
  }

  Answer of(const DisplayRow& display) const {
    if (display.camera.empty()) return Refusal{"the display has no camera"};
    if (display.playlist.empty()) return Refusal{"the display has no playlist"};
    auto id = Identifier::parse(display.id + ";" + display.camera);
    if (!id) return Refusal{"the id of the display or of its camera has a semicolon in it, or is none"};
    const CameraRow* camera = found(cameras_, display.camera);
    if (camera == nullptr) return Refusal{"the display's camera does not exist"};
    const PlaylistRow* playlist = found(playlists_, display.playlist);
    if (playlist == nullptr) return Refusal{"the display's playlist does not exist"};
    if (camera->tenant != display.tenant || playlist->tenant != display.tenant)
      return Refusal{"the display's camera or playlist belongs to another tenant"};
    if (auto reason = unusable(*camera); !reason.empty()) return Refusal{std::string(reason)};
    if (!playlist->model) return Refusal{"the playlist has no model"};
    DesiredSubscription made{.id = *std::move(id), .tenant = display.tenant, .rtsp_url = camera->rtsp_url,
                             .snapshot_url = camera->snapshot_url, .snapshot_every = camera->snapshot_every,
                             .model_id = *playlist->model, .crop = display.crop, .created_at = display.created_at};
    return with_model(std::move(made));
  }

  Answer of(const AdHocRow& row) const {
    auto id = Identifier::parse(row.identifier);
    if (!id) return Refusal{id.error().message};
    DesiredSubscription made{.id = *std::move(id), .tenant = row.tenant, .rtsp_url = row.rtsp_url,
                             .snapshot_url = row.snapshot_url, .snapshot_every = row.snapshot_every,
                             .model_id = row.model, .crop = row.crop, .created_at = row.created_at};
    if (const CameraRow* camera = found(cameras_, made.id.camera)) {
      if (camera->tenant != row.tenant) return Refusal{"the camera belongs to another tenant"};
      if (auto reason = unusable(*camera); !reason.empty()) return Refusal{std::string(reason)};
      if (made.rtsp_url.empty()) made.rtsp_url = camera->rtsp_url;
    }
    if (made.rtsp_url.empty()) return Refusal{"neither the subscription nor a camera's row has a stream address"};
    return with_model(std::move(made));
  }

  static std::string_view unusable(const CameraRow& camera) {
    if (!camera.by_cluster) return "the camera is processed by runners, not by the cluster";
    if (!camera.enabled) return "the camera is disabled";
    if (camera.rtsp_url.empty()) return "the camera has no stream address";
    return "";
  }

  Answer with_model(DesiredSubscription made) const {
    const ModelRow* model = found(models_, made.model_id);
    if (model == nullptr) return Refusal{"the model does not exist"};
    if (!model->tenant.empty() && model->tenant != made.tenant) return Refusal{"the model belongs to another tenant"};
    made.model_name = model->name;
    made.model_checksum = model->checksum;
    return made;
  }

  const Rows& rows_;
  std::unordered_map<std::string, const CameraRow*> cameras_;
  std::unordered_map<std::string, const PlaylistRow*> playlists_;
  std::unordered_map<std::int64_t, const ModelRow*> models_;
  Desired desired_;
};

}  // namespace

Desired desire(const Rows& rows) { return Reading(rows).make(); }

}  // namespace weir::cluster
