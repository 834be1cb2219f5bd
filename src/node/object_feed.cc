#include "node/object_feed.h"

#include <atomic>

#include "base/log.h"
#include "base/status.h"
#include "kube/watcher.h"

namespace trainyard::node {
namespace {

struct FeedObject {
  kube::ObjectMeta meta;
  Document document;
};

absl::StatusOr<FeedObject> Decode(const std::string& json) {
  FeedObject object;
  TY_ASSIGN_OR_RETURN(object.document, ParseJson(json));
  object.meta.name = StringAt(object.document, {"metadata", "name"});
  return object;
}

using FeedWatcher = kube::Watcher<FeedObject>;

}  // namespace

struct ObjectFeed::Parts {
  Parts(kube::Api& api, Clock& c, Loop& l, const kube::Resource& resource, Callbacks calls)
      : clock(c),
        loop(l),
        name(resource.plural),
        callbacks(std::make_shared<const Callbacks>(std::move(calls))),
        alarm(c.NewAlarm()),
        watcher(api, c, IdSource::Random(), {.resource = resource}, Decode) {}

  Clock& clock;
  Loop& loop;
  const std::string name;
  const std::shared_ptr<const Callbacks> callbacks;  // shared with what is posted
  std::unique_ptr<Alarm> alarm;
  FeedWatcher watcher;
  std::atomic<bool> stopping = false;

  void Take(const FeedWatcher::Restarted& restarted) {
    std::vector<Document> objects;
    objects.reserve(restarted.objects.size());
    for (const auto& object : restarted.objects) objects.push_back(object->document);
    loop.Post([calls = callbacks, o = std::move(objects)]() mutable { calls->listed(std::move(o)); });
  }
  void Take(const FeedWatcher::Applied& applied) {
    loop.Post([calls = callbacks, object = applied.object] { calls->changed(object->document); });
  }
  void Take(const FeedWatcher::Deleted& deleted) {
    loop.Post([calls = callbacks, object = deleted.object] { calls->deleted(object->document); });
  }
  void Take(const FeedWatcher::Nothing&) {}
  void Take(const FeedWatcher::Bookmark&) {}
  void Take(const FeedWatcher::Broken& broken) {
    if (stopping) return;
    log::Debug("a watch broke", {{"resource", name}, {"error", broken.status}, {"wait", broken.wait}});
    alarm->WaitUntil(clock.Steady() + broken.wait);
  }
};

ObjectFeed::ObjectFeed(kube::Api& api, Clock& clock, Loop& loop, const kube::Resource& resource,
                       Callbacks callbacks)
    : parts_(std::make_shared<Parts>(api, clock, loop, resource, std::move(callbacks))),
      thread_([this] { Run(); }) {}

ObjectFeed::~ObjectFeed() { Stop(); }

void ObjectFeed::Stop() {
  if (!thread_.joinable()) return;
  parts_->stopping = true;
  parts_->watcher.Cancel();
  parts_->alarm->Notify();
  thread_.join();
}

void ObjectFeed::Run() {
  while (!parts_->stopping) {
    std::visit([this](const auto& event) { parts_->Take(event); }, parts_->watcher.Step(absl::Seconds(5)));
  }
}

}  // namespace trainyard::node
