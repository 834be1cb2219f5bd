#include "graph/kernel/sparse.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <memory>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "graph/kernel/threads.h"
#include "graph/kernel/vector.h"

namespace trainyard::graph {
namespace {

TY_VECTOR void AddTo(float* sum, const float* row, std::int64_t count) {
  TY_INDEPENDENT
  for (std::int64_t i = 0; i < count; ++i) sum[i] += row[i];
}

class MergingKernel final : public Kernel {
 public:
  explicit MergingKernel(absl::Status (*run)(OpRun&, RowMerger&)) : run_(run) {}
  absl::Status Run(OpRun& run) override { return run_(run, merger_); }

 private:
  absl::Status (*run_)(OpRun&, RowMerger&);
  RowMerger merger_;
};

}  // namespace

absl::Status CheckRows(const SparseRows& rows) {
  const Dims& dims = rows.value.dims();
  if (dims.rank() < 1 || dims[0] != static_cast<std::int64_t>(rows.rows.size())) {
    return absl::InvalidArgumentError(
        StrCat("sparse rows have ", rows.rows.size(), " numbers and values of ", Print(dims)));
  }
  for (const std::int64_t row : rows.rows) {
    if (row < 0 || row >= rows.height) [[unlikely]] {
      return absl::InvalidArgumentError(StrCat("row ", row, " is not in a matrix of ", rows.height, " rows"));
    }
  }
  return absl::OkStatus();
}

std::int64_t WidthOf(const SparseRows& rows) { return rows.value.dims().Count(1, rows.value.dims().rank()); }

void ShapeLike(const SparseRows& rows, SparseRows& out) {
  if (&rows == &out) return;
  out.height = rows.height;
  out.rows = rows.rows;
  out.value.Resize(rows.value.type(), rows.value.dims());
}

void AddRowsTo(const SparseRows& rows, Tensor& whole) {
  const std::int64_t width = WidthOf(rows);
  const float* row = rows.value.data<float>();
  for (const std::int64_t number : rows.rows) {
    AddTo(whole.data<float>() + number * width, row, width);
    row += width;
  }
}

// By digits, from the lowest: rows of the same number stay in the order that they came in.
void RowMerger::Sort(const SparseRows& rows) {
  constexpr int kDigit = 11;
  constexpr std::size_t kBuckets = std::size_t{1} << kDigit;
  places_.resize(rows.rows.size());
  scratch_.resize(rows.rows.size());
  for (std::size_t i = 0; i < rows.rows.size(); ++i)
    places_[i] = {rows.rows[i], static_cast<std::int64_t>(i)};
  const int bits = std::bit_width(static_cast<std::uint64_t>(rows.height));
  for (int shift = 0; shift < bits; shift += kDigit) {
    std::array<std::size_t, kBuckets + 1> begins = {};
    const auto digit = [&](const Place& place) {
      return static_cast<std::size_t>(place.row >> shift) % kBuckets;
    };
    for (const Place& place : places_) ++begins[digit(place) + 1];
    for (std::size_t i = 1; i < kBuckets; ++i) begins[i] += begins[i - 1];
    for (const Place& place : places_) scratch_[begins[digit(place)]++] = place;
    std::swap(places_, scratch_);
  }
}

void RowMerger::FindBegins() {
  begins_.clear();
  merged_.rows.clear();
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (i > 0 && places_[i].row == places_[i - 1].row) continue;
    begins_.push_back(i);
    merged_.rows.push_back(places_[i].row);
  }
  begins_.push_back(places_.size());
}

void RowMerger::AddUp(const SparseRows& rows) {
  const std::int64_t width = WidthOf(rows);
  const float* from = rows.value.data<float>();
  float* to = merged_.value.data<float>();
  const std::int64_t grain = std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, width));
  ParallelFor(merged_.value.dims()[0], grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const auto at = static_cast<std::size_t>(i);
      float* sum = to + i * width;
      std::copy_n(from + places_[begins_[at]].at * width, width, sum);
      for (std::size_t k = begins_[at] + 1; k < begins_[at + 1]; ++k)
        AddTo(sum, from + places_[k].at * width, width);
    }
  });
}

absl::StatusOr<const SparseRows*> RowMerger::Merge(const SparseRows& rows) {
  TY_RETURN_IF_ERROR(CheckRows(rows));
  const bool ascending =
      std::adjacent_find(rows.rows.begin(), rows.rows.end(), std::greater_equal<>()) == rows.rows.end();
  if (ascending) return &rows;
  Sort(rows);
  FindBegins();
  Dims dims = rows.value.dims();
  dims[0] = static_cast<std::int64_t>(merged_.rows.size());
  merged_.height = rows.height;
  merged_.value.Resize(DataType::kFloat32, std::move(dims));
  AddUp(rows);
  return &merged_;
}

MakeKernel WithMerger(absl::Status (*run)(OpRun&, RowMerger&)) {
  return [run](const Op&) { return std::make_unique<MergingKernel>(run); };
}

}  // namespace trainyard::graph
