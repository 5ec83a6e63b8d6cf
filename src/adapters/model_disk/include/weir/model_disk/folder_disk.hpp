// FolderDisk: the models' files in one folder, which several control planes may share.
//
// A file is written under another name, brought to the disk and renamed to its checksum. Nobody removes a file while
// somebody renames one to that name: both hold the lock of the folder's file `lock` meanwhile, and whoever removes looks
// at the file's age under the lock. Everything that may block is done on threads of its own. Loop thread only.
#pragma once

#include "weir/base/time.hpp"
#include "weir/ports/model_disk.hpp"

namespace weir::model_disk {

class FolderDisk final : public ModelDisk {
 public:
  // The folder is made with the first file that comes. What no model names stays for `unnamed_for`.
  explicit FolderDisk(std::string folder, Duration unnamed_for = 1h);
  Async<std::unique_ptr<Incoming>> receive() override;
  Async<std::unique_ptr<Outgoing>> open(std::string sha256) override;
  Async<int> remove_unnamed(std::set<std::string> named) override;

 private:
  struct State;
  class IncomingFile;
  class OutgoingFile;
  std::shared_ptr<State> state_;  // shared with the files that come and go
};

}  // namespace weir::model_disk
