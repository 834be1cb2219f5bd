#include "job/tally.h"

#include "base/text.h"
#include "job/names.h"

namespace trainyard::job {

void Tally::Add(const RoleSpec& role, int index, const PodView* pod, Fate fate) {
  ++counts_[static_cast<std::size_t>(fate)];
  ++wanted_;
  if (fate == Fate::kCompleted || fate == Fate::kGivenUp || fate == Fate::kRuns) return;
  if (pod == nullptr || pod->node.empty()) ++unscheduled_;
  if (waiting_role_ != nullptr && fate <= waiting_fate_) {
    ++others_;
    return;
  }
  others_ += waiting_role_ == nullptr ? 0 : 1;
  waiting_fate_ = fate;
  waiting_role_ = &role;
  waiting_for_ = ShortName(role.slug, index);
  waiting_why_.clear();
  if (pod != nullptr) waiting_why_ = pod->creation_error.empty() ? pod->waits : pod->creation_error;
}

std::string Tally::PrintWaitingFor() const {
  std::string text = waiting_for_;
  if (!waiting_why_.empty()) StrAppend(text, " (", waiting_why_, ")");
  if (others_ > 0) StrAppend(text, " and ", others_, others_ == 1 ? " other" : " others");
  return text;
}

std::string Tally::PrintWaiting() const {
  const std::string_view are = others_ > 0 ? " are" : " is";
  switch (waiting_fate_) {
    case Fate::kLeaves:
      return StrCat(PrintWaitingFor(), are, " being deleted and", are, " made again");
    case Fate::kMissing:
      return StrCat(PrintWaitingFor(), are, " missing and", are, " made");
    case Fate::kCompleted:
    case Fate::kGivenUp:
    case Fate::kRuns:
    case Fate::kStarts:
    case Fate::kRestarts:
    case Fate::kStale:
      break;
  }
  return StrCat("waiting for ", PrintWaitingFor());
}

std::string Tally::PrintRunning() const {
  const int completed = Count(Fate::kCompleted);
  const int given_up = Count(Fate::kGivenUp);
  if (completed == 0 && given_up == 0) {
    return wanted_ == 1 ? "its pod runs" : StrCat("all ", wanted_, " pods run");
  }
  std::string text = StrCat(Count(Fate::kRuns), " of ", wanted_, " pods run");
  if (completed > 0) StrAppend(text, ", ", completed, completed == 1 ? " has" : " have", " completed");
  if (given_up > 0) StrAppend(text, ", ", given_up, given_up == 1 ? " has" : " have", " failed");
  return text;
}

std::string Tally::PrintExisting() const {
  const int there = wanted_ - Count(Fate::kMissing);
  return StrCat(there, " of ", wanted_, " pods and ", wanted_ - missing_services_, " of ", wanted_,
                " services exist");
}

}  // namespace trainyard::job
