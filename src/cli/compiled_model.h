// What the Python package makes of a model's file before its job is submitted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "master/spec.h"

namespace trainyard::cli {

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
