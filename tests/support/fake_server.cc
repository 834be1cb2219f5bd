#include "tests/support/fake_server.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/status.h"
#include "base/text.h"
#include "kube/selector.h"

namespace trainyard::kube {
namespace {

using Query = std::map<std::string, std::string, std::less<>>;

// A request's target, taken apart.
struct Target {
  std::string collection;  // "coordination.k8s.io/leases"
  ObjectKey key;           // without name: the collection
  Query query;

  std::string Get(std::string_view name) const {
    const auto found = query.find(name);
    return found == query.end() ? "" : found->second;
  }
};

Target ParseTarget(std::string_view text) {
  Target target;
  const std::size_t question = text.find('?');
  if (question != std::string_view::npos) {
    for (const std::string_view pair : Split(text.substr(question + 1), '&')) {
      const std::size_t equals = pair.find('=');
      target.query[std::string(pair.substr(0, equals))] =
          PercentDecoded(pair.substr(equals + 1), true).value_or("");
    }
  }
  std::vector<std::string> parts;
  for (const std::string_view part : Split(text.substr(1, question - 1), '/')) {
    parts.push_back(PercentDecoded(part, false).value_or(""));
  }
  std::size_t at = parts.at(0) == "api" ? 2 : 3;
  const std::string group = at == 2 ? "" : parts.at(1);
  if (parts.size() > at + 2 && parts[at] == "namespaces") {
    target.key.ns = parts[at + 1];
    at += 2;
  }
  target.collection = StrCat(group, "/", parts.at(at));
  if (parts.size() > at + 1) target.key.name = parts[at + 1];
  return target;
}

std::string CollectionOf(const Resource& resource) { return StrCat(resource.group, "/", resource.plural); }

ObjectKey KeyOf(const Document& object) {
  return {std::string(StringAt(object, {"metadata", "namespace"})),
          std::string(StringAt(object, {"metadata", "name"}))};
}

Response Error(int code, std::string_view reason, std::string_view message) {
  return ToResponse({.code = code, .reason = std::string(reason), .message = std::string(message)});
}

// RFC 7386.
void MergePatch(Document& target, const Document& patch) {
  if (!patch.is_object()) {
    target = patch;
    return;
  }
  if (!target.is_object()) target.emplace_object();
  for (const auto& member : patch.get_object()) {
    if (member.value().is_null()) {
      Remove(target.get_object(), Key(member));
    } else {
      MergePatch(target.get_object()[member.key()], member.value());
    }
  }
}

}  // namespace

struct FakeServer::State {
  struct Change {
    std::uint64_t version = 0;
    std::string collection;
    std::optional<Document> before;
    std::optional<Document> after;
  };
  struct Watch {
    Target target;
    LabelSelector selector;
    std::uint64_t version = 0;  // the last that was sent
    std::string pending;        // lines to be sent
    bool silent = false;
    bool cancelled = false;
    std::optional<absl::Status> end;          // OK: the body ends
    std::uint64_t last_version = UINT64_MAX;  // that is sent before the end
  };
  using Objects = std::map<ObjectKey, Document>;

  mutable Mutex mu;
  CondVar changed;
  std::map<std::string, Objects> objects TY_GUARDED_BY(mu);
  std::vector<Change> history TY_GUARDED_BY(mu);
  std::uint64_t version TY_GUARDED_BY(mu) = 1000;
  std::uint64_t oldest TY_GUARDED_BY(mu) = 0;  // of a version before it, no watch and no next page
  std::set<Watch*> watches TY_GUARDED_BY(mu);
  std::vector<std::string> requests TY_GUARDED_BY(mu);
  std::uint64_t uids TY_GUARDED_BY(mu) = 0;
  Intercept intercept TY_GUARDED_BY(mu);
  Tamper tamper TY_GUARDED_BY(mu);

  void Record(std::string_view collection, std::optional<Document> before, std::optional<Document> after)
      TY_REQUIRES(mu) {
    const std::string text = std::to_string(++version);
    if (after) MakeObjectAt(*after, {"metadata"})["resourceVersion"] = text;
    if (!after) MakeObjectAt(*before, {"metadata"})["resourceVersion"] = text;
    Objects& all = objects[std::string(collection)];
    if (after) {
      all[KeyOf(*after)] = *after;
    } else {
      all.erase(KeyOf(*before));
    }
    history.push_back({version, std::string(collection), std::move(before), std::move(after)});
    changed.SignalAll();
  }

  // What the watch sees of a change, as a line; nothing: it does not concern it.
  static std::string LineOf(const Watch& watch, const Change& change) {
    if (change.collection != watch.target.collection) return "";
    const auto selected = [&](const std::optional<Document>& object) {
      return object && (watch.target.key.ns.empty() || KeyOf(*object).ns == watch.target.key.ns) &&
             watch.selector.Matches(ObjectAt(*object, {"metadata", "labels"}));
    };
    const bool before = selected(change.before);
    const bool after = selected(change.after);
    if (!before && !after) return "";
    const Document& object = change.after ? *change.after : *change.before;
    const std::string_view type = !after ? "DELETED" : before ? "MODIFIED" : "ADDED";
    return StrCat(R"({"type":")", type, R"(","object":)", PrintJson(object), "}\n");
  }

  void End(const absl::Status& status) {
    MutexLock lock(mu);
    for (Watch* watch : watches) {
      watch->end = status;
      watch->last_version = std::min(watch->last_version, version);
    }
    changed.SignalAll();
  }

  Response Do(const Request& request) TY_REQUIRES(mu);
  Response List(const Target& target) const TY_REQUIRES(mu);
  Response Create(const Target& target, Document object) TY_REQUIRES(mu);
  Response Replace(const Target& target, Document object, const Document& current) TY_REQUIRES(mu);
  Response Delete(const Target& target, const Document& options, const Document& current) TY_REQUIRES(mu);
};

// ---- requests

Response FakeServer::State::Do(const Request& request) {
  const Target target = ParseTarget(request.target);
  if (request.method == "GET" && target.key.name.empty()) return List(target);
  Document body = ParseJson(request.body.empty() ? "{}" : request.body).value_or(Document(nullptr));
  if (!body.is_object()) return Error(400, "BadRequest", "the body is no object");
  if (request.method == "POST") return Create(target, std::move(body));
  const auto all = objects.find(target.collection);
  if (all == objects.end() || !all->second.contains(target.key)) {
    return ToResponse({.code = 404,
                       .reason = "NotFound",
                       .message = StrCat(target.collection, " \"", target.key.name, "\" not found"),
                       .kind = target.collection,
                       .name = target.key.name});
  }
  const Document current = all->second.at(target.key);
  if (request.method == "GET") return {.body = PrintJson(current)};
  if (request.method == "DELETE") return Delete(target, body, current);
  if (request.method == "PUT") return Replace(target, std::move(body), current);
  Document patched = current;
  if (trainyard::Find(body, {"metadata", "resourceVersion"}) == nullptr) {
    trainyard::Remove(*ObjectAt(patched, {"metadata"}), "resourceVersion");
  }
  MergePatch(patched, body);
  return Replace(target, std::move(patched), current);
}

Response FakeServer::State::List(const Target& target) const {
  const auto selector = LabelSelector::Parse(target.Get("labelSelector"));
  if (!selector.ok()) return Error(400, "BadRequest", Message(selector.status()));
  const std::size_t limit = ParseNumber<std::size_t>(target.Get("limit")).value_or(0);
  // A token is the version of the first page, and the last key of the page before.
  const std::string token = target.Get("continue");
  std::uint64_t at = version;
  ObjectKey last;
  if (!token.empty()) {
    const std::vector<std::string_view> parts = Split(token, ' ');
    at = ParseNumber<std::uint64_t>(parts.at(0)).value_or(0);
    last = {std::string(parts.at(1)), std::string(parts.at(2))};
    if (at < oldest) return Error(410, "Expired", "the continue token has expired");
  }
  // As it was at that version: what has changed since is undone.
  Objects all;
  if (const auto found = objects.find(target.collection); found != objects.end()) all = found->second;
  for (auto change = history.rbegin(); change != history.rend() && change->version > at; ++change) {
    if (change->collection != target.collection) continue;
    if (change->after) all.erase(KeyOf(*change->after));
    if (change->before) all[KeyOf(*change->before)] = *change->before;
  }
  std::string items;
  std::string next;
  std::size_t count = 0;
  ObjectKey shown;
  for (const auto& [key, object] : all) {
    if (!token.empty() && key <= last) continue;
    if (!target.key.ns.empty() && key.ns != target.key.ns) continue;
    if (!selector->Matches(ObjectAt(object, {"metadata", "labels"}))) continue;
    if (limit > 0 && count == limit) {
      next = StrCat(at, " ", shown.ns, " ", shown.name);
      break;
    }
    StrAppend(items, count++ == 0 ? "" : ",", PrintJson(object));
    shown = key;
  }
  Object meta{{"resourceVersion", std::to_string(at)}};
  if (!next.empty()) meta["continue"] = next;
  return {.body = StrCat(R"({"kind":"List","metadata":)", PrintJson(meta), R"(,"items":[)", items, "]}")};
}

Response FakeServer::State::Create(const Target& target, Document object) {
  Object& meta = MakeObjectAt(object, {"metadata"});
  const std::string uid = std::to_string(++uids);
  if (StringAt(object, {"metadata", "name"}).empty()) {
    meta["name"] = StrCat(StringAt(object, {"metadata", "generateName"}), uid);
  }
  if (!target.key.ns.empty()) meta["namespace"] = target.key.ns;
  const ObjectKey key = KeyOf(object);
  if (objects[target.collection].contains(key)) {
    return Error(409, "AlreadyExists", StrCat("\"", key.name, "\" already exists"));
  }
  if (!meta.contains("uid")) meta["uid"] = StrCat("uid-", uid);
  Record(target.collection, std::nullopt, std::move(object));
  return {.code = 201, .body = PrintJson(objects[target.collection].at(key))};
}

Response FakeServer::State::Replace(const Target& target, Document object, const Document& current) {
  const std::string_view asked = StringAt(object, {"metadata", "resourceVersion"});
  if (!asked.empty() && asked != StringAt(current, {"metadata", "resourceVersion"})) {
    return Error(409, "Conflict", StrCat("\"", target.key.name, "\" has been modified"));
  }
  Object& meta = MakeObjectAt(object, {"metadata"});
  meta["uid"] = StringAt(current, {"metadata", "uid"});
  meta["name"] = target.key.name;
  if (!target.key.ns.empty()) meta["namespace"] = target.key.ns;
  Record(target.collection, current, std::move(object));
  return {.body = PrintJson(objects[target.collection].at(target.key))};
}

Response FakeServer::State::Delete(const Target& target, const Document& options, const Document& current) {
  for (const char* field : {"uid", "resourceVersion"}) {
    const std::string_view asked = StringAt(options, {"preconditions", field});
    if (!asked.empty() && asked != StringAt(current, {"metadata", field})) {
      return Error(409, "Conflict", StrCat("the ", field, " of \"", target.key.name, "\" is another"));
    }
  }
  Record(target.collection, current, std::nullopt);
  return {.body = R"({"kind":"Status","status":"Success"})"};
}

// ---- watches

class FakeServer::Body final : public BodyReader {
 public:
  Body(std::shared_ptr<State> state, State::Watch watch)
      : state_(std::move(state)), watch_(std::move(watch)) {
    MutexLock lock(state_->mu);
    state_->watches.insert(&watch_);
  }
  ~Body() override {
    MutexLock lock(state_->mu);
    state_->watches.erase(&watch_);
  }

  absl::StatusOr<std::string> Read(absl::Duration timeout) override {
    const SteadyTime until = Clock::System().Steady() + timeout;
    MutexLock lock(state_->mu);
    while (true) {
      if (watch_.cancelled) return absl::CancelledError("the watch was cancelled");
      if (!watch_.silent) {
        Collect();
        if (!watch_.pending.empty()) return std::exchange(watch_.pending, "");
        if (watch_.end) return watch_.end->ok() ? absl::StatusOr<std::string>("") : *watch_.end;
      }
      if (timeout <= absl::ZeroDuration() || !state_->changed.WaitUntil(state_->mu, until)) {
        return absl::DeadlineExceededError("nothing came");
      }
    }
  }

  void Cancel() override {
    MutexLock lock(state_->mu);
    watch_.cancelled = true;
    state_->changed.SignalAll();
  }

 private:
  void Collect() TY_REQUIRES(state_->mu) {
    for (const State::Change& change : state_->history) {
      if (change.version <= watch_.version || change.version > watch_.last_version) continue;
      watch_.pending += State::LineOf(watch_, change);
      watch_.version = change.version;
    }
  }

  std::shared_ptr<State> state_;
  State::Watch watch_;
};

FakeServer::FakeServer() : state_(std::make_shared<State>()) {}

FakeServer::~FakeServer() { EndWatches(); }

std::vector<absl::StatusOr<Response>> FakeServer::DoAll(std::vector<Request> requests) {
  std::vector<absl::StatusOr<Response>> responses;
  for (const Request& request : requests) {
    Intercept intercept;
    Tamper tamper;
    {
      MutexLock lock(state_->mu);
      state_->requests.push_back(StrCat(request.method, " ", request.target));
      intercept = state_->intercept;
      tamper = state_->tamper;
    }
    std::optional<absl::StatusOr<Response>> answer;
    if (intercept != nullptr) answer = intercept(request);
    if (!answer) {
      {
        MutexLock lock(state_->mu);
        answer = state_->Do(request);
      }
      if (tamper != nullptr) tamper(request, *answer);
    }
    responses.push_back(*std::move(answer));
  }
  return responses;
}

absl::StatusOr<OpenedResponse> FakeServer::Open(Request request) {
  Intercept intercept;
  {
    MutexLock lock(state_->mu);
    state_->requests.push_back(StrCat("WATCH ", request.target));
    intercept = state_->intercept;
  }
  if (intercept != nullptr) {
    if (std::optional<absl::StatusOr<Response>> answer = intercept(request)) {
      if (!answer->ok()) return answer->status();
      return OpenedResponse{.head = **std::move(answer)};
    }
  }
  State::Watch watch{.target = ParseTarget(request.target)};
  const auto selector = LabelSelector::Parse(watch.target.Get("labelSelector"));
  TY_CHECK(selector.ok(), "tests have valid selectors");
  watch.selector = *selector;
  watch.version = ParseNumber<std::uint64_t>(watch.target.Get("resourceVersion")).value_or(0);
  {
    MutexLock lock(state_->mu);
    if (watch.version < state_->oldest) {
      return OpenedResponse{.head = Error(410, "Expired", "too old resource version")};
    }
  }
  return OpenedResponse{.body = std::make_unique<Body>(state_, std::move(watch))};
}

// ---- what a test does

std::string FakeServer::Put(const Resource& resource, std::string_view json) {
  Document object = ParseJson(json).value();
  const ObjectKey key = KeyOf(object);
  MutexLock lock(state_->mu);
  State::Objects& all = state_->objects[CollectionOf(resource)];
  std::optional<Document> before;
  if (const auto found = all.find(key); found != all.end()) before = found->second;
  Object& meta = MakeObjectAt(object, {"metadata"});
  if (!meta.contains("uid")) {
    meta["uid"] =
        before ? std::string(StringAt(*before, {"metadata", "uid"})) : StrCat("uid-", ++state_->uids);
  }
  state_->Record(CollectionOf(resource), std::move(before), std::move(object));
  return std::to_string(state_->version);
}

void FakeServer::Remove(const Resource& resource, const ObjectKey& key) {
  MutexLock lock(state_->mu);
  const State::Objects& all = state_->objects[CollectionOf(resource)];
  const auto found = all.find(key);
  TY_CHECK(found != all.end(), "there is no such object");
  Document before = found->second;
  state_->Record(CollectionOf(resource), std::move(before), std::nullopt);
}

std::optional<Document> FakeServer::Find(const Resource& resource, const ObjectKey& key) const {
  MutexLock lock(state_->mu);
  const auto all = state_->objects.find(CollectionOf(resource));
  if (all == state_->objects.end() || !all->second.contains(key)) return std::nullopt;
  return all->second.at(key);
}

std::vector<Document> FakeServer::FindAll(const Resource& resource) const {
  MutexLock lock(state_->mu);
  std::vector<Document> found;
  const auto all = state_->objects.find(CollectionOf(resource));
  if (all == state_->objects.end()) return found;
  for (const auto& [key, object] : all->second) found.push_back(object);
  return found;
}

std::string FakeServer::Version() const {
  MutexLock lock(state_->mu);
  return std::to_string(state_->version);
}

void FakeServer::SetIntercept(Intercept intercept) {
  MutexLock lock(state_->mu);
  state_->intercept = std::move(intercept);
}

void FakeServer::SetTamper(Tamper tamper) {
  MutexLock lock(state_->mu);
  state_->tamper = std::move(tamper);
}

void FakeServer::Compact() {
  MutexLock lock(state_->mu);
  state_->oldest = state_->version;
}

void FakeServer::EndWatches() { state_->End(absl::OkStatus()); }

void FakeServer::BreakWatches() { state_->End(absl::UnavailableError("the connection broke")); }

void FakeServer::SilenceWatches() {
  MutexLock lock(state_->mu);
  for (State::Watch* watch : state_->watches) watch->silent = true;
}

void FakeServer::SendBookmarks() {
  MutexLock lock(state_->mu);
  for (State::Watch* watch : state_->watches) {
    for (const State::Change& change : state_->history) {
      if (change.version > watch->version) watch->pending += State::LineOf(*watch, change);
    }
    watch->version = state_->version;
    StrAppend(watch->pending, R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":")",
              state_->version, "\"}}}\n");
  }
  state_->changed.SignalAll();
}

std::vector<std::string> FakeServer::Requests() const {
  MutexLock lock(state_->mu);
  return state_->requests;
}

int FakeServer::CountOpenWatches() const {
  MutexLock lock(state_->mu);
  return static_cast<int>(state_->watches.size());
}

}  // namespace trainyard::kube
