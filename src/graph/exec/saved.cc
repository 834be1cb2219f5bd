#include "graph/exec/saved.h"

#include <sys/types.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <system_error>
#include <utility>

#include "base/files.h"
#include "base/status.h"
#include "base/text.h"
#include "graph/kernel/tensor_file.h"

namespace trainyard::graph {
namespace {

constexpr std::string_view kSuffix = ".tensor";
constexpr mode_t kMode = 0644;

absl::Status SystemError(std::string_view what, const std::string& path, const std::error_code& error) {
  return ErrnoStatus(error.value(), StrCat(what, " ", path));
}

// The files of a folder that hold a tensor, by the name of its variable.
absl::StatusOr<std::map<std::string, std::string>> TensorFiles(const std::string& folder) {
  std::map<std::string, std::string> files;
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string file = entry->path().filename();
    if (file.size() > kSuffix.size() && file.ends_with(kSuffix))
      files.emplace(file.substr(0, file.size() - kSuffix.size()), entry->path());
  }
  if (error) return SystemError("cannot read the folder", folder, error);
  return files;
}

// The kind of tensor by the file's first bytes: one that does not fit may be larger than the memory.
absl::Status CheckType(const std::string& file, const std::string& name, const Tensor& now) {
  std::string head(kTensorHeadBytes, '\0');
  std::ifstream stream(file, std::ios::binary);
  stream.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(stream.gcount()));
  const absl::StatusOr<VarType> is = DecodeTensorType(head);
  if (!is.ok()) return Annotate(is.status(), file);
  const VarType wanted{.data_type = now.type(), .dims = now.dims()};
  if (wanted == *is) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat(file, ": variable ", name, " is ", Print(wanted), " and cannot be set to ", Print(*is)));
}

absl::StatusOr<Tensor> ReadTensor(const std::string& file, const std::string& name, const Tensor* now) {
  std::size_t most = std::numeric_limits<std::size_t>::max();
  if (now != nullptr) {
    TY_RETURN_IF_ERROR(CheckType(file, name, *now));
    most = EncodedBytes(now->type(), now->dims());
  }
  TY_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(file, most));
  absl::StatusOr<Tensor> tensor = DecodeTensor(bytes);
  return tensor.ok() ? std::move(tensor) : Annotate(tensor.status(), file);
}

}  // namespace

absl::Status SaveVariables(const Scope& scope, const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return SystemError("cannot make the folder", folder, error);
  bool any = false;
  for (const std::string& name : scope.Names()) {
    const Tensor* tensor = scope.FindTensor(name);
    if (tensor == nullptr) continue;
    any = true;
    TY_RETURN_IF_ERROR(
        ReplaceFile(StrCat(folder, "/", name, kSuffix), EncodeTensor(*tensor), kMode, Durability::kPower));
  }
  return any ? absl::OkStatus()
             : absl::FailedPreconditionError("there is nothing to save: start a program first");
}

absl::Status LoadVariables(Scope& scope, const std::string& folder, bool allow_missing) {
  TY_ASSIGN_OR_RETURN(const auto files, TensorFiles(folder));
  if (files.empty())
    return absl::NotFoundError(StrCat("the folder ", folder, " has no file that ends in ", kSuffix));
  std::map<std::string, Tensor> loaded;
  for (const auto& [name, file] : files) {
    TY_ASSIGN_OR_RETURN(loaded[name], ReadTensor(file, name, scope.FindTensor(name)));
  }
  for (const std::string& name : scope.Names()) {
    if (!allow_missing && scope.FindTensor(name) != nullptr && !loaded.contains(name))
      return absl::NotFoundError(StrCat("the folder ", folder, " has no ", name, kSuffix));
  }
  for (auto& [name, tensor] : loaded) scope.Put(name, std::move(tensor));
  return absl::OkStatus();
}

}  // namespace trainyard::graph
