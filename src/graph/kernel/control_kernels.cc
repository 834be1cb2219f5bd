// Counting and comparing, data in and values out, tensors in files.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/files.h"
#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "base/whole_number.h"
#include "graph/kernel/kernel.h"
#include "graph/kernel/tensor_file.h"
#include "graph/op/check.h"

namespace trainyard::graph {
namespace {

absl::Status Increment(OpRun& run) {
  const double step = run.op().Float("step");
  const Tensor& x = run.In("X");
  if (x.type() == DataType::kFloat32) {
    run.Out("Out").data<float>()[0] = x.data<float>()[0] + static_cast<float>(step);
    return absl::OkStatus();
  }
  const std::optional<std::int64_t> whole = WholeNumber(step);
  if (!whole || static_cast<double>(*whole) != step)
    return absl::InvalidArgumentError(StrCat("step is ", PrintNumber(step), ", and X is i64"));
  std::int64_t sum = 0;
  if (__builtin_add_overflow(x.data<std::int64_t>()[0], *whole, &sum))
    return absl::InvalidArgumentError(StrCat("X is ", x.data<std::int64_t>()[0], " and cannot grow"));
  run.Out("Out").data<std::int64_t>()[0] = sum;
  return absl::OkStatus();
}

template <typename T>
bool IsLess(const OpRun& run) {
  return run.In("X").data<T>()[0] < run.In("Y").data<T>()[0];
}

absl::Status LessThan(OpRun& run) {
  bool& out = run.Out("Out").data<bool>()[0];
  switch (run.In("X").type()) {
    case DataType::kFloat32:
      out = IsLess<float>(run);
      break;
    case DataType::kInt64:
      out = IsLess<std::int64_t>(run);
      break;
    case DataType::kBool:
      out = IsLess<bool>(run);
      break;
  }
  return absl::OkStatus();
}

absl::Status LogicalNot(OpRun& run) {
  run.Out("Out").data<bool>()[0] = !run.In("X").data<bool>()[0];
  return absl::OkStatus();
}

absl::Status LogicalAnd(OpRun& run) {
  run.Out("Out").data<bool>()[0] = run.In("X").data<bool>()[0] && run.In("Y").data<bool>()[0];
  return absl::OkStatus();
}

// The shortest text that reads back as the same float.
std::string PrintFloat(float number) {
  char digits[24];
  return {digits, std::to_chars(digits, digits + sizeof digits, number).ptr};
}

std::string PrintElement(const Tensor& tensor, std::int64_t i) {
  switch (tensor.type()) {
    case DataType::kFloat32:
      return PrintFloat(tensor.data<float>()[i]);
    case DataType::kInt64:
      return StrCat(tensor.data<std::int64_t>()[i]);
    case DataType::kBool:
      return tensor.data<bool>()[i] ? "true" : "false";
  }
  return "";
}

std::string PrintElements(const Tensor& tensor) {
  constexpr std::int64_t kMost = 16;
  std::string text;
  for (std::int64_t i = 0; i < std::min(kMost, tensor.count()); ++i)
    StrAppend(text, i == 0 ? "" : " ", PrintElement(tensor, i));
  if (tensor.count() > kMost) text += " ...";
  return text;
}

absl::Status PrintX(OpRun& run) {
  const Value& value = run.InVariable("X").value;
  const std::string& given = run.op().String("message");
  const std::string_view message = given.empty() ? "print" : std::string_view(given);
  const std::string type = Print(TypeOf(value));
  if (const auto* rows = std::get_if<SparseRows>(&value)) {
    log::Info(message, {{"variable", run.op().OneIn("X")},
                        {"type", type},
                        {"rows", rows->rows.size()},
                        {"values", PrintElements(rows->value)}});
  } else {
    log::Info(message, {{"variable", run.op().OneIn("X")},
                        {"type", type},
                        {"values", PrintElements(std::get<Tensor>(value))}});
  }
  return absl::OkStatus();
}

absl::Status Read(OpRun& run) {
  if (run.services().batches == nullptr)
    return absl::FailedPreconditionError("there is no data to read: give it a source of batches");
  std::vector<Tensor*> fields;
  fields.reserve(static_cast<std::size_t>(run.CountOut("Out")));
  for (int i = 0; i < run.CountOut("Out"); ++i) fields.push_back(&run.Out("Out", i));
  return run.services().batches->Next(fields);
}

absl::StatusOr<const Tensor*> DenseIn(const OpRun& run, int i) {
  if (run.IsSparse("X", i))
    return absl::InvalidArgumentError(
        StrCat(run.op().In("X")[static_cast<std::size_t>(i)], " is sparse and must be dense"));
  return &run.In("X", i);
}

absl::Status Output(OpRun& run) {
  const std::int64_t every = run.op().Int("every");
  if (every > 1 && run.services().step % every != 0) return absl::OkStatus();
  if (run.services().outputs == nullptr) return absl::OkStatus();
  std::vector<std::pair<std::string, const Tensor*>> values;
  for (int i = 0; i < run.CountIn("X"); ++i) {
    TY_ASSIGN_OR_RETURN(const Tensor* tensor, DenseIn(run, i));
    values.emplace_back(run.op().In("X")[static_cast<std::size_t>(i)], tensor);
  }
  return run.services().outputs->Append(values);
}

absl::Status Save(OpRun& run) {
  constexpr mode_t kMode = 0644;
  TY_ASSIGN_OR_RETURN(const Tensor* tensor, DenseIn(run, 0));
  return ReplaceFile(run.op().String("file"), EncodeTensor(*tensor), kMode, Durability::kPower);
}

absl::Status Load(OpRun& run) {
  const std::string& file = run.op().String("file");
  Tensor& out = run.Out("Out");
  const Dims wanted(run.op().IntList("shape"));
  const std::size_t most =
      wanted.Known() ? EncodedBytes(out.type(), wanted) : std::numeric_limits<std::size_t>::max();
  TY_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(file, most));
  absl::StatusOr<Tensor> decoded = DecodeTensor(bytes);
  if (!decoded.ok()) return Annotate(decoded.status(), file);
  const VarType found = {.data_type = decoded->type(), .dims = decoded->dims()};
  const VarType type = {.data_type = out.type(), .dims = wanted};
  if (!Agrees(type, found))
    return absl::InvalidArgumentError(StrCat(file, " has ", Print(found), " and must have ", Print(type)));
  out.Resize(decoded->type(), decoded->dims());
  if (!out.empty()) std::memcpy(out.raw(), decoded->raw(), out.bytes());
  return absl::OkStatus();
}

}  // namespace

void AddControlKernels(KernelTable& table) {
  table.Add("increment", Increment);
  table.Add("less_than", LessThan);
  table.Add("logical_not", LogicalNot);
  table.Add("logical_and", LogicalAnd);
  table.Add("print", PrintX);
  table.Add("read", Read);
  table.Add("output", Output);
  table.Add("save", Save);
  table.Add("load", Load);
}

}  // namespace trainyard::graph
