// The exit record: how a kept child ended, for the orchestrator that was not there. One thread.
#pragma once

#include "task.hpp"

namespace weir::keeper {

// The file FOLDER/NONCE.exit appears as a whole, and on the disk, or not at all: false with errno then.
bool write_exit_record(const Task& task, int code, Micros when);

}  // namespace weir::keeper
