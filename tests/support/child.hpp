// Child: a helper program of a test: started with its configuration on a descriptor, asked over HTTP, gone with the test.
//
// The program says in its first line of standard output where it answers ({"control":"http://…"}). Its standard input is
// a pipe whose end tells it that the test is over; its log is kept. Main thread only.
#pragma once

#include "weir_process.hpp"

namespace weir::test {

class Child {
 public:
  // `words` are the program and its arguments; `document`, where not null, can be read at /dev/fd/3.
  Child(std::string log_path, std::vector<std::string> words, const boost::json::value& document = nullptr);
  ~Child();
  Child(const Child&) = delete;

  int pid() const { return pid_; }
  const boost::json::value& ready() const { return ready_; }
  std::string log() const;
  void signal(int number) const;
  // Its exit code, 128 + signal, or -1 when it did not end within `limit`.
  int wait(Duration limit = 20s);
  bool running();

  Reply call(net::Method method, const std::string& target, const boost::json::value& body = nullptr,
             const Secret& token = {}) const;
  Reply get(const std::string& target, const Secret& token = {}) const {
    return call(net::Method::get, target, nullptr, token);
  }
  Reply post(const std::string& target, const boost::json::value& body, const Secret& token = {}) const {
    return call(net::Method::post, target, body, token);
  }

 private:
  const std::string log_path_;
  int pid_ = -1, lifeline_ = -1, output_ = -1;
  std::optional<int> status_;
  boost::json::value ready_;
};

}  // namespace weir::test
