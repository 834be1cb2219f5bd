// Records of training data, read by their numbers, whatever they lie in.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "data/format.h"

namespace trainyard::data {

// The records [first, first + count).
struct RecordRange {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

// Takes one record. Its bytes are valid until the visitor returns; an error ends the read, which returns it.
using RecordVisitor = absl::FunctionRef<absl::Status(std::string_view record)>;

enum class ElementType : std::uint8_t { kUint8, kInt8, kInt16, kInt32, kFloat32, kFloat64 };
std::size_t BytesOf(ElementType type);
// "u8", "i32", "f64"...
std::string_view NameOf(ElementType type);

// What each record of a source consists of, where the format says so.
struct ItemShape {
  ElementType type = ElementType::kUint8;
  std::vector<std::uint32_t> dims;  // row by row, as they lie in the record; none: one element
  std::uint64_t Elements() const;
  bool operator==(const ItemShape&) const = default;
};

// Reads for one thread. It keeps what it has open and unpacked between reads, so ranges that follow each
// other cost no more than one. Its source outlives it.
class RecordCursor {
 public:
  virtual ~RecordCursor() = default;

  // Hands every record of the range to `visit`, in order; an empty record is a record. No record is handed
  // over before its checksum is verified, where the format has one. The records before an error have been
  // visited. Every error but the visitor's names the file and the byte, or says what is asked too much:
  //   OutOfRange            the range is not within the source
  //   DataLoss              damage
  //   FailedPrecondition    the file is not the one that was opened, or was changed since
  //   others                the system's, as when a file has vanished
  virtual absl::Status Read(RecordRange range, RecordVisitor visit) = 0;
};

// A sequence of records that does not change. Any number of threads may use it at once, each with a cursor of
// its own.
class RecordSource {
 public:
  virtual ~RecordSource() = default;

  virtual std::uint64_t Count() const = 0;
  virtual std::unique_ptr<RecordCursor> NewCursor() const = 0;
  // Where a record lies, to put before an error about what is in it: "train.csv: line 17". It must exist.
  virtual std::string Where(std::uint64_t number) const = 0;
  // Null where records have no common shape.
  virtual const ItemShape* Shape() const = 0;
  // Of all its files; kAuto if they are empty and nobody said what they are.
  virtual Format format() const = 0;
};

}  // namespace trainyard::data
