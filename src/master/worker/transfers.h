// Lists of values over a link, in as many messages as they take.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "master/rpc/link.h"
#include "master/variables.h"

namespace trainyard::master {

// All messages at once: `fill` makes the head of the one at `offset`. `done` has the answer to the last.
void SendValues(
    Link& link, const NamedValues& values,
    const std::function<void(wire::Request& request, std::int64_t offset, std::int64_t total)>& fill,
    Link::Done done);

// The values of a model whose first message has come; the others are asked for.
absl::StatusOr<NamedValues> CollectValues(Link& link, const wire::Pulled& first, const ps::Unpacked& message);

// Waits for the answer to what `start` asks.
absl::StatusOr<Reply> Await(const std::function<void(Link::Done)>& start);

}  // namespace trainyard::master
