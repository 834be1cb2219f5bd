// Where the API server learns what pods use, and how it tells it: as metrics.k8s.io does.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "http/responder.h"

namespace trainyard::apiserver {

// Where the API server gets the logs of containers from.

struct PodLogRequest {
  std::string ns;
  std::string pod;
  std::string uid;
  std::string container;
  std::string waiting;    // why it has not started, if it has not; empty: nobody knows
  bool previous = false;  // of the run before this one
  bool follow = false;
  bool timestamps = false;
  std::optional<std::int64_t> tail_lines;
  std::optional<absl::Time> since;
  std::optional<std::int64_t> limit_bytes;
};

class PodLogs {
 public:
  virtual ~PodLogs() = default;
  // Answers with text/plain, in pieces if it is followed. Never blocks.
  virtual void Read(const PodLogRequest& request, std::unique_ptr<http::Responder> responder) = 0;
};

inline constexpr std::string_view kMetricsGroup = "metrics.k8s.io";
inline constexpr std::string_view kMetricsVersion = "v1beta1";

struct PodUsage {
  std::string ns;
  std::string pod;
  double processors = 0;  // since it was measured before
  double memory_bytes = 0;
  absl::Duration window;  // since then
};

class PodMetrics {
 public:
  virtual ~PodMetrics() = default;
  // Of every pod that runs. Does not block for long.
  virtual std::vector<PodUsage> Measure() = 0;
};

// A PodMetricsList, as JSON text; "": of all namespaces. Pure.
std::string PrintPodMetrics(const std::vector<PodUsage>& all, std::string_view ns, absl::Time now);

}  // namespace trainyard::apiserver
