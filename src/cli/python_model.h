// Models in files of Python: where the package is that reads them, and the program that their net makes.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace trainyard::cli {

// The folder of the Python package that was built with this program; "": it is not there.
std::string PythonPackageFolder();

// As every process on this machine finds it.
std::string AbsolutePath(std::string_view path);
// The same for each of a list by commas.
std::string AbsolutePaths(std::string_view list);

// Has Python turn the net of a model into a program. `job` is what its functions are told, as
// master::Print() has it. Empty: the model has no net, only functions. InvalidArgument: it cannot be used,
// and why.
absl::StatusOr<std::string> CompileModel(const std::string& python, const std::string& model,
                                         const std::string& job);

// What a job of this model is called if nobody says: its file's name, or its folder's, and some letters.
std::string NameOfModel(const std::string& model);

// More than any model's file has.
inline constexpr std::size_t kMostModelBytes = std::size_t{16} << 20;

}  // namespace trainyard::cli
