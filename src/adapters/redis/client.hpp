// Client: the thread that talks to Redis. Private to this folder.
//
// `ask` belongs to the loop's thread: it puts a question into the bounded queue and is resumed on the loop with the
// reply. A reply that is an error of Redis is a reply; an Error means that nothing is known. The thread sends questions
// as they come and matches replies by their order. A connection on which the oldest question has waited too long is
// given up, for a frozen Redis closes none.
#pragma once

#include "ears.hpp"
#include "session.hpp"

#include <boost/asio/awaitable.hpp>

#include <atomic>
#include <map>
#include <thread>

namespace weir::redis {

class Client {
 public:
  Client(boost::asio::any_io_executor loop, Config config);
  ~Client();
  Client(const Client&) = delete;

  boost::asio::awaitable<Result<Reply>> ask(std::vector<std::string> words);
  std::unique_ptr<Listening> listen(std::vector<std::string> channels, std::function<void(const Heard&)> each);

 private:
  struct Question {
    std::vector<std::string> words;
    Instant give_up{};
    std::function<void(Result<Reply>)> answer;
  };
  // A connection with when it may next be tried.
  struct Line {
    std::unique_ptr<Session> session = {};
    int failures = 0;
    Instant retry_at{};
  };

  void submit(Question question);
  void wake() const;
  void run();
  void connect(Line& line, std::string_view what);
  void drop(Line& line, const Error& why);
  void send_questions();
  void give_up_late_ones();
  void keep_listening();
  void wait_for_something();
  void read_answers();
  void read_messages();
  void fail_all(std::deque<Question>& questions, const Error& why);

  // Constant after construction.
  const Config config_;
  int wake_fd_ = -1;
  // Any thread.
  std::atomic<bool> stop_ = false;
  std::atomic<size_t> unanswered_ = 0;  // questions that wait or are under way
  Ears ears_;
  std::mutex mutex_;
  std::deque<Question> waiting_;
  // The client's thread only.
  Line questions_, listening_;
  std::deque<Question> asked_;
  std::map<std::string, bool> subscribed_;  // channel → whether Redis has confirmed it
  Instant heard_at_{}, pinged_at_{};
  std::thread thread_;
};

}  // namespace weir::redis
