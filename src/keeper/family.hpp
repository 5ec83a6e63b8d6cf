// Family: the child and everything below it.
//
// Only children of this process are killed, never their children: as long as this process has not reaped it, no other
// process has its number. The orphans of a killed process become children of this one, and the next round kills them.
// One thread.
#pragma once

#include <optional>

namespace weir::keeper {

class Family {
 public:
  // The child inherits the environment, the descriptors that are not closed by exec, and nothing of this process's
  // dealings with signals. False with errno where it cannot be started.
  bool start(char** command);
  // Takes in the ends of all who have ended since; false when nobody is left below.
  bool reap();
  // How the child ended: its exit code or 128 + signal; nothing while it runs.
  std::optional<int> child_code() const { return code_; }
  void terminate_child() const;
  // One round: SIGKILL to the child's process group and to every child of this process.
  void kill_all() const;

 private:
  int child_ = 0;
  std::optional<int> code_ = {};
};

}  // namespace weir::keeper
