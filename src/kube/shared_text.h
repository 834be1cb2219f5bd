// Texts that many objects have in common, each kept once for the whole process: label keys, node names,
// reasons, owners. Ten thousand pods of one job then share one copy of the job's name.
#pragma once

#include <compare>
#include <cstddef>
#include <string_view>
#include <utility>

namespace trainyard::kube {

// A text that does not change, eight bytes in size. It is freed when the last that has it goes. Different
// objects may be used, copied and destroyed in different threads at once.
class SharedText {
 public:
  SharedText() = default;  // empty
  explicit SharedText(std::string_view text);
  SharedText(const SharedText& other);
  SharedText(SharedText&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  SharedText& operator=(SharedText other) noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  ~SharedText();

  std::string_view view() const;
  operator std::string_view() const { return view(); }  // NOLINT: a text like any other
  bool empty() const { return node_ == nullptr; }

  // Equal texts are one, so that no text is looked at.
  friend bool operator==(const SharedText& a, const SharedText& b) { return a.node_ == b.node_; }
  friend bool operator==(const SharedText& a, std::string_view b) { return a.view() == b; }
  friend std::strong_ordering operator<=>(const SharedText& a, const SharedText& b) {
    return a.view() <=> b.view();
  }

  // How many different texts there are; for tests.
  static std::size_t CountAll();

 private:
  friend struct SharedTextPool;
  struct Node;
  Node* node_ = nullptr;
};

}  // namespace trainyard::kube
