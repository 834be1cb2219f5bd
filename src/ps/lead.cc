#include "ps/lead.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "base/text.h"
#include "ps/lead.pb.h"

namespace trainyard::ps {
namespace {

std::string NameOf(int trainer) { return graph::GraphId(graph::GraphRole::kTrainer, trainer); }

bool HasLeft(const Seat& seat) {
  return std::any_of(seat.left.begin(), seat.left.end(),
                     [](const auto& pass) { return !pass.second.empty(); });
}

// What of a pass it has not contributed.
Ranges OpenOf(const Seat& seat, std::int64_t pass) {
  const auto found = seat.left.find(pass);
  if (found == seat.left.end()) return {};
  Ranges open = found->second;
  if (seat.contributed && seat.pending.pass == pass)
    TY_CHECK(Take(open, seat.pending.places).ok(), "what is contributed was left");
  return open;
}

// An even part for each, beside what it has.
void DealTo(const std::vector<Seat*>& takers, std::int64_t pass, const Ranges& ranges) {
  const std::vector<Ranges> parts = Deal(ranges, static_cast<int>(takers.size()));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].empty()) continue;
    Ranges& left = takers[i]->left[pass];
    left = Join(left, parts[i]);
  }
}

// Whether no two of them have a record in common.
bool AreApart(Ranges ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  return std::adjacent_find(ranges.begin(), ranges.end(),
                            [](const Range& a, const Range& b) { return a.end > b.begin; }) == ranges.end();
}

// Whether the open step waits for its trainer.
bool IsExpected(const Seat& seat) {
  return seat.awaited || (seat.member && !seat.contributed && (!seat.idle || HasLeft(seat)));
}

}  // namespace

Lead::Lead(graph::SyncMode mode, int trainers, std::int64_t passes, int least) {
  state_.mode = mode;
  state_.passes = passes;
  state_.least = least == 0 ? trainers : std::min(least, trainers);
  state_.seats.resize(static_cast<std::size_t>(trainers));
}

absl::StatusOr<Seat*> Lead::Find(int trainer, std::int64_t incarnation) {
  if (trainer < 0 || static_cast<std::size_t>(trainer) >= state_.seats.size()) {
    return absl::NotFoundError(
        StrCat("the job has no ", NameOf(trainer), ": it has ", state_.seats.size(), " trainers"));
  }
  Seat& seat = state_.seats[static_cast<std::size_t>(trainer)];
  if (incarnation < seat.incarnation)
    return absl::AbortedError(StrCat("a later ", NameOf(trainer), " has joined"));
  return &seat;
}

absl::StatusOr<JoinAnswer> Lead::Join(int trainer, std::int64_t incarnation, std::int64_t records,
                                      std::int64_t attempt) {
  TY_ASSIGN_OR_RETURN(Seat* const seat, Find(trainer, incarnation));
  if (incarnation == seat->incarnation && attempt < seat->attempt)
    return absl::AbortedError(StrCat(NameOf(trainer), " has joined again since"));
  if (records < 1)
    return absl::FailedPreconditionError(StrCat(NameOf(trainer), " finds no records: is its data there?"));
  if (state_.records != 0 && state_.records != records) {
    return absl::FailedPreconditionError(StrCat(NameOf(trainer), " counts ", records,
                                                " records and the others ", state_.records,
                                                ": all must see the same data"));
  }
  state_.records = records;
  seat->incarnation = incarnation;
  seat->attempt = attempt;
  seat->seen = true;
  seat->awaited = false;
  seat->member = true;
  seat->idle = false;
  const auto seen =
      std::count_if(state_.seats.begin(), state_.seats.end(), [](const Seat& one) { return one.seen; });
  state_.begun = state_.begun || seen >= state_.least;
  return AnswerFor(*seat);
}

// Where it stands once what it has contributed is committed, which it will be.
JoinAnswer Lead::AnswerFor(const Seat& seat) const {
  JoinAnswer answer;
  answer.step = state_.mode == graph::SyncMode::kAsync ? seat.step : state_.step + (seat.contributed ? 1 : 0);
  for (const auto& [pass, unused] : seat.left) {
    answer.share = {pass, OpenOf(seat, pass)};
    if (!answer.share.places.empty()) return answer;
  }
  answer.share = {};
  answer.done = state_.records != 0 && state_.dealt >= state_.passes;
  return answer;
}

void Lead::Await(int trainer) {
  const absl::StatusOr<Seat*> seat = Find(trainer, std::numeric_limits<std::int64_t>::max());
  if (seat.ok() && !(*seat)->member && !AnswerFor(**seat).done) (*seat)->awaited = true;
}

void Lead::Leave(int trainer, std::int64_t incarnation) {
  const absl::StatusOr<Seat*> seat = Find(trainer, incarnation);
  if (!seat.ok()) return;
  (*seat)->awaited = false;
  if ((*seat)->incarnation == incarnation) (*seat)->member = false;
}

absl::Status Lead::Contribute(int trainer, std::int64_t incarnation, std::int64_t step, const Share& used,
                              std::int64_t attempt) {
  TY_ASSIGN_OR_RETURN(Seat* const seat, Find(trainer, incarnation));
  if (incarnation != seat->incarnation || attempt != seat->attempt || !seat->member)
    return absl::AbortedError(StrCat(NameOf(trainer), " has not joined: join again"));
  const std::int64_t open = state_.mode == graph::SyncMode::kAsync ? seat->step : state_.step;
  if (step < open || (step == open && seat->contributed)) return absl::OkStatus();
  if (step > open)
    return absl::AbortedError(
        StrCat(NameOf(trainer), " is at step ", step, " and the job is at ", open, ": join again"));
  const auto left = seat->left.find(used.pass);
  Ranges rest = left == seat->left.end() ? Ranges() : left->second;
  if (absl::Status taken = Take(rest, used.places); !taken.ok()) {
    return absl::AbortedError(
        StrCat(NameOf(trainer), " used records that are not its own (", Message(taken), "): join again"));
  }
  seat->pending = used;
  seat->contributed = true;
  if (state_.mode == graph::SyncMode::kAsync) {
    Use(*seat);
    ++seat->step;
    ++state_.step;
  }
  return absl::OkStatus();
}

void Lead::Use(Seat& seat) {
  const auto left = seat.left.find(seat.pending.pass);
  TY_CHECK(left != seat.left.end() && Take(left->second, seat.pending.places).ok(),
           "what is contributed was left");
  if (left->second.empty()) seat.left.erase(left);
  seat.pending = {};
  seat.contributed = false;
}

bool Lead::IsGone(const Seat& seat) const {
  return !seat.member && !seat.awaited && (seat.seen || state_.begun);
}

void Lead::DealOut(std::int64_t pass, const Ranges& ranges) {
  std::vector<Seat*> takers;
  for (Seat& seat : state_.seats) {
    if (seat.member || seat.awaited || !seat.seen) takers.push_back(&seat);
  }
  if (takers.empty()) {
    for (Seat& seat : state_.seats) takers.push_back(&seat);
  }
  DealTo(takers, pass, ranges);
}

bool Lead::DealNextPass() {
  if (state_.records == 0 || state_.dealt >= state_.passes) return false;
  DealOut(state_.dealt, {{0, state_.records}});
  ++state_.dealt;
  return true;
}

bool Lead::DealOrphans() {
  std::map<std::int64_t, Ranges> orphans;
  for (const Seat& seat : state_.seats) {
    if (!IsGone(seat)) continue;
    for (const auto& [pass, unused] : seat.left) {
      if (Ranges open = OpenOf(seat, pass); !open.empty()) orphans[pass] = ps::Join(orphans[pass], open);
    }
  }
  if (orphans.empty()) return false;
  const auto& [pass, ranges] = *orphans.begin();
  for (Seat& seat : state_.seats) {
    if (!IsGone(seat) || !seat.left.contains(pass)) continue;
    TY_CHECK(Take(seat.left[pass], OpenOf(seat, pass)).ok(), "what is open is left");
    if (seat.left[pass].empty()) seat.left.erase(pass);
  }
  std::vector<Seat*> takers;
  for (Seat& seat : state_.seats) {
    if (!IsGone(seat)) takers.push_back(&seat);
  }
  TY_CHECK(!takers.empty(), "whoever asks is here");
  DealTo(takers, pass, ranges);
  return true;
}

absl::StatusOr<JoinAnswer> Lead::NextShare(int trainer, std::int64_t incarnation) {
  TY_ASSIGN_OR_RETURN(Seat* const seat, Find(trainer, incarnation));
  if (incarnation != seat->incarnation || !seat->member)
    return absl::AbortedError(StrCat(NameOf(trainer), " has not joined: join again"));
  JoinAnswer answer = AnswerFor(*seat);
  while (answer.share.places.empty() && (DealNextPass() || DealOrphans())) answer = AnswerFor(*seat);
  answer.done = answer.share.places.empty();
  if (seat->idle && !answer.done)
    return absl::AbortedError(StrCat("there is something to do for ", NameOf(trainer), ": join again"));
  seat->idle = answer.done;
  return answer;
}

std::vector<int> Lead::Rouse() {
  const auto is_idle = [](const Seat& seat) { return seat.member && seat.idle; };
  if (std::none_of(state_.seats.begin(), state_.seats.end(), is_idle)) return {};
  while (DealOrphans()) {
  }
  std::vector<int> roused;
  for (std::size_t i = 0; i < state_.seats.size(); ++i) {
    const Seat& seat = state_.seats[i];
    if (is_idle(seat) && !AnswerFor(seat).share.places.empty()) roused.push_back(static_cast<int>(i));
  }
  return roused;
}

std::optional<std::vector<int>> Lead::Complete() const {
  if (!state_.begun) return std::nullopt;
  std::vector<int> contributors;
  for (std::size_t i = 0; i < state_.seats.size(); ++i) {
    const Seat& seat = state_.seats[i];
    if (IsExpected(seat)) return std::nullopt;
    if (seat.contributed) contributors.push_back(static_cast<int>(i));
  }
  if (contributors.empty()) return std::nullopt;
  return contributors;
}

void Lead::Commit() {
  for (Seat& seat : state_.seats) {
    if (seat.contributed) Use(seat);
  }
  ++state_.step;
}

void Lead::SetTrainers(int trainers) {
  std::map<std::int64_t, Ranges> left;
  for (Seat& seat : state_.seats) {
    seat.contributed = false;
    seat.pending = {};
    seat.idle = false;
    for (auto& [pass, ranges] : seat.left) left[pass] = ps::Join(left[pass], ranges);
    seat.left.clear();
  }
  // One that was there before, under the same name, has counted no further than this.
  state_.seats.resize(static_cast<std::size_t>(trainers),
                      Seat{.step = state_.mode == graph::SyncMode::kAsync ? state_.step : 0});
  // Nobody waits for those that are new: they take part when they come.
  state_.least = std::min(state_.least, trainers);
  for (const auto& [pass, ranges] : left) DealOut(pass, ranges);
}

bool Lead::IsHere(int trainer, std::int64_t incarnation) const {
  if (static_cast<std::size_t>(trainer) >= state_.seats.size()) return false;
  const Seat& seat = state_.seats[static_cast<std::size_t>(trainer)];
  return seat.member && seat.incarnation == incarnation;
}

std::int64_t Lead::OpenStepOf(int trainer) const {
  if (state_.mode == graph::SyncMode::kSync) return state_.step;
  // One that the job has no place for any more contributed all that it did.
  if (static_cast<std::size_t>(trainer) >= state_.seats.size())
    return std::numeric_limits<std::int64_t>::max();
  return state_.seats[static_cast<std::size_t>(trainer)].step;
}

bool Lead::Done() const {
  return state_.records != 0 && state_.dealt >= state_.passes &&
         std::none_of(state_.seats.begin(), state_.seats.end(),
                      [](const Seat& seat) { return HasLeft(seat); });
}

std::int64_t Lead::Used(std::int64_t pass) const {
  if (pass >= state_.dealt) return 0;
  std::int64_t left = 0;
  for (const Seat& seat : state_.seats) {
    const auto found = seat.left.find(pass);
    if (found != seat.left.end()) left += SizeOf(found->second);
  }
  return state_.records - left;
}

std::string Lead::WaitsFor() const {
  std::string names;
  for (std::size_t i = 0; i < state_.seats.size(); ++i) {
    const Seat& seat = state_.seats[i];
    if (!IsExpected(seat) && (state_.begun || seat.seen)) continue;
    StrAppend(names, names.empty() ? "" : ", ", NameOf(static_cast<int>(i)),
              seat.seen ? "" : " (has not joined yet)");
  }
  return names;
}

std::string Lead::Save() const {
  wire::LeadDesc desc;
  desc.set_async(state_.mode == graph::SyncMode::kAsync);
  desc.set_passes(state_.passes);
  desc.set_step(state_.step);
  desc.set_records(state_.records);
  desc.set_dealt(state_.dealt);
  desc.set_least(state_.least);
  desc.set_begun(state_.begun);
  for (const Seat& seat : state_.seats) {
    wire::SeatDesc& out = *desc.add_seats();
    out.set_step(seat.step);
    out.set_seen(seat.seen);
    for (const auto& [pass, ranges] : seat.left) {
      wire::LeftDesc& left = *out.add_left();
      left.set_pass(pass);
      for (const Range& range : ranges) {
        left.add_bounds(range.begin);
        left.add_bounds(range.end);
      }
    }
  }
  return desc.SerializeAsString();
}

absl::StatusOr<LeadState> Lead::Load(std::string_view text) {
  const auto damaged = [](std::string_view why) {
    return absl::DataLossError(StrCat("the account of the data cannot be read: ", why));
  };
  wire::LeadDesc desc;
  if (!desc.ParseFromArray(text.data(), static_cast<int>(text.size()))) return damaged("not its bytes");
  LeadState state{.mode = desc.async() ? graph::SyncMode::kAsync : graph::SyncMode::kSync,
                  .passes = desc.passes(),
                  .step = desc.step(),
                  .records = desc.records(),
                  .dealt = desc.dealt(),
                  .least = static_cast<int>(desc.least()),
                  .begun = desc.begun()};
  if (state.step < 0 || state.records < 0 || state.dealt < 0 || state.dealt > state.passes ||
      desc.least() < 1 || desc.least() > desc.seats_size())
    return damaged("a number that cannot be");
  std::map<std::int64_t, Ranges> all;
  for (const wire::SeatDesc& in : desc.seats()) {
    Seat& seat = state.seats.emplace_back(Seat{.step = in.step(), .seen = in.seen()});
    for (const wire::LeftDesc& left : in.left()) {
      if (left.pass() < 0 || left.pass() >= state.dealt || left.bounds_size() % 2 != 0)
        return damaged("a pass that was not dealt");
      Ranges& ranges = seat.left[left.pass()];
      for (int i = 0; i < left.bounds_size(); i += 2) {
        const Range range{left.bounds(i), left.bounds(i + 1)};
        const std::int64_t floor = ranges.empty() ? 0 : ranges.back().end + 1;
        if (range.begin < floor || range.end <= range.begin || range.end > state.records)
          return damaged("ranges out of order");
        ranges.push_back(range);
        all[left.pass()].push_back(range);
      }
    }
  }
  for (auto& [pass, ranges] : all) {
    if (!AreApart(std::move(ranges))) return damaged("a record that two trainers have");
  }
  return state;
}

}  // namespace trainyard::ps
