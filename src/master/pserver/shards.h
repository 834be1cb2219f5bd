// A job's pservers as its master has them: they come, are given orders, and say what became of these.
//
//   Tell ──▶ [an order for each pserver] ── Serve (it asks) ──▶ obeys ── Obeyed ──▶ done, when all have
//
// Orders are kept until they are obeyed, so that one who comes late, or whose stream broke, misses none. A
// pserver that ends takes what it had learnt along: then all is lost, and the master begins anew from a
// checkpoint.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "base/steady_time.h"
#include "master/call.h"
#include "master/master.h"
#include "master/wire.pb.h"

namespace trainyard::master {

// From any thread. What it calls, it calls without its lock.
class Shards {
 public:
  struct Options {
    int count = 1;
    std::int64_t generation = 0;                       // of the master
    absl::Duration reconnecting = absl::Seconds(1);    // one whose stream broke may come back for so long
    absl::Duration patience = absl::Minutes(10);       // with one that does not obey; zero: without end
    std::function<void(const std::string& why)> lost;  // at most once
  };
  explicit Shards(Options options);

  // ---- What pservers say
  // InvalidArgument: there is no such pserver.
  absl::Status Come(const std::shared_ptr<Session>& session, const wire::Hello& hello);
  void Serve(const Call& call, int index, std::int64_t after);
  void Obey(int index, const wire::Obeyed& obeyed);
  // The stream has ended.
  void Leave(const std::shared_ptr<Session>& session);

  // ---- What others know of them
  // Its pod has ended.
  void Gone(int index, const std::string& pod);
  // Who has been away for too long is lost.
  void Tend();

  // ---- Orders
  // What each of them answered, in their order; or the first refusal; or Unavailable: one is lost.
  using Answers = absl::StatusOr<std::vector<wire::Obeyed>>;
  void Tell(wire::Order order, std::function<void(Answers)> done);
  // Waits.
  Answers Ask(wire::Order order);
  // The job is over: they may end, and nobody of them is lost any more.
  void End();
  // The master ends: nobody is waited for any more.
  void Stop();

  int count() const { return options_.count; }
  std::int64_t generation() const { return options_.generation; }
  std::vector<std::string> Addresses();
  std::vector<PserverView> Connected();
  bool NobodyIsHere() { return Connected().empty(); }
  // "pserver 1 to come", "pserver 0 to obey, for 12s"; "": nobody is waited for.
  std::string WhoIsMissing();

 private:
  struct Seat {
    std::int64_t incarnation = 0;  // 0: it has never come
    std::string pod;
    std::string address;
    std::shared_ptr<Session> session;
    SteadyTime left;
    bool begun = false;   // it was given an order
    bool obeyed = false;  // and has obeyed it
    std::optional<Call> waits;
    std::int64_t after = 0;          // of who waits
    SteadyTime told;                 // when it was given its last order
    std::int64_t given = 0;          // which that was
    std::deque<wire::Order> orders;  // that it has not obeyed
  };
  struct Telling {
    std::vector<wire::Obeyed> answers;
    int missing = 0;
    std::function<void(Answers)> done;
  };
  using Effects = std::vector<std::function<void()>>;

  Effects Deliver(Seat& seat) TY_REQUIRES(mu_);
  Effects Lose(const std::string& why) TY_REQUIRES(mu_);
  Effects DropOrders(const std::string& why) TY_REQUIRES(mu_);
  static void Run(const Effects& effects);

  const Options options_;
  Mutex mu_;
  std::vector<Seat> seats_ TY_GUARDED_BY(mu_);
  std::map<std::int64_t, Telling> tellings_ TY_GUARDED_BY(mu_);  // by order
  std::int64_t told_ TY_GUARDED_BY(mu_) = 0;
  bool over_ TY_GUARDED_BY(mu_) = false;
  std::optional<std::string> lost_ TY_GUARDED_BY(mu_);
};

}  // namespace trainyard::master
