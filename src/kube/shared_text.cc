#include "kube/shared_text.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <new>

#include "absl/container/flat_hash_set.h"
#include "base/mutex.h"

namespace trainyard::kube {

// The characters follow it in the same piece of memory.
struct SharedText::Node {
  std::atomic<std::uint32_t> users{1};
  std::uint32_t size = 0;

  char* Start() { return reinterpret_cast<char*>(this + 1); }
  std::string_view Text() const { return {reinterpret_cast<const char*>(this + 1), size}; }
};

struct SharedTextPool {
  using Node = SharedText::Node;

  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
    std::size_t operator()(const Node* node) const { return (*this)(node->Text()); }
  };
  struct Equal {
    using is_transparent = void;
    static std::string_view TextOf(std::string_view text) { return text; }
    static std::string_view TextOf(const Node* node) { return node->Text(); }
    template <typename A, typename B>
    bool operator()(const A& a, const B& b) const {
      return TextOf(a) == TextOf(b);
    }
  };
  struct Shard {
    Mutex mu;
    absl::flat_hash_set<Node*, Hash, Equal> nodes TY_GUARDED_BY(mu);
  };

  // Never destroyed: a static object elsewhere may hold a text until the very end.
  static SharedTextPool& Get() {
    static auto& pool = *new SharedTextPool;
    return pool;
  }
  Shard& ShardOf(std::string_view text) { return shards[Hash()(text) / 7 % shards.size()]; }

  Node* Take(std::string_view text) {
    Shard& shard = ShardOf(text);
    MutexLock lock(shard.mu);
    if (const auto found = shard.nodes.find(text); found != shard.nodes.end()) {
      (*found)->users.fetch_add(1, std::memory_order_relaxed);
      return *found;
    }
    Node* node = new (::operator new(sizeof(Node) + text.size())) Node;
    node->size = static_cast<std::uint32_t>(text.size());
    std::memcpy(node->Start(), text.data(), text.size());
    shard.nodes.insert(node);
    return node;
  }

  // The last user goes under the lock: Take() cannot find the node and then lose it.
  void Release(Node* node) {
    std::uint32_t users = node->users.load(std::memory_order_relaxed);
    while (users > 1) {
      if (node->users.compare_exchange_weak(users, users - 1, std::memory_order_release)) return;
    }
    Shard& shard = ShardOf(node->Text());
    MutexLock lock(shard.mu);
    if (node->users.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
    shard.nodes.erase(node);
    node->~Node();
    ::operator delete(node);
  }

  std::array<Shard, 16> shards;
};

SharedText::SharedText(std::string_view text)
    : node_(text.empty() ? nullptr : SharedTextPool::Get().Take(text)) {}

SharedText::SharedText(const SharedText& other) : node_(other.node_) {
  if (node_ != nullptr) node_->users.fetch_add(1, std::memory_order_relaxed);
}

SharedText::~SharedText() {
  if (node_ != nullptr) SharedTextPool::Get().Release(node_);
}

std::string_view SharedText::view() const { return node_ == nullptr ? std::string_view() : node_->Text(); }

std::size_t SharedText::CountAll() {
  std::size_t count = 0;
  for (SharedTextPool::Shard& shard : SharedTextPool::Get().shards) {
    MutexLock lock(shard.mu);
    count += shard.nodes.size();
  }
  return count;
}

}  // namespace trainyard::kube
