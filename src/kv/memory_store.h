// A store that forgets everything when it goes: for tests and simulation.
#pragma once

#include <memory>

#include "kv/local_store.h"

namespace trainyard::kv {

// Runs no thread: time passes for it only when it is called, so a manual clock drives it exactly. `seed`
// makes its lease ids repeat.
std::unique_ptr<LocalStore> NewMemoryStore(Clock& clock, std::uint64_t seed = 0);

}  // namespace trainyard::kv
