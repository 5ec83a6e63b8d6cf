// Program: a foreign program that a test starts as it is, with its output kept, and that ends with the test.
// Main thread only.
#pragma once

#include "temp_files.hpp"

#include "weir/base/time.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace weir::test {

// A program that runs until this object ends; its output is kept.
class Program {
 public:
  Program(std::string log_path, std::vector<std::string> words, std::string input = {});
  ~Program();
  Program(const Program&) = delete;
  int pid() const { return pid_; }
  std::string log() const { return text_in_file(log_path_); }
  void signal(int number) const;
  // Its exit code, 128 + signal, or -1 when it did not end within `limit`.
  int wait(Duration limit = 20s);
  bool running();

 private:
  const std::string log_path_;
  int pid_ = -1;
  std::optional<int> status_;
};

// Whether somebody listens on this port of 127.0.0.1.
bool accepts(int port);
void write_text(const std::string& path, const std::string& text);

}  // namespace weir::test
