// The stores that the contract suite runs over, each made ready for one test.
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "kv/store.h"

namespace trainyard::kv {

class StoreUnderTest {
 public:
  virtual ~StoreUnderTest() = default;
  virtual Store& store() = 0;
  // Makes at least this much time pass for the store. Real time passes by itself: there, waiting for the
  // event that it must bring is the test.
  virtual void LetPass(absl::Duration time) = 0;
};

struct StoreKind {
  std::string name;
  std::function<std::unique_ptr<StoreUnderTest>()> make;
};

inline void PrintTo(const StoreKind& kind, std::ostream* out) { *out << kind.name; }

// Memory, Embedded, Etcd, Served and Gateway.
std::vector<StoreKind> AllStoreKinds();

}  // namespace trainyard::kv
