// All settings of Weir, in the order of the reference page: each service's own rows, and those that only programs read.
//
// Every program knows every setting, because one settings file serves them all and an unknown key in it is an error.
// Constant; any thread.
#pragma once

#include "weir/base/settings.hpp"

namespace weir {

const SettingTable& all_settings();

}  // namespace weir
