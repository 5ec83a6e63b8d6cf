// LeftSpools: drops what dead workers of this machine kept for cameras that others have had since. Loop thread only.
#pragma once

#include "manager_shell.hpp"

namespace weir::runner {

class LeftSpools {
 public:
  explicit LeftSpools(Shell& shell) : shell_(shell) {}
  // Looks now and then, from when `listed` says that the cameras are known.
  boost::asio::awaitable<void> keep(std::function<bool()> listed);

 private:
  lease::Tenure tenure_of(const CameraId& camera) const;
  boost::asio::awaitable<void> drop_left();

  Shell& shell_;
};

}  // namespace weir::runner
