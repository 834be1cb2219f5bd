// Calls with a stream each way, over gRPC's callbacks: these only note what has happened, and a worker goes
// on from there, one at a time for each stream.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <grpcpp/grpcpp.h>

#include "base/mutex.h"
#include "base/status.h"
#include "kv/etcd/etcd_server_calls.h"
#include "kv/etcd/etcd_server_streams.h"
#include "kv/etcd/etcd_server_workers.h"

namespace trainyard::kv {

inline grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return {static_cast<grpc::StatusCode>(status.code()), std::string(Message(status))};
}

// Refused before it began.
template <typename Request, typename Response>
class RefusedStream final : public grpc::ServerBidiReactor<Request, Response> {
 public:
  explicit RefusedStream(const grpc::Status& why) { this->Finish(why); }
  void OnDone() override { delete this; }
};

//   gRPC's thread   OnReadDone  OnWriteDone  OnCancel        the server   Tick  Stop
//                        └───────────┴──────────┴─── Note ──────────────────┴────┘
//   a worker                                          └──▶ Run: Handle ▸ Park ▸ Finish | Next, StartWrite,
//   StartRead
template <typename Request, typename Response>
class ServedStream final : public grpc::ServerBidiReactor<Request, Response>,
                           public OpenStream,
                           public std::enable_shared_from_this<ServedStream<Request, Response>> {
 public:
  using Session = ServedSession<Request, Response>;
  struct Host {
    Workers& workers;
    OpenStreams& streams;
    Budget& budget;  // entered for this stream already
  };

  ServedStream(Host host, grpc::CallbackServerContext* context) : host_(host), context_(context) {}

  // Once, with the session that this is the stream of.
  void Begin(std::unique_ptr<Session> session) {
    session_ = std::move(session);
    host_.streams.Add(this->shared_from_this());
    Wake();
  }
  // What there is to be sent may be there now.
  void Wake() {
    Note([](Happened&) {});
  }

  void OnReadDone(bool ok) override {
    Note([ok](Happened& happened) { happened.read = ok; });
  }
  void OnWriteDone(bool ok) override {
    Note([ok](Happened& happened) { happened.wrote = ok; });
  }
  void OnCancel() override {
    Note([](Happened& happened) { happened.cancelled = true; });
  }
  void OnDone() override {
    // The workers outlive every stream that the server waits for; this one it does not wait for any more.
    host_.workers.Post([self = this->shared_from_this()] {
      self->host_.budget.Leave(0);
      self->host_.streams.Remove(self.get());
    });
  }
  void Tick() override {
    Note([](Happened& happened) { happened.ticked = true; });
  }
  void Stop() override {
    Note([](Happened& happened) { happened.stopped = true; });
  }

 private:
  struct Happened {
    std::optional<bool> read;
    std::optional<bool> wrote;
    bool cancelled = false;
    bool ticked = false;
    bool stopped = false;
  };

  template <typename Change>
  void Note(Change change) {
    const auto self = this->weak_from_this().lock();
    if (self == nullptr) return;  // on its way out
    {
      MutexLock lock(mu_);
      change(happened_);
      noted_ = true;
      if (std::exchange(scheduled_, true)) return;
    }
    host_.workers.Post([self] { self->Run(); });
  }

  void Run() {
    while (true) {
      Happened happened;
      {
        MutexLock lock(mu_);
        if (!std::exchange(noted_, false)) {
          scheduled_ = false;
          return;
        }
        happened = std::exchange(happened_, {});
      }
      Take(happened);
      GoOn();
    }
  }

  void Take(const Happened& happened) {
    if (happened.wrote) {
      writing_ = was_writing_ = false;
      if (!*happened.wrote) End(grpc::Status::CANCELLED);
    }
    if (happened.cancelled) End(grpc::Status::CANCELLED);
    if (happened.stopped) {
      End({grpc::StatusCode::UNAVAILABLE, "etcdserver: server stopped"});
      if (writing_) context_->TryCancel();  // or a client that does not read would keep us
    }
    if (happened.read) {
      reading_ = false;
      read_all_ = read_all_ || !*happened.read;
      if (*happened.read && !end_) session_->Handle(request_);
    }
    if (happened.ticked && writing_ && std::exchange(was_writing_, true) && !end_) session_->Park();
  }

  void GoOn() {
    if (!end_ && !writing_) {
      if (auto next = session_->Next()) {
        if (next->ok()) {
          response_ = **std::move(next);
          writing_ = true;
          this->StartWrite(&response_);
        } else {
          End(ToGrpc(next->status()));
        }
      } else if (read_all_ && session_->EndsWithRequests()) {
        End(grpc::Status::OK);
      }
    }
    if (end_) {
      if (writing_ || std::exchange(finished_, true)) return;
      session_ = nullptr;
      this->Finish(*end_);
      return;
    }
    if (!reading_ && !read_all_ && !session_->Full()) {
      reading_ = true;
      this->StartRead(&request_);
    }
  }

  void End(const grpc::Status& status) {
    if (!end_) end_ = status;
  }

  const Host host_;
  grpc::CallbackServerContext* const context_;
  Mutex mu_;
  Happened happened_ TY_GUARDED_BY(mu_);
  bool noted_ TY_GUARDED_BY(mu_) = false;
  bool scheduled_ TY_GUARDED_BY(mu_) = false;  // a worker has it, or will

  // Of the worker that runs it.
  std::unique_ptr<Session> session_;  // null once it has ended
  Request request_;
  Response response_;
  bool reading_ = false;
  bool writing_ = false;
  bool was_writing_ = false;  // at the last tick, the same message
  bool read_all_ = false;     // the client sends nothing any more
  bool finished_ = false;
  std::optional<grpc::Status> end_;
};

}  // namespace trainyard::kv
