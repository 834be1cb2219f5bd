// The net that a graph job trains, as flags name it, and the graphs that are made of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/command.h"
#include "graph/pass/transpile.h"

namespace trainyard::cli {

class GraphModelFlags {
 public:
  void Declare(Flags& flags);
  // What was asked for, checked as far as this machine can. A usage error says which flag is wrong.
  absl::StatusOr<graph::Graphs> Transpile();

  const std::string& model() const { return model_; }
  std::int64_t passes() const { return options_.passes; }

 private:
  absl::Status TakeNumbers();
  absl::StatusOr<graph::Programs> ReadPrograms() const;

  std::string model_;
  std::string python_ = "/usr/bin/python3";
  std::vector<std::string> params_, data_;
  std::optional<std::int64_t> minibatch_, seed_, trainers_, pservers_, passes_;
  bool async_ = false;
  graph::TranspileOptions options_{.trainers = 2};
};

}  // namespace trainyard::cli
