// One client's watch: which events it is told of, as what, and in which form.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "apiserver/call.h"
#include "apiserver/object_filter.h"
#include "apiserver/watch_hub.h"
#include "base/clock.h"

namespace trainyard::apiserver {

// Renders an object for the client: its stored text and revision to JSON.
using ObjectRenderer = std::function<std::string(std::string_view stored, kv::Revision revision)>;

struct WatchTerms {
  ObjectFilter filter;
  std::string format_tag;  // the same for all sessions whose renderer gives the same
  ObjectRenderer render;
  std::string api_version;
  std::string kind;
  bool bookmarks = false;
  SteadyTime ends;  // when the client asked it to end
};

// What an event is to a client that sees only what its filter lets through: an object that begins to match
// has been added for it, one that no longer matches is gone. Null: nothing. Pure.
struct SeenEvent {
  std::string_view type;    // "ADDED", "MODIFIED", "DELETED"
  std::string_view stored;  // the object to show
};
std::optional<SeenEvent> SeenBy(const ObjectFilter& filter, const ObjectEvent& event);

class WatchSession final : public WatchSubscriber {
 public:
  WatchSession(WatchTerms terms, std::shared_ptr<http::BodyWriter> body);

  // What is there when the watch begins.
  bool SendInitial(std::string_view stored, kv::Revision revision);
  bool SendBookmark(kv::Revision revision, bool initial_end);
  void SendError(const kube::ApiError& error);
  void Close() { body_->Close(); }

  bool OnEvent(const ObjectEventPtr& event) override;
  bool OnProgress(kv::Revision revision, SteadyTime now) override;
  void OnEnd(const absl::Status& why) override;

 private:
  WatchTerms terms_;
  std::shared_ptr<http::BodyWriter> body_;
  // Shared with the connection, which may notice that the client has gone after this session has.
  std::shared_ptr<std::atomic<bool>> gone_ = std::make_shared<std::atomic<bool>>(false);
  std::optional<SteadyTime> next_bookmark_;
};

}  // namespace trainyard::apiserver
