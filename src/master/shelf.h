// Versions of a model for those who fetch it: the newest, the one that is evaluated, and, of models that take
// several messages, whatever somebody has begun to fetch.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "master/call.h"
#include "master/variables.h"

namespace trainyard::master {

// One thread at a time.
class Shelf {
 public:
  explicit Shelf(std::int64_t generation) : generation_(generation) {}

  // What the first message of every version says besides: which variables are parts of larger ones, and which
  // gradients are wanted.
  void Describe(std::map<std::string, wire::Slice> slices, std::vector<wire::Variable> gradients);

  // The newest from now on.
  void Put(std::int64_t version, NamedValues values);
  // The newest is about to change: what nobody else has need not be copied for that.
  void TakeAway() { newest_.values.clear(); }
  // Keeps the newest for those who evaluate it, instead of the one that was kept before.
  void Freeze() { frozen_ = newest_; }
  std::int64_t version() const { return newest_.version; }

  // The first message of the newest: what it says and its bytes.
  wire::Pulled First(Session* session, std::vector<ps::Payload>& payload);
  // Aborted: that version is gone, or of another generation. InvalidArgument: there is no such part of it.
  void Answer(const Call& call, const wire::Pull& pull);
  // The session has ended.
  void Forget(Session* session) { held_.erase(session); }

 private:
  struct Version {
    std::int64_t version = -1;
    NamedValues values;
  };
  wire::Pulled HeadOf(const Version& version) const;
  const Version* Find(Session* session, std::int64_t version) const;
  void Hold(Session* session, const Version& version);

  const std::int64_t generation_;
  Version newest_;
  Version frozen_;
  std::map<Session*, Version> held_;
  std::map<std::string, wire::Slice> slices_;
  std::vector<wire::Variable> gradients_;
};

}  // namespace trainyard::master
