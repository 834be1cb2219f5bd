#include "apiserver/watch_session.h"

#include "apiserver/errors.h"
#include "base/text.h"

namespace trainyard::apiserver {
namespace {

constexpr absl::Duration kBookmarkEvery = absl::Seconds(30);

std::string EventLine(std::string_view type, std::string_view object) {
  return StrCat(R"({"type":")", type, R"(","object":)", object, "}\n");
}

}  // namespace

std::optional<SeenEvent> SeenBy(const ObjectFilter& filter, const ObjectEvent& event) {
  if (filter.MatchesAll()) {
    if (!event.deleted())
      return SeenEvent{.type = event.created() ? "ADDED" : "MODIFIED", .stored = event.stored()};
    if (event.previous() == nullptr) return std::nullopt;
    return SeenEvent{.type = "DELETED", .stored = *event.previous()};
  }
  const auto old_labels = [&event]() -> const ObjectLabels& { return event.previous_labels(); };
  const auto new_labels = [&event]() -> const ObjectLabels& { return event.labels(); };
  const bool before = event.previous() != nullptr && filter.Matches(*event.previous(), old_labels);
  const bool now = !event.deleted() && filter.Matches(event.stored(), new_labels);
  if (now) return SeenEvent{.type = before ? "MODIFIED" : "ADDED", .stored = event.stored()};
  if (before) return SeenEvent{.type = "DELETED", .stored = *event.previous()};
  return std::nullopt;
}

WatchSession::WatchSession(WatchTerms terms, std::shared_ptr<http::BodyWriter> body)
    : terms_(std::move(terms)), body_(std::move(body)) {
  body_->OnGone([gone = gone_] { gone->store(true); });
}

bool WatchSession::SendInitial(std::string_view stored, kv::Revision revision) {
  return body_->Write(
      std::make_shared<const std::string>(EventLine("ADDED", terms_.render(stored, revision))));
}

bool WatchSession::SendBookmark(kv::Revision revision, bool initial_end) {
  return body_->Write(std::make_shared<const std::string>(
      EventLine("BOOKMARK",
                StrCat(R"({"kind":")", terms_.kind, R"(","apiVersion":")", terms_.api_version,
                       R"(","metadata":{"resourceVersion":")", revision, R"(","creationTimestamp":null)",
                       initial_end ? R"(,"annotations":{"k8s.io/initial-events-end":"true"})" : "", "}}"))));
}

void WatchSession::SendError(const kube::ApiError& error) {
  body_->Write(std::make_shared<const std::string>(EventLine("ERROR", kube::ToResponse(error).body)));
}

bool WatchSession::OnEvent(const ObjectEventPtr& event) {
  const std::optional<SeenEvent> seen = SeenBy(terms_.filter, *event);
  if (!seen) return true;
  return body_->Write(event->Rendered(StrCat(terms_.format_tag, "/", seen->type), [&] {
    return EventLine(seen->type, terms_.render(seen->stored, event->revision()));
  }));
}

bool WatchSession::OnProgress(kv::Revision revision, SteadyTime now) {
  if (gone_->load()) return false;
  if (now >= terms_.ends) {
    if (terms_.bookmarks) SendBookmark(revision, false);
    body_->Close();
    return false;
  }
  if (!terms_.bookmarks) return true;
  if (!next_bookmark_) next_bookmark_ = now + kBookmarkEvery;
  if (now < *next_bookmark_) return true;
  next_bookmark_ = now + kBookmarkEvery;
  return SendBookmark(revision, false);
}

void WatchSession::OnEnd(const absl::Status& why) {
  if (kv::IsCompacted(why)) {
    SendError(
        Expired("the resourceVersion is too old: what changed since then has been forgotten; list again and "
                "watch from there"));
  }
  body_->Close();
}

}  // namespace trainyard::apiserver
