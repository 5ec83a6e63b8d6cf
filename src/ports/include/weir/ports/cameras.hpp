// Cameras: what an operator wants processed: each camera's configuration, and what became known about it.
//
// A store gives every camera a lease row; a camera that is disabled, removed or processed by a cluster loses its lease
// in the same step (`lease::put_in_charge`). Tenant-scoped callers pass their tenant; an empty one means all. An id
// that another tenant has answers `conflict` without detail on creation and `not_found` otherwise. Loop thread only;
// the plain functions: any thread.
#pragma once

#include "weir/base/ids.hpp"
#include "weir/base/time.hpp"
#include "weir/camera/config.hpp"
#include "weir/lease/decide.hpp"
#include "weir/ports/async.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir {

struct CameraRecord {
  camera::Config config;
  WallTime created_at{};
  WallTime updated_at{};
  WallTime configured_at{};  // when anything but `enabled` was last changed: names the configuration
  int crashes = 0;           // of workers, caused by this camera under its present configuration
};
// The record after an edit at `at`. Crashes that were counted under the old configuration do not count under a new
// one; switching a camera off and on changes neither the configuration's name nor the count.
CameraRecord edited(const CameraRecord& present, camera::Config next, WallTime at);
// Who may speak for a camera that is configured like this.
lease::Charge charge_of(const camera::Config& config);

// A store keeps a configuration as text. A number may differ in its last digit when it is read back, so a store
// validates and answers what it will read from the text.
struct KeptConfig {
  std::string text;
  camera::Config config;
};
// `invalid` where the text could not be read again.
Result<KeptConfig> keep(const camera::Config& config);
// A row that an older or newer version of Weir, or another program, has written may hold anything: `kBadStoredConfig`
// then, with what is wrong.
inline constexpr std::string_view kBadStoredConfig = "bad_stored_config";
Result<camera::Config> read_kept(std::string_view text);
// Lists leave such a camera out, so that it hides no other; the store logs it, once a process, as this event.
inline constexpr std::string_view kUnreadableCamera = "camera.unreadable";

struct CameraFilter {
  TenantId tenant = {};
  SiteId site = {};
  std::optional<bool> enabled = {};
  CameraId after = {};
  int limit = 100;
};

class Cameras {
 public:
  virtual ~Cameras() = default;

  virtual Async<CameraRecord> add_camera(camera::Config config) = 0;
  virtual Async<std::vector<CameraRecord>> list_cameras(CameraFilter filter) = 0;
  virtual Async<CameraRecord> show_camera(CameraId id, TenantId tenant) = 0;
  // Replaces the configuration with what `change` makes of the present one, in one step.
  using CameraEdit = std::function<Result<camera::Config>(const CameraRecord&)>;
  virtual Async<CameraRecord> edit_camera(CameraId id, TenantId tenant, CameraEdit change) = 0;
  virtual Async<Nothing> remove_camera(CameraId id, TenantId tenant) = 0;
  // Counts one more crash under the present configuration, and answers how many there are now.
  virtual Async<int> count_crash(CameraId id, TenantId tenant) = 0;
};

}  // namespace weir
