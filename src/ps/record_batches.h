// Batches of records for a program's `read`: which records, in which order, turned into tensors, and read
// ahead.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/ir/program.h"
#include "graph/kernel/services.h"
#include "ps/deal.h"

namespace trainyard::ps {

// The place of a record in a pass: with a shuffle seed a permutation of [0, count) that differs from pass to
// pass, by arithmetic alone (no list in memory); else the place itself.
std::int64_t RecordAt(std::int64_t place, std::int64_t count, std::int64_t pass, std::uint64_t shuffle_seed);

// The next share of places: of which pass, and which.
struct Share {
  std::int64_t pass = 0;
  Ranges places;
  bool operator==(const Share&) const = default;
};

// Opens what a `read` operator names. One thread, beside its own that reads ahead.
class RecordBatches final : public graph::BatchSource {
 public:
  // InvalidArgument, NotFound: which attribute or file, and why.
  static absl::StatusOr<std::unique_ptr<RecordBatches>> Open(const graph::Op& read);
  ~RecordBatches() override;

  // How many records a pass has.
  std::int64_t count() const;

  // What is read from now on; forgets what was read ahead.
  void Assign(Share share);
  // All records of every pass, for a program that trains alone.
  void AssignAll();

  // OutOfRange when the share is used up; with AssignAll() the next pass then begins.
  absl::Status Next(absl::Span<graph::Tensor* const> fields) override;
  std::int64_t pass() const override;
  // The places of the batch that Next() gave last.
  const Share& last() const;

 private:
  class Reader;
  explicit RecordBatches(std::unique_ptr<Reader> reader);
  std::unique_ptr<Reader> reader_;
};

}  // namespace trainyard::ps
