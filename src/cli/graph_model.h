// The net that a graph job trains, as flags name it, and the graphs that are made of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/command.h"
#include "graph/pass/transpile.h"
#include "master/spec.h"

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

// ---- What the Python package makes of a model's file before its job is submitted.

struct CompiledModel {
  std::string program;  // of its net; "": it has none, its functions are run by the workers
  // What its reader says of the sources; 0: it has none, or was not asked, since the job has the number.
  std::int64_t training_records = 0;
  std::int64_t validation_records = 0;
  std::int64_t prediction_records = 0;
};

// More than any model's file has.
inline constexpr std::size_t kMostModelBytes = std::size_t{16} << 20;

// What a job of this model is called if nobody says: its file's name, or its folder's, and some letters.
std::string NameOfModel(const std::string& model);

// The folder of the Python package that was built with this program; "": it is not there.
std::string PackageFolder();

// Runs the interpreter `python` for it. InvalidArgument: what it said in its last line.
absl::StatusOr<CompiledModel> CompileModel(const std::string& python, const std::string& model,
                                           const master::JobSpec& spec);

}  // namespace trainyard::cli
