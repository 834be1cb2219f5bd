// Cutting JSON texts out of larger ones without building them as documents: a list's items and a watch's
// objects are passed on as the server wrote them.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "kube/api.h"

namespace trainyard::kube {

// One page of a list. Items that are missing or null are none. Internal: the text is no list.
absl::StatusOr<ListPage> SliceList(std::string json);

struct EventSlice {
  std::string type;    // "ADDED"
  std::string object;  // JSON text
};
// One event of a watch. Internal: the text is no event.
absl::StatusOr<EventSlice> SliceEvent(std::string_view json);

// What metadata says about which object this is, and of which version; empty where it says nothing.
struct Identity {
  std::string name;
  std::string resource_version;
};
Identity FindIdentity(std::string_view json);

}  // namespace trainyard::kube
