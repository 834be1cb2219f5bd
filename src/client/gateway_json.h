// Requests and results of a store to and from the JSON of etcd's gateway: keys and values in base64, numbers
// of 64 bits as texts, what is zero or empty left out. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/document.h"
#include "kv/store.h"

namespace trainyard::client {

std::string PrintRange(const kv::RangeRequest& request);
std::string PrintTxn(const kv::TxnRequest& request);
// The request for a watch from `start` on. Progress is always asked for: it tells from where to go on when a
// connection breaks.
std::string PrintWatch(const kv::WatchRequest& request, kv::Revision start);
// {"NAME":"number"}
std::string PrintNumber(std::string_view name, std::int64_t number);

// The number of a field, which may also be one; 0 if it is not there.
std::int64_t NumberAt(const Document& document, Path path);

// All of these: Internal for an answer that no etcd gives.
absl::StatusOr<kv::RangeResult> ReadRange(const Document& answer);
absl::StatusOr<kv::TxnResult> ReadTxn(const Document& answer);

// One answer to a watch.
struct WatchAnswer {
  bool created = false;
  bool canceled = false;
  kv::Revision revision = 0;   // the store's when it answered
  kv::Revision compacted = 0;  // set: what was asked for is older than this
  std::string reason;          // why it was canceled
  std::vector<kv::WatchEvent> events;
};
// From what stands under "result".
absl::StatusOr<WatchAnswer> ReadWatchAnswer(const Document& result);

}  // namespace trainyard::client
