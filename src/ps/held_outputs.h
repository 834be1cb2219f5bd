// What trainers have put out in steps that they contributed, kept by the lead until the store has it: of a
// trainer that dies in between, the lead writes it. Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace trainyard::ps {

class HeldOutputs {
 public:
  struct Entry {
    std::int64_t incarnation = 0;  // of the trainer
    std::int64_t step = 0;
    std::string output;  // as the store has it
    bool operator==(const Entry&) const = default;
  };
  // Whether an entry of a trainer is meant.
  using Match = std::function<bool(int trainer, const Entry& entry)>;

  // The trainer has contributed a step and put out `entry.output` in it, if that is not empty. Of what it put
  // out before, all but the last `unwritten` is in the store. A second call changes nothing.
  void Add(int trainer, Entry entry, std::int64_t unwritten);
  // Those that match, by trainer and in their order.
  std::map<int, std::vector<std::string>> Find(const Match& match) const;
  void Drop(const Match& match);

 private:
  static constexpr std::size_t kMost = 10000;  // of one trainer: as many as the store keeps
  std::map<int, std::deque<Entry>> entries_;
};

}  // namespace trainyard::ps
