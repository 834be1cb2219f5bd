// Where the API server gets the logs of containers from.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "http/responder.h"

namespace trainyard::apiserver {

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

}  // namespace trainyard::apiserver
