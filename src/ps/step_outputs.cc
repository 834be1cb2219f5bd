#include "ps/step_outputs.h"

#include <algorithm>

#include "base/text.h"

namespace trainyard::ps {
namespace {

constexpr std::size_t kMaxElements = 16384;  // of one operator

double NumberAt(const graph::Tensor& tensor, std::int64_t i) {
  switch (tensor.type()) {
    case graph::DataType::kFloat32:
      return tensor.data<float>()[i];
    case graph::DataType::kInt64:
      return static_cast<double>(tensor.data<std::int64_t>()[i]);
    case graph::DataType::kBool:
      return tensor.data<bool>()[i] ? 1 : 0;
  }
  return 0;
}

OutputValue ValueOf(const std::string& name, const graph::Tensor& tensor, std::size_t most) {
  OutputValue value{.name = name, .dims = tensor.dims()};
  const std::int64_t count = std::min(tensor.count(), static_cast<std::int64_t>(most));
  for (std::int64_t i = 0; i < count; ++i) value.values.push_back(NumberAt(tensor, i));
  return value;
}

}  // namespace

void StepOutputs::Begin(std::int64_t generation, std::int64_t pass, std::int64_t step) {
  Settle(true);
  open_ = Output{.generation = generation, .pass = pass, .step = step};
}

absl::Status StepOutputs::Append(const std::vector<std::pair<std::string, const graph::Tensor*>>& values) {
  if (!open_) open_ = Output();
  open_->time = clock_.Now();
  const std::size_t most =
      std::min(kMaxOutputValues, kMaxElements / std::max<std::size_t>(1, values.size()) + 1);
  for (const auto& [name, tensor] : values) open_->values.push_back(ValueOf(name, *tensor, most));
  if (const std::size_t bytes = EncodeOutput(*open_).size(); bytes > kMaxOutputBytes) {
    return absl::InvalidArgumentError(StrCat("a step puts out ", open_->values.size(), " variables in ",
                                             bytes, " bytes, more than ", kMaxOutputBytes,
                                             ": put out fewer"));
  }
  return absl::OkStatus();
}

void StepOutputs::Settle(bool committed) {
  if (open_ && !open_->values.empty()) {
    open_->committed = committed;
    outputs_.Append(*open_);
  }
  open_.reset();
}

std::string StepOutputs::Pending() const {
  return open_ && !open_->values.empty() ? EncodeOutput(*open_) : "";
}

}  // namespace trainyard::ps
