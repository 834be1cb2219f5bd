// What an answer of a store's gateway, or its absence, says about the request. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kube/http.h"
#include "kv/store.h"

namespace trainyard::client {

enum class Outcome : std::uint8_t {
  kDone,
  kRefused,  // somebody understood it and said no: final
  kNotMade,  // it was not carried out; a little later it may be
  kUnknown,  // it may have been carried out
};

struct Verdict {
  Outcome outcome = Outcome::kDone;
  absl::Status status;  // the error in the store's terms, if it is one
};

// `where` is the store, for messages; `asked` the revision that the request named, if any. The answer may be
// of the gateway itself, of the API server before it, or of something else on the way.
Verdict Judge(const absl::StatusOr<kube::Response>& answer, std::string_view where, kv::Revision asked = 0);

// The same for an error that a stream reports, with gRPC's code and message.
Verdict JudgeGrpc(std::int64_t code, std::string_view message, std::string_view where,
                  kv::Revision asked = 0);

}  // namespace trainyard::client
