#include "ps/held_outputs.h"

#include <algorithm>
#include <utility>

namespace trainyard::ps {

void HeldOutputs::Add(int trainer, Entry entry, std::int64_t unwritten) {
  std::deque<Entry>& held = entries_[trainer];
  // What an earlier incarnation left is the lead's to write.
  const auto own =
      std::ranges::find_if(held, [&](const Entry& one) { return one.incarnation == entry.incarnation; });
  if (own != held.end() && held.back().step >= entry.step) return;
  const std::int64_t written = held.end() - own - std::max<std::int64_t>(unwritten, 0);
  if (written > 0) held.erase(own, own + written);
  if (!entry.output.empty()) held.push_back(std::move(entry));
  if (held.size() > kMost) held.pop_front();
}

std::map<int, std::vector<std::string>> HeldOutputs::Find(const Match& match) const {
  std::map<int, std::vector<std::string>> found;
  for (const auto& [trainer, held] : entries_) {
    for (const Entry& entry : held) {
      if (match(trainer, entry)) found[trainer].push_back(entry.output);
    }
  }
  return found;
}

void HeldOutputs::Drop(const Match& match) {
  for (auto& [trainer, held] : entries_)
    std::erase_if(held, [&](const Entry& entry) { return match(trainer, entry); });
}

}  // namespace trainyard::ps
