// The record files that a `read` operator names, and batches of any of their records as tensors.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "data/record_source.h"
#include "graph/ir/program.h"
#include "graph/kernel/tensor.h"
#include "ps/record_fields.h"

namespace trainyard::ps {

// Used by one thread at a time.
class RecordSources {
 public:
  // InvalidArgument, NotFound: which attribute or file, and why. Files of other numbers of records cannot go
  // together, and there must be records.
  static absl::StatusOr<std::unique_ptr<RecordSources>> Open(const graph::Op& read);

  std::int64_t count() const { return count_; }
  std::int64_t batch_size() const { return batch_size_; }
  std::uint64_t shuffle_seed() const { return shuffle_seed_; }
  // Of the outputs; the first dim of each is the batch's.
  const std::vector<graph::VarType>& types() const { return types_; }

  struct Row {
    std::int64_t number = 0;  // of the record
    std::int64_t row = 0;     // of the batch that it goes to
  };
  // Reads the records into the tensors of a batch of so many rows, whose memory is used again. Sorts `rows`
  // by their numbers: records that lie behind each other are read at one go. An error about a record says
  // where it lies.
  absl::Status Read(std::vector<Row>& rows, std::vector<graph::Tensor>& batch);

 private:
  struct Source {
    std::string name;
    std::unique_ptr<const data::RecordSource> records;
    std::unique_ptr<data::RecordCursor> cursor;
    std::unique_ptr<RecordDecoder> decoder;
  };

  RecordSources() = default;
  absl::Status OpenSource(const graph::Op& read, std::size_t number, std::vector<RecordField> fields);

  std::vector<Source> sources_;
  std::vector<graph::VarType> types_;
  std::int64_t count_ = 0;
  std::int64_t batch_size_ = 1;
  std::uint64_t shuffle_seed_ = 0;
};

}  // namespace trainyard::ps
