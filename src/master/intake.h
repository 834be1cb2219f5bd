// Values that come in several messages of one session: put together, and handed on when they are whole.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "master/call.h"
#include "master/variables.h"

namespace trainyard::master {

// `Head` has the fields offset, total and variables. One thread at a time.
template <typename Head>
class Intake {
 public:
  struct Whole {
    Head head;                // of the first message
    std::vector<Call> calls;  // of all of them: none has been answered
    NamedValues values;
  };
  using Begin = std::function<absl::Status(Assembly& assembly, const Head& head)>;

  // One message more; `begin` begins an assembly with a first one. Nothing: more is to come, or something is
  // wrong, which all calls have been told then.
  std::optional<Whole> Take(const Call& call, const Head& head, const ps::Unpacked& message,
                            const Begin& begin) {
    Session* const session = call.session.get();
    if (head.offset() == 0) coming_.erase(session);
    Coming& coming = coming_[session];
    coming.whole.calls.push_back(call);
    absl::Status wrong;
    if (head.offset() == 0) {
      coming.whole.head = head;
      wrong = begin(coming.assembly, head);
    }
    if (wrong.ok()) wrong = coming.assembly.Add(head.offset(), message);
    if (wrong.ok() && !coming.assembly.complete()) return std::nullopt;
    Whole whole = std::move(coming.whole);
    whole.values = coming.assembly.Take();
    coming_.erase(session);
    if (wrong.ok()) return whole;
    for (const Call& part : whole.calls) part.Refuse(wrong);
    return std::nullopt;
  }

  // The session has ended: what it has begun is forgotten.
  void Forget(Session* session) { coming_.erase(session); }

 private:
  struct Coming {
    Assembly assembly;
    Whole whole;
  };
  std::map<Session*, Coming> coming_;
};

// Answers all messages of a push at once, and only when it is judged, so that a worker whose stream breaks
// before this sends all of them again.
inline void AnswerPush(const std::vector<Call>& calls, wire::Answer answer,
                       std::vector<ps::Payload> payload = {}) {
  for (std::size_t i = 0; i + 1 < calls.size(); ++i) {
    wire::Answer part;
    part.mutable_pushed()->set_verdict(wire::Pushed::kPart);
    calls[i].Reply(std::move(part));
  }
  calls.back().Reply(std::move(answer), std::move(payload));
}

}  // namespace trainyard::master
