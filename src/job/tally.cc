#include "job/tally.h"

#include "base/text.h"
#include "job/names.h"

namespace trainyard::job {

void Tally::Add(const RoleSpec& role, int index, const PodView* pod, Fate fate) {
  ++counts_[static_cast<std::size_t>(fate)];
  ++wanted_;
  if (fate == Fate::kCompleted || fate == Fate::kRuns) return;
  if (waiting_role_ != nullptr && fate <= waiting_fate_) {
    ++others_;
    return;
  }
  others_ += waiting_role_ == nullptr ? 0 : 1;
  waiting_fate_ = fate;
  waiting_role_ = &role;
  waiting_for_ = ShortName(role.slug, index);
  waiting_why_ = pod == nullptr ? "" : pod->waits;
}

std::string Tally::PrintWaitingFor() const {
  std::string text = waiting_for_;
  if (!waiting_why_.empty()) StrAppend(text, " (", waiting_why_, ")");
  if (others_ > 0) StrAppend(text, " and ", others_, others_ == 1 ? " other" : " others");
  return text;
}

}  // namespace trainyard::job
