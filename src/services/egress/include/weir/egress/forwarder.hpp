// Forwarder: keeps one stream flowing from its hub to its destination, and knows when it does not.
//
// `run` blocks on a thread of its own and returns what the process should end with. It asks forward::next what to do,
// does it, and tells forward::step what came of it; the rules are there, not here. The other methods may be called
// from any thread.
#pragma once

#include "weir/egress/intake.hpp"
#include "weir/egress/report.hpp"
#include "weir/egress/send_right.hpp"
#include "weir/forward/course.hpp"
#include "weir/forward/interleave.hpp"

#include <atomic>
#include <condition_variable>
#include <functional>

namespace weir::egress {

struct Ends {
  std::function<std::unique_ptr<CopyInput>()> input;
  std::function<std::unique_ptr<CopyOutput>()> output;
};

class Forwarder {
 public:
  Forwarder(Ends ends, forward::Policy policy, SendRight& right, Report& report);
  ~Forwarder();
  forward::End run();
  // Ends the forwarder; `run` then returns 0.
  void stop();
  // For a process that ends while its forwarder hangs: what the kernel still holds is thrown away.
  void abandon();
  // To be called when the right to send has changed, when it is no longer valid, and when it has run out. What may not
  // stand any more is reset before this returns: a stream that flows stands while the right keeps it.
  void look_at_right();

 private:
  using Event = forward::Event;
  // An event from outside, such as a stop, that comes before everything else.
  std::optional<Event> pending(bool held);
  Event perform(const forward::ConnectInput& task);
  Event perform(const forward::ConnectOutput& task);
  Event perform(const forward::Forward& task);
  Event perform(const forward::Wait& task);
  Event perform(const forward::Hold& task);
  Event wait_until(Instant until, bool held);
  void apply(const Event& event);
  void close_input();
  void close_output(bool reset);
  void begin_stream();
  // What the destination has acknowledged; called now and then while the input is read.
  void look_at_output();
  // Writes what may leave; the end of the stream, where it ended.
  std::optional<Event> write_ready(Instant now);

  const Ends ends_;
  const forward::Policy policy_;
  SendRight& right_;
  Report& report_;

  // The forwarder's thread only.
  forward::Course course_;
  std::unique_ptr<Intake> intake_;
  CopyFacts facts_;
  std::shared_ptr<const CopyFormat> sent_format_;
  forward::Stamps stamps_;
  std::optional<forward::Interleaver<CopyPacketPtr>> interleaver_;
  bool input_is_new_ = false;  // since the last packet that was sent
  bool output_is_new_ = false;
  std::optional<Event> output_lost_;
  std::atomic<bool> forwarding_ = false;  // the intake's own thread looks at it, too

  // Any thread.
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;
  std::shared_ptr<CopyOutput> output_;
  CopyInput* dialling_ = nullptr;  // while it is opened
  Intake* reading_ = nullptr;
};

}  // namespace weir::egress
