// Where a local store keeps its records: in memory, or durably on disk (kv/disk/).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kv/store.h"

namespace trainyard::kv {

// One change, as it is kept.
struct Record {
  enum class Kind : std::uint8_t {
    kPut = 1,
    kDelete = 2,
    kLeaseGrant = 3,   // lease, ttl_ms
    kLeaseRevoke = 4,  // lease
    kCompact = 5,      // revision: all superseded before it is forgotten
    kBase = 6,         // revision: the newest when the records that follow were copied together
  };
  Kind kind = Kind::kPut;
  bool ends_txn = false;  // the records up to one that has this set are kept all or none
  Revision revision = 0;
  std::uint32_t sub = 0;  // order within the revision
  Revision create_revision = 0;
  std::int64_t version = 0;
  LeaseId lease = kNoLease;
  std::int64_t ttl_ms = 0;
  std::string_view key;
  std::string_view value;
  bool operator==(const Record&) const = default;
};

// The key as a put record leaves it; of a delete record, the key and the revision that ended it.
inline KeyValue ToKeyValue(const Record& record) {
  return {.key = std::string(record.key),
          .value = std::string(record.value),
          .create_revision = record.create_revision,
          .mod_revision = record.revision,
          .version = record.version,
          .lease = record.lease};
}

// Where a record is.
struct Location {
  std::uint32_t segment = 0;
  std::uint32_t length = 0;
  std::uint64_t offset = 0;
  bool operator==(const Location&) const = default;
};

// A record that can be read without a lock, also after its place in the journal has been given up.
class RecordSource {
 public:
  virtual ~RecordSource() = default;
  // The value of the put record at `location`. DataLoss if it is damaged.
  virtual absl::StatusOr<std::string> ReadValue(const Location& location) const = 0;
};

// Stage() and Flush() are called by one thread at a time; Find() and Release() by any.
class Journal {
 public:
  virtual ~Journal() = default;

  // Takes the records of one transaction behind those staged before; fills `locations`, one for each.
  virtual void Stage(std::span<const Record> records, std::vector<Location>& locations) = 0;
  // Makes what is staged durable. After an error nothing of it will be found again, the next Stage() starts
  // anew. DataLoss: the journal cannot tell any more what is on disk, and takes nothing until it is opened
  // again.
  virtual absl::Status Flush() = 0;
  // Also finds what is staged; but that only in the thread that staged it.
  virtual std::shared_ptr<const RecordSource> Find(const Location& location) const = 0;
  // The record is not needed any more.
  virtual void Release(const Location& location) = 0;
};

}  // namespace trainyard::kv
