#include "kv/memory_store.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/check.h"
#include "base/mutex.h"

namespace trainyard::kv {
namespace {

class MemoryValue final : public RecordSource {
 public:
  explicit MemoryValue(std::string_view value) : value_(value) {}
  absl::StatusOr<std::string> ReadValue(const Location&) const override { return value_; }

 private:
  const std::string value_;
};

class MemoryJournal final : public Journal {
 public:
  void Stage(std::span<const Record> records, std::vector<Location>& locations) override {
    MutexLock lock(mu_);
    for (const Record& record : records) {
      locations.push_back({.offset = next_++});
      if (record.kind == Record::Kind::kPut) {
        values_.emplace(locations.back().offset, std::make_shared<MemoryValue>(record.value));
      }
    }
  }
  absl::Status Flush() override { return absl::OkStatus(); }

  std::shared_ptr<const RecordSource> Find(const Location& location) const override {
    MutexLock lock(mu_);
    const auto it = values_.find(location.offset);
    return it == values_.end() ? nullptr : it->second;  // the end of a key has no value
  }
  void Release(const Location& location) override {
    MutexLock lock(mu_);
    values_.erase(location.offset);
  }

 private:
  mutable Mutex mu_;
  absl::flat_hash_map<std::uint64_t, std::shared_ptr<const MemoryValue>> values_ TY_GUARDED_BY(mu_);
  std::uint64_t next_ TY_GUARDED_BY(mu_) = 0;
};

class MemoryStore final : public LocalStore {
 public:
  explicit MemoryStore(Options options) : LocalStore(std::make_unique<MemoryJournal>(), std::move(options)) {
    StartKeeper();
  }
};

}  // namespace

std::unique_ptr<LocalStore> NewMemoryStore(Clock& clock, std::uint64_t seed) {
  LocalStore::Options options;
  options.clock = &clock;
  options.url = "memory:";
  options.keeper = false;
  options.lease_seed = seed;
  return std::make_unique<MemoryStore>(std::move(options));
}

}  // namespace trainyard::kv
