// Metrics: counters, gauges and histograms for Prometheus.
//
// A thin front over prometheus-cpp's core, so that its headers stay in one file. Asking twice for the same name and
// labels gives the same instrument; keep the reference instead of asking again on a hot path. Labels never hold a
// URL, a message or anything unbounded. Instruments may be used from any thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace weir::net {

class Counter {
 public:
  virtual ~Counter() = default;
  virtual void add(double by = 1) = 0;
};
class Gauge {
 public:
  virtual ~Gauge() = default;
  virtual void set(double to) = 0;
};
class Histogram {
 public:
  virtual ~Histogram() = default;
  virtual void observe(double value) = 0;
};

class Metrics {
 public:
  using Labels = std::map<std::string, std::string>;
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;

  Counter& counter(const std::string& name, const std::string& help, const Labels& labels = {});
  Gauge& gauge(const std::string& name, const std::string& help, const Labels& labels = {});
  // Buckets in ascending order; the same for every label set of a name.
  Histogram& histogram(const std::string& name, const std::string& help, const std::vector<double>& buckets,
                       const Labels& labels = {});
  // Instruments with this label are not shown any more, until an instrument with it is asked for again: a camera that
  // is gone must not look like one that is down. Its instruments stay valid and go on where they were.
  void retire(const std::string& label, const std::string& value);
  // process_cpu_seconds_total, process_resident_memory_bytes, process_open_fds, process_start_time_seconds: read when
  // the text is made.
  void add_process_metrics();
  // The Prometheus text format.
  std::string text() const;

  static const std::vector<double>& latency_buckets();  // 0.5 ms to 10 s

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weir::net
