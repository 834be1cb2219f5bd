// The fixture of the contract suite: one store, and keys that no other test uses.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kv/store.h"
#include "tests/contract/store_under_test.h"

namespace trainyard::kv {

// How long a test waits for what must come. Never reached when the store is right.
inline constexpr absl::Duration kPatience = absl::Seconds(60);

class StoreContract : public testing::TestWithParam<StoreKind> {
 protected:
  void SetUp() override { under_test_ = GetParam().make(); }

  Store& store() { return under_test_->store(); }
  void LetPass(absl::Duration time) { under_test_->LetPass(time); }

  static std::string K(std::string_view name) {
    const std::string_view test = testing::UnitTest::GetInstance()->current_test_info()->name();
    return StrCat(test.substr(0, test.find('/')), "/", name);
  }
  static KeyRange All() { return KeyRange::Prefix(K("")); }

  Revision Put(std::string_view name, std::string_view value, LeaseId lease = kNoLease) {
    const auto revision = store().Put(K(name), value, lease);
    EXPECT_TRUE(revision.ok()) << revision.status();
    return revision.value_or(0);
  }
  std::optional<KeyValue> Get(std::string_view name, Revision revision = 0) {
    auto result = store().Get(K(name), revision);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? result->kv : std::nullopt;
  }
  std::int64_t Delete(KeyRange range) {
    const auto result = store().Delete(std::move(range));
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? result->deleted : -1;
  }
  TxnResult Txn(const TxnRequest& request) {
    auto result = store().Txn(request);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.value_or(TxnResult{});
  }
  std::unique_ptr<Watcher> Watch(WatchRequest request) {
    auto watcher = store().Watch(std::move(request));
    EXPECT_TRUE(watcher.ok()) << watcher.status();
    return watcher.ok() ? *std::move(watcher) : nullptr;
  }

  // "put a=1", "delete a": the next `count` events, without the test's name before the keys.
  static std::vector<std::string> NextEvents(Watcher& watcher, std::size_t count) {
    std::vector<std::string> events;
    while (events.size() < count) {
      const auto batch = watcher.Next(kPatience);
      EXPECT_TRUE(batch.ok()) << batch.status();
      if (!batch.ok()) break;
      for (const WatchEvent& event : batch->events) events.push_back(Show(event));
    }
    return events;
  }
  static std::string Show(const WatchEvent& event) {
    const std::string name = event.kv.key.substr(event.kv.key.find('/') + 1);
    return event.type == WatchEvent::Type::kPut ? StrCat("put ", name, "=", event.kv.value)
                                                : StrCat("delete ", name);
  }

 private:
  std::unique_ptr<StoreUnderTest> under_test_;
};

inline std::string KindName(const testing::TestParamInfo<StoreKind>& info) { return info.param.name; }

}  // namespace trainyard::kv
