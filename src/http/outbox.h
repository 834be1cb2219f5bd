// What a connection has yet to send: texts and pieces that are shared with other connections, in order.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard::http {

// Used by one thread.
class Outbox {
 public:
  void Add(std::string text) { items_.push_back({.text = std::move(text)}); }
  // A text, then a shared piece, if there is one.
  void Add(std::string text, std::shared_ptr<const std::string> piece) {
    items_.push_back({.text = std::move(text), .piece = std::move(piece)});
  }
  // The piece as a chunk of HTTP/1.1.
  void AddChunk(std::shared_ptr<const std::string> piece);

  bool empty() const { return items_.empty(); }

  // The next bytes to write: at least as many, and the same, as when they were asked for last. They are in
  // `buffer`, or in a piece that is longer than it.
  std::string_view Gather(std::vector<char>& buffer) const;
  // So many of them have been written; returns the size of the pieces that are done with.
  std::size_t Consume(std::size_t bytes);

 private:
  struct Item {
    std::string text;
    std::shared_ptr<const std::string> piece;
    bool chunk = false;  // its end follows
    std::size_t size() const { return text.size() + (piece ? piece->size() : 0) + (chunk ? 2 : 0); }
  };

  // What is left begins at the first item's offset.
  std::vector<Item> items_;
  std::size_t first_ = 0;
  std::size_t offset_ = 0;
};

}  // namespace trainyard::http
