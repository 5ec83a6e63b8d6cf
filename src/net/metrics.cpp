#include "weir/net/metrics.hpp"

#include "weir/base/result.hpp"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <memory>
#include <mutex>
#include <set>
#include <sstream>
#include <utility>

namespace weir::net {

namespace {
class PrometheusCounter final : public Counter {
 public:
  explicit PrometheusCounter(prometheus::Counter& to) : to_(to) {}
  void add(double by) override { to_.Increment(by); }

 private:
  prometheus::Counter& to_;
};
class PrometheusGauge final : public Gauge {
 public:
  explicit PrometheusGauge(prometheus::Gauge& to) : to_(to) {}
  void set(double to) override { to_.Set(to); }

 private:
  prometheus::Gauge& to_;
};
class PrometheusHistogram final : public Histogram {
 public:
  explicit PrometheusHistogram(prometheus::Histogram& to) : to_(to) {}
  void observe(double value) override { to_.Observe(value); }

 private:
  prometheus::Histogram& to_;
};

template <class Instrument>
using Kept = std::map<std::pair<std::string, Metrics::Labels>, std::unique_ptr<Instrument>>;

// A bad name or one name for two kinds is a mistake in the program, which no caller could act on.
template <class Make>
auto& kept(auto& instruments, const std::string& name, const Metrics::Labels& labels, Make make) {
  auto& place = instruments[{name, labels}];
  try {
    if (!place) place = make();
  } catch (const std::exception& e) {
    panic(e.what(), name.c_str(), 0);
  }
  return *place;
}

prometheus::MetricFamily single(std::string name, std::string help, prometheus::MetricType type, double value) {
  prometheus::ClientMetric metric;
  metric.counter.value = value;
  metric.gauge.value = value;
  return {std::move(name), std::move(help), type, {std::move(metric)}};
}

// Fields of /proc/self/stat after the command's name, which may itself hold spaces and brackets.
std::vector<double> process_stat() {
  std::ifstream file("/proc/self/stat");
  std::string line;
  std::getline(file, line);
  std::istringstream rest(line.substr(std::min(line.size(), line.rfind(')') + 1)));
  std::string state;
  rest >> state;
  std::vector<double> fields(4, 0);  // so that an index is the number in proc(5), which counts from 1
  for (double field = 0; rest >> field;) fields.push_back(field);
  return fields;
}

double boot_wall_seconds() {
  std::ifstream file("/proc/stat");
  std::string word;
  double value = 0;
  while (file >> word) {
    if (word == "btime" && file >> value) return value;
  }
  return 0;
}

double open_descriptors() {
  DIR* folder = opendir("/proc/self/fd");
  if (folder == nullptr) return 0;
  int count = -1;  // the folder's own descriptor
  while (const dirent* entry = readdir(folder))
    if (entry->d_name[0] != '.') ++count;
  closedir(folder);
  return count;
}

void append_process(std::vector<prometheus::MetricFamily>& to) {
  using prometheus::MetricType;
  std::vector<double> stat = process_stat();
  if (stat.size() < 25) return;
  double tick = static_cast<double>(sysconf(_SC_CLK_TCK)), page = static_cast<double>(sysconf(_SC_PAGESIZE));
  static const double boot = boot_wall_seconds();
  to.push_back(single("process_cpu_seconds_total", "User and system CPU time.", MetricType::Counter,
                      (stat[14] + stat[15]) / tick));
  to.push_back(single("process_resident_memory_bytes", "Resident memory.", MetricType::Gauge, stat[24] * page));
  to.push_back(single("process_open_fds", "Open file descriptors.", MetricType::Gauge, open_descriptors()));
  to.push_back(single("process_start_time_seconds", "Start of the process, Unix time.", MetricType::Gauge,
                      boot + stat[22] / tick));
}
}  // namespace

struct Metrics::State {
  prometheus::Registry registry;
  std::atomic<bool> process = false;
  // Guards the maps; the instruments themselves are free-threaded.
  std::mutex mutex;
  Kept<Counter> counters;
  Kept<Gauge> gauges;
  Kept<Histogram> histograms;
  std::set<std::pair<std::string, std::string>> retired;

  void show(const Labels& labels) {
    for (const auto& label : labels) retired.erase(label);
  }
  bool is_retired(const prometheus::ClientMetric& metric) const {
    return std::ranges::any_of(metric.label,
                               [&](const auto& label) { return retired.contains({label.name, label.value}); });
  }
};

Metrics::Metrics() : state_(std::make_unique<State>()) {}
Metrics::~Metrics() = default;

Counter& Metrics::counter(const std::string& name, const std::string& help, const Labels& labels) {
  std::lock_guard lock(state_->mutex);
  state_->show(labels);
  return kept(state_->counters, name, labels, [&] {
    auto& family = prometheus::BuildCounter().Name(name).Help(help).Register(state_->registry);
    return std::make_unique<PrometheusCounter>(family.Add(labels));
  });
}

Gauge& Metrics::gauge(const std::string& name, const std::string& help, const Labels& labels) {
  std::lock_guard lock(state_->mutex);
  state_->show(labels);
  return kept(state_->gauges, name, labels, [&] {
    auto& family = prometheus::BuildGauge().Name(name).Help(help).Register(state_->registry);
    return std::make_unique<PrometheusGauge>(family.Add(labels));
  });
}

Histogram& Metrics::histogram(const std::string& name, const std::string& help, const std::vector<double>& buckets,
                              const Labels& labels) {
  std::lock_guard lock(state_->mutex);
  state_->show(labels);
  return kept(state_->histograms, name, labels, [&] {
    auto& family = prometheus::BuildHistogram().Name(name).Help(help).Register(state_->registry);
    return std::make_unique<PrometheusHistogram>(family.Add(labels, buckets));
  });
}

void Metrics::add_process_metrics() { state_->process = true; }

void Metrics::retire(const std::string& label, const std::string& value) {
  std::lock_guard lock(state_->mutex);
  state_->retired.emplace(label, value);
}

std::string Metrics::text() const {
  auto families = state_->registry.Collect();
  {
    std::lock_guard lock(state_->mutex);
    if (!state_->retired.empty())
      for (auto& family : families)
        std::erase_if(family.metric, [&](const auto& metric) { return state_->is_retired(metric); });
  }
  if (state_->process) append_process(families);
  return prometheus::TextSerializer().Serialize(families);
}

const std::vector<double>& Metrics::latency_buckets() {
  static const std::vector<double> buckets = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                              0.1,    0.25,  0.5,    1,     2.5,  5,     10};
  return buckets;
}

}  // namespace weir::net
