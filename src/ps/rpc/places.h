// Shares of data as they travel.
#pragma once

#include "absl/status/statusor.h"
#include "ps/record_batches.h"
#include "ps/rpc/message.pb.h"

namespace trainyard::ps {

wire::Places ToWire(const Share& share);
// InvalidArgument: the ranges are not in order.
absl::StatusOr<Share> FromWire(const wire::Places& places);

}  // namespace trainyard::ps
