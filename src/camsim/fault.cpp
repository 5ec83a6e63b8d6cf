#include "weir/camsim/fault.hpp"

namespace weir::camsim {

Result<Profile> profile_under(const CameraFault& fault, Profile profile) {
  if (fault.kind == FaultKind::resolution) {
    profile.width = *fault.width;
    profile.height = *fault.height;
  }
  if (fault.kind == FaultKind::codec) profile.codec = *fault.codec;
  return json::read<Profile>(json::write_value(profile));  // the new combination must be a valid one
}

}  // namespace weir::camsim
