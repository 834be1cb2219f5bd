// Leases by number. Numbers rise and most leases are short, so those that are neighbours in number are
// neighbours in memory, in small blocks that go when their last lease does. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "tasks/task.h"

namespace trainyard::tasks {

// Small: there may be many.
struct Lessee {
  std::int64_t begin = 0;  // of what is left
  std::uint32_t size = 0;  // likewise; 0: there is no such lease
  std::int32_t epoch = 0;
  TaskId previous = 0;  // of the same worker's; 0: none
  TaskId next = 0;
  WorkerIndex worker = kNobody;
  std::uint16_t failures = 0;
  Kind kind = Kind::kTraining;
  std::int64_t end() const { return begin + size; }
};

class TaskTable {
 public:
  // Null: there is none.
  Lessee* Find(TaskId id) {
    Block* const block = BlockOf(id);
    if (block == nullptr) return nullptr;
    Lessee& lessee = block->lessees[PlaceOf(id)];
    return lessee.size == 0 ? nullptr : &lessee;
  }
  const Lessee* Find(TaskId id) const { return const_cast<TaskTable*>(this)->Find(id); }

  // Of a number that is not there; its address stays until it is erased.
  Lessee& Insert(TaskId id, const Lessee& lessee) {
    Block* block = BlockOf(id);
    if (block == nullptr) {
      auto& made = blocks_[id / kBlock];
      made = std::make_unique<Block>();
      block = last_ = made.get();
      last_number_ = id / kBlock;
    }
    ++block->live;
    ++size_;
    return block->lessees[PlaceOf(id)] = lessee;
  }

  // It is there.
  void Erase(TaskId id) {
    Block* const block = BlockOf(id);
    block->lessees[PlaceOf(id)].size = 0;
    --size_;
    if (--block->live > 0) return;
    last_ = nullptr;
    blocks_.erase(id / kBlock);
  }

  std::int64_t size() const { return size_; }

  // Calls work(id, lessee) for each, in no order.
  template <typename Work>
  void ForEach(const Work& work) const {
    for (const auto& [number, block] : blocks_) {
      for (int place = 0; place < kBlock; ++place) {
        const Lessee& lessee = block->lessees[static_cast<std::size_t>(place)];
        if (lessee.size > 0) work(number * kBlock + place, lessee);
      }
    }
  }

 private:
  static constexpr int kBlock = 64;
  struct Block {
    std::array<Lessee, kBlock> lessees;
    int live = 0;
  };
  static std::size_t PlaceOf(TaskId id) { return static_cast<std::size_t>(id % kBlock); }

  Block* BlockOf(TaskId id) {
    if (last_ != nullptr && last_number_ == id / kBlock) return last_;
    const auto found = blocks_.find(id / kBlock);
    if (found == blocks_.end()) return nullptr;
    last_ = found->second.get();
    last_number_ = found->first;
    return last_;
  }

  absl::flat_hash_map<std::int64_t, std::unique_ptr<Block>> blocks_;
  std::int64_t size_ = 0;
  Block* last_ = nullptr;  // that was looked at
  std::int64_t last_number_ = 0;
};

}  // namespace trainyard::tasks
