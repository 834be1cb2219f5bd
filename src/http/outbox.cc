#include "http/outbox.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <utility>

namespace trainyard::http {
namespace {

std::string ChunkHead(std::size_t size) {
  std::array<char, 18> text;
  char* end = std::to_chars(text.data(), text.data() + 16, size, 16).ptr;
  *end++ = '\r';
  *end++ = '\n';
  return {text.data(), end};
}

}  // namespace

void Outbox::AddChunk(std::shared_ptr<const std::string> piece) {
  std::string head = ChunkHead(piece->size());
  items_.push_back({.text = std::move(head), .piece = std::move(piece), .chunk = true});
}

std::string_view Outbox::Gather(std::vector<char>& buffer) const {
  const Item& first = items_[first_];
  if (first.piece != nullptr && offset_ >= first.text.size()) {
    const std::string_view rest =
        std::string_view(*first.piece).substr(std::min(offset_ - first.text.size(), first.piece->size()));
    if (rest.size() >= buffer.size()) return rest.substr(0, buffer.size());
  }
  std::size_t filled = 0;
  std::size_t skip = offset_;
  const auto add = [&](std::string_view part) {
    const std::size_t skipped = std::min(skip, part.size());
    skip -= skipped;
    part.remove_prefix(skipped);
    part = part.substr(0, buffer.size() - filled);
    std::memcpy(buffer.data() + filled, part.data(), part.size());
    filled += part.size();
  };
  for (std::size_t i = first_; i < items_.size() && filled < buffer.size(); ++i) {
    add(items_[i].text);
    if (items_[i].piece != nullptr) add(*items_[i].piece);
    if (items_[i].chunk) add("\r\n");
  }
  return {buffer.data(), filled};
}

std::size_t Outbox::Consume(std::size_t bytes) {
  std::size_t pieces = 0;
  offset_ += bytes;
  while (first_ < items_.size() && offset_ >= items_[first_].size()) {
    Item& done = items_[first_++];
    offset_ -= done.size();
    if (done.piece != nullptr) pieces += done.piece->size();
    done = {};
  }
  if (first_ == items_.size()) {
    first_ = 0;
    items_.clear();
    // Its memory is kept for an answer under way, not for a connection that waits.
    if (items_.capacity() > 4) items_ = {};
  }
  return pieces;
}

}  // namespace trainyard::http
