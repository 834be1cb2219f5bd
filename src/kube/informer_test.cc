#include "kube/informer.h"

#include <map>
#include <random>

#include "base/status.h"
#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kube/pod.h"
#include "tests/support/fake_server.h"

namespace trainyard::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct PodSpec {
  std::string_view name;
  std::string_view owner = "job";
  std::string_view label = "x";
  std::string_view ns = "ns";
};

std::string Json(const PodSpec& spec) {
  return StrCat(R"({"metadata":{"namespace":")", spec.ns, R"(","name":")", spec.name, R"(","labels":{"l":")",
                spec.label, R"("},"ownerReferences":[{"kind":"TFJob","name":")", spec.owner,
                R"(","uid":"uid of )", spec.owner, R"(","controller":true}]}})");
}

std::vector<std::string> Names(const std::vector<std::shared_ptr<const CompactPod>>& pods) {
  std::vector<std::string> names;
  for (const auto& pod : pods) names.push_back(pod->meta.name);
  return names;
}

std::shared_ptr<const CompactPod> MakePod(const PodSpec& spec, std::string_view uid,
                                          std::string_view version) {
  CompactPod pod = ParsePod(Json(spec)).value();
  pod.meta.uid = uid;
  pod.meta.resource_version = version;
  return std::make_shared<const CompactPod>(std::move(pod));
}

std::vector<std::string> Show(const std::vector<Change<CompactPod>>& changes) {
  std::vector<std::string> shown;
  for (const auto& change : changes) {
    const auto version = [](const auto& pod) {
      return pod == nullptr ? std::string("none") : pod->meta.resource_version;
    };
    shown.push_back(StrCat(change.Any().meta.name, " ", version(change.before), ">", version(change.after)));
  }
  return shown;
}

void ByOwner(const CompactPod& pod, std::vector<std::string>& values) {
  if (pod.meta.controller) values.emplace_back(pod.meta.controller->uid.view());
}

TEST(Cache, FindsObjectsByKeyNamespaceAndIndex) {
  Cache<CompactPod> cache;
  const auto by_owner = cache.AddIndex(ByOwner);
  const auto by_label = cache.AddIndex(IndexByLabel<CompactPod>("l"));
  cache.Apply(MakePod({.name = "b", .owner = "j1", .label = "p"}, "1", "1"));
  cache.Apply(MakePod({.name = "a", .owner = "j1", .label = "q"}, "2", "2"));
  cache.Apply(MakePod({.name = "c", .owner = "j2", .label = "q", .ns = "other"}, "3", "3"));
  EXPECT_EQ(cache.Get({"ns", "a"})->meta.uid, "2");
  EXPECT_EQ(cache.Get({"ns", "c"}), nullptr);
  EXPECT_THAT(Names(cache.List()), ElementsAre("a", "b", "c")) << "by namespace and name";
  EXPECT_THAT(Names(cache.ListNamespace("ns")), ElementsAre("a", "b"));
  EXPECT_THAT(Names(cache.ListNamespace("n")), IsEmpty());
  EXPECT_THAT(Names(cache.ListBy(by_owner, "uid of j1")), ElementsAre("a", "b"));
  EXPECT_THAT(Names(cache.ListBy(by_label, "q")), ElementsAre("a", "c"));
  cache.Apply(MakePod({.name = "a", .owner = "j2", .label = "p"}, "2", "4"));
  EXPECT_THAT(Names(cache.ListBy(by_owner, "uid of j1")), ElementsAre("b"));
  EXPECT_THAT(Names(cache.ListBy(by_owner, "uid of j2")), ElementsAre("a", "c"));
  EXPECT_THAT(Names(cache.ListBy(by_label, "p")), ElementsAre("a", "b"));
  cache.Remove({"ns", "b"});
  EXPECT_THAT(Names(cache.ListBy(by_owner, "uid of j1")), IsEmpty());
  EXPECT_EQ(cache.Size(), 2u);
}

TEST(Cache, TellsWhatHasChanged) {
  Cache<CompactPod> cache;
  EXPECT_THAT(Show(cache.Apply(MakePod({.name = "a"}, "u", "1"))), ElementsAre("a none>1"));
  EXPECT_THAT(Show(cache.Apply(MakePod({.name = "a"}, "u", "1"))), IsEmpty());
  EXPECT_THAT(Show(cache.Apply(MakePod({.name = "a"}, "u", "2"))), ElementsAre("a 1>2"));
  EXPECT_THAT(Show(cache.Apply(MakePod({.name = "a"}, "v", "3"))), ElementsAre("a 2>none", "a none>3"));
  EXPECT_THAT(Show(cache.Remove({"ns", "a"})), ElementsAre("a 3>none"));
  EXPECT_THAT(Show(cache.Remove({"ns", "a"})), IsEmpty());
}

TEST(Cache, TellsTheDifferenceWhenAllIsReplaced) {
  Cache<CompactPod> cache;
  const auto by_owner = cache.AddIndex(ByOwner);
  for (const char* name : {"same", "changed", "gone", "reborn"})
    cache.Apply(MakePod({.name = name}, "u", "1"));
  const auto kept = cache.Get({"ns", "same"});
  EXPECT_THAT(
      Show(cache.Replace({MakePod({.name = "same"}, "u", "1"), MakePod({.name = "changed"}, "u", "2"),
                          MakePod({.name = "new"}, "u", "3"), MakePod({.name = "reborn"}, "v", "4")})),
      ElementsAre("gone 1>none", "changed 1>2", "new none>3", "reborn 1>none", "reborn none>4"));
  EXPECT_EQ(cache.Get({"ns", "same"}), kept) << "what did not change is the same object still";
  EXPECT_THAT(Names(cache.ListBy(by_owner, "uid of job")), ElementsAre("changed", "new", "reborn", "same"));
  EXPECT_THAT(Show(cache.Replace({})), testing::SizeIs(4));
  EXPECT_EQ(cache.Size(), 0u);
}

class InformerTest : public testing::Test {
 protected:
  InformerTest() {
    informer_.OnChange([this](const Change<CompactPod>& change) {
      const bool known = informer_.cache().Get(change.Any().meta.Key()) != nullptr;
      EXPECT_EQ(known, change.after != nullptr) << "the cache has it already, and no lock is held";
      changes_.push_back(StrCat(change.before == nullptr  ? "+"
                                : change.after == nullptr ? "-"
                                                          : "~",
                                change.Any().meta.name));
    });
    informer_.OnVersion([this](std::string_view version) { versions_.emplace_back(version); });
    informer_.OnChange(QueueKeys<CompactPod>(queue_, ControllerKey<CompactPod>("TFJob")));
  }
  ~InformerTest() override { informer_.Stop(); }

  void Put(const PodSpec& spec) { server_.Put(Resource::Pods(), Json(spec)); }
  void Remove(std::string_view name) { server_.Remove(Resource::Pods(), {"ns", std::string(name)}); }
  std::vector<std::string> Run() {
    while (true) {
      const auto progress = informer_.Step(absl::ZeroDuration());
      if (progress.idle) return std::exchange(changes_, {});
      clock_.Advance(progress.wait);
    }
  }
  std::vector<std::string> TakeKeys() {
    std::vector<std::string> keys;
    while (const auto key = queue_.TryGet(clock_.Steady())) {
      keys.push_back(key->Str());
      queue_.Done(*key);
    }
    return keys;
  }

  ManualClock clock_;
  FakeServer server_;
  Api api_{server_, clock_, IdSource(1), {.attempts = 1}};
  WorkQueue queue_{clock_, IdSource(2)};
  std::vector<std::string> changes_;
  std::vector<std::string> versions_;
  Informer<CompactPod> informer_{
      api_, clock_, IdSource(3), {.resource = Resource::Pods()}, [](std::string json) {
        return ParsePod(std::move(json));
      }};
};

TEST_F(InformerTest, KeepsTheCacheAndTellsOfEveryChange) {
  Put({.name = "a"});
  EXPECT_FALSE(informer_.HasSynced());
  EXPECT_THAT(Run(), ElementsAre("+a"));
  EXPECT_TRUE(informer_.HasSynced());
  Put({.name = "b"});
  Put({.name = "a"});
  Remove("b");
  EXPECT_THAT(Run(), ElementsAre("+b", "~a", "-b"));
  EXPECT_THAT(Names(informer_.cache().List()), ElementsAre("a"));
}

TEST_F(InformerTest, TellsOfWhatVanishedWhileItWasAway) {
  Put({.name = "gone"});
  Put({.name = "kept"});
  Run();
  server_.BreakWatches();
  server_.SetIntercept([](const Request&) -> std::optional<absl::StatusOr<Response>> {
    return absl::UnavailableError("no server");
  });
  for (int i = 0; i < 3; ++i) informer_.Step(absl::ZeroDuration());
  EXPECT_EQ(informer_.cache().Size(), 2u) << "no server is no reason to forget";
  Remove("gone");
  Put({.name = "new"});
  server_.Compact();
  server_.SetIntercept(nullptr);
  EXPECT_THAT(Run(), ElementsAre("-gone", "+new"));
}

TEST_F(InformerTest, QueuesTheKeysOfTheOwnersBeforeAndAfter) {
  Put({.name = "a", .owner = "j1"});
  Put({.name = "b", .owner = "j1"});
  Run();
  EXPECT_THAT(TakeKeys(), ElementsAre("ns/j1"));
  Put({.name = "a", .owner = "j2"});
  Run();
  EXPECT_THAT(TakeKeys(), ElementsAre("ns/j1", "ns/j2")) << "who lost it and who has it";
  Remove("b");
  Run();
  EXPECT_THAT(TakeKeys(), ElementsAre("ns/j1"));
  server_.Put(Resource::Pods(), R"({"metadata":{"namespace":"ns","name":"stray"}})");
  Run();
  EXPECT_THAT(TakeKeys(), IsEmpty());
}

TEST_F(InformerTest, TellsUpToWhichVersionAllIsKnown) {
  Put({.name = "a"});
  Run();
  EXPECT_THAT(versions_, ElementsAre(server_.Version()));
  server_.Put(Resource::Services(), Json({.name = "elsewhere"}));
  server_.SendBookmarks();
  Run();
  EXPECT_EQ(versions_.back(), server_.Version());
}

TEST_F(InformerTest, SaysWhatIsWrongWhenItCannotSyncInTime) {
  server_.SetIntercept([](const Request&) -> std::optional<absl::StatusOr<Response>> {
    return ToResponse({.code = 403, .reason = "Forbidden", .message = "pods is forbidden"});
  });
  informer_.Step(absl::ZeroDuration());
  const absl::Status status = informer_.WaitForSync(absl::ZeroDuration());
  EXPECT_TRUE(absl::IsDeadlineExceeded(status));
  EXPECT_THAT(Message(status), HasSubstr("pods could not be listed yet: pods is forbidden"));
  informer_.Stop();
  EXPECT_TRUE(absl::IsCancelled(informer_.WaitForSync(absl::Hours(1))));
}

// In a thread of its own, against a server that changes and breaks at the same time.
TEST(InformerThread, CatchesUpWhateverTheServerDoesMeanwhile) {
  FakeServer server;
  Api api(server, Clock::System(), IdSource(1), {.attempts = 1});
  WatcherOptions options{.resource = Resource::Pods(), .page = 7};
  options.backoff = {.first = absl::Microseconds(100), .most = absl::Milliseconds(1)};
  Mutex mu;
  CondVar changed;
  std::map<std::string, std::string> told;
  for (int i = 0; i < 20; ++i) server.Put(Resource::Pods(), Json({.name = StrCat("p", i)}));
  Informer<CompactPod> informer(api, Clock::System(), IdSource(2), options,
                                [](std::string json) { return ParsePod(std::move(json)); });
  informer.OnChange([&](const Change<CompactPod>& change) {
    MutexLock lock(mu);
    if (change.after == nullptr) {
      EXPECT_EQ(told.erase(change.before->meta.name), 1u);
    } else {
      told[change.after->meta.name] = change.after->meta.resource_version;
    }
    changed.SignalAll();
  });
  informer.Start();
  ASSERT_TRUE(informer.WaitForSync(absl::Seconds(60)).ok());
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    const std::string name = StrCat("p", random() % 30);
    switch (random() % 20) {
      case 0:
        server.BreakWatches();
        break;
      case 1:
        server.Compact();
        break;
      case 2:
      case 3:
      case 4:
        if (server.Find(Resource::Pods(), {"ns", name})) server.Remove(Resource::Pods(), {"ns", name});
        break;
      default:
        server.Put(Resource::Pods(), Json({.name = name}));
    }
    if (i % 50 == 0) informer.cache().List();
  }
  std::map<std::string, std::string> stored;
  for (const Document& object : server.FindAll(Resource::Pods())) {
    stored[std::string(StringAt(object, {"metadata", "name"}))] =
        StringAt(object, {"metadata", "resourceVersion"});
  }
  {
    MutexLock lock(mu);
    while (told != stored) changed.Wait(mu);
  }
  informer.Stop();
  EXPECT_EQ(informer.cache().Size(), stored.size());
}

}  // namespace
}  // namespace trainyard::kube
