// Sparse rows in the order of their numbers, each once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/kernel/kernel.h"
#include "graph/kernel/tensor.h"

namespace trainyard::graph {

// InvalidArgument: a row's number is not in [0, height), or there are not as many numbers as rows.
absl::Status CheckRows(const SparseRows& rows);

// How many elements one row has.
std::int64_t WidthOf(const SparseRows& rows);

// Gives `out` the row numbers of `rows` and room for values; they may be one and the same.
void ShapeLike(const SparseRows& rows, SparseRows& out);

// Adds the rows, which CheckRows() has passed, to a matrix of all rows.
void AddRowsTo(const SparseRows& rows, Tensor& whole);

// Adds up rows of the same number, from the first to the last, whatever the number of threads. Keeps its
// room from one call to the next.
class RowMerger {
 public:
  // The rows in ascending order of their numbers, each once: `rows` itself if it is so already, else values
  // that stay until the next call. Errors as of CheckRows().
  absl::StatusOr<const SparseRows*> Merge(const SparseRows& rows);

 private:
  struct Place {
    std::int64_t row;
    std::int64_t at;  // in `rows`
  };

  void Sort(const SparseRows& rows);
  void FindBegins();
  void AddUp(const SparseRows& rows);

  SparseRows merged_;
  std::vector<Place> places_;
  std::vector<Place> scratch_;
  std::vector<std::size_t> begins_;  // of each merged row, in places_; and where the last one ends
};

// A kernel that merges sparse rows.
MakeKernel WithMerger(absl::Status (*run)(OpRun&, RowMerger&));

}  // namespace trainyard::graph
