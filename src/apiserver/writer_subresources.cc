// The writes that are not of the object itself: binding a pod to a node, evicting it, and setting a scale.
#include "apiserver/errors.h"
#include "apiserver/patch/patch.h"
#include "apiserver/scale.h"
#include "apiserver/writer.h"
#include "base/rfc3339.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::apiserver {
namespace {

std::string Success(int code) {
  return PrintJson(Object{{"kind", "Status"},
                          {"apiVersion", "v1"},
                          {"metadata", Object{}},
                          {"status", "Success"},
                          {"code", code}});
}

Answer AnswerSuccess(int code) {
  return [code](Call& call, const Modification&, std::string_view, kv::Revision) {
    call.Send(code, Success(code));
  };
}

void SetCondition(Document& pod, std::string_view type, Object condition) {
  Document& conditions = MakeObjectAt(pod, {"status"})["conditions"];
  if (!conditions.is_array()) conditions.emplace_array();
  for (Document& known : conditions.get_array()) {
    if (StringAt(known, {"type"}) != type) continue;
    known = std::move(condition);
    return;
  }
  conditions.get_array().emplace_back(std::move(condition));
}

absl::StatusOr<Modification> BindTo(const Call& call, const Document& pod, const Document& binding,
                                    absl::Time now) {
  const std::string_view node = StringAt(binding, {"target", "name"});
  const std::string_view bound = StringAt(pod, {"spec", "nodeName"});
  const std::string_view uid = StringAt(binding, {"metadata", "uid"});
  if (node.empty()) return kube::ToStatus(BadRequest("target.name of the Binding must name a node"));
  if (!bound.empty()) {
    return kube::ToStatus(
        Conflict(*call.resource, call.info.name, StrCat("is already assigned to node \"", bound, "\"")));
  }
  if (!uid.empty() && uid != StringAt(pod, {"metadata", "uid"})) {
    return kube::ToStatus(
        Conflict(*call.resource, call.info.name, "has another uid than the Binding says: it was made anew"));
  }
  if (Find(pod, {"metadata", "deletionTimestamp"}) != nullptr) {
    return kube::ToStatus(
        Conflict(*call.resource, call.info.name, "is being deleted and cannot be assigned to a node"));
  }
  Modification made{.kind = Modification::Kind::kStore, .object = pod};
  MakeObjectAt(made.object, {"spec"})["nodeName"] = node;
  SetCondition(made.object, "PodScheduled",
               {{"type", "PodScheduled"},
                {"status", "True"},
                {"lastProbeTime", nullptr},
                {"lastTransitionTime", PrintTime(now)}});
  return made;
}

}  // namespace

void Writer::Bind(const CallPtr& call) {
  auto body = DecodeBody(call->in.request);
  if (!body.ok()) return call->Fail(body.status());
  Change(
      call,
      [this, body = *std::move(body)](Call& c,
                                      const std::optional<Document>& live) -> absl::StatusOr<Modification> {
        if (!live) return kube::ToStatus(NotFound(*c.resource, c.info.name));
        return BindTo(c, *live, body, options_.clock->Now());
      },
      AnswerSuccess(201));
}

void Writer::Evict(const CallPtr& call) {
  auto body = DecodeBody(call->in.request);
  if (!body.ok()) return call->Fail(body.status());
  const std::string_view name = StringAt(*body, {"metadata", "name"});
  if (!name.empty() && name != call->info.name) {
    return call->Fail(BadRequest(
        StrCat("the eviction is of '", Escaped(name), "', but the path is that of ", call->info.name)));
  }
  const Document* options = Find(*body, {"deleteOptions"});
  const auto terms = ParseDeleteTerms(options, "", "", "");
  if (!terms.ok()) return call->Fail(terms.status());
  DeleteOn(call, *terms, AnswerSuccess(201));
}

void Writer::ChangeScale(const CallPtr& call) {
  auto body = DecodeBody(call->in.request);
  if (!body.ok()) return call->Fail(body.status());
  const bool patches = call->info.verb == Verb::kPatch;
  const std::string_view content_type = call->in.request.content_type;
  const bool json_patch = content_type.starts_with("application/json-patch+json");
  const bool merge_patch = content_type.starts_with("application/merge-patch+json");
  if (patches && !json_patch && !merge_patch) {
    return call->Fail(
        UnsupportedMediaType(content_type, "application/json-patch+json, application/merge-patch+json"));
  }
  const ScalePaths paths = *call->version->scale;
  Change(
      call,
      [this, paths, patches, json_patch, body = *std::move(body)](
          Call& c, const std::optional<Document>& live) -> absl::StatusOr<Modification> {
        if (!live) return kube::ToStatus(NotFound(*c.resource, c.info.name));
        Document scale = patches ? ScaleOf(paths, *live) : body;
        if (json_patch) {
          TY_ASSIGN_OR_RETURN(scale, ApplyJsonPatch(std::move(scale), body, c.budget));
        } else if (patches) {
          ApplyMergePatch(scale, body);
        }
        const std::string_view version = StringAt(scale, {"metadata", "resourceVersion"});
        if (!version.empty() && version != StringAt(*live, {"metadata", "resourceVersion"})) {
          return kube::ToStatus(
              Conflict(*c.resource, c.info.name, "has been changed since its scale was read; get it again"));
        }
        TY_ASSIGN_OR_RETURN(Document scaled, WithScale(paths, *live, scale));
        TY_ASSIGN_OR_RETURN(PreparedObject prepared, PrepareUpdate(Context(c), *live, std::move(scaled), ""));
        return Modification{.kind = Modification::Kind::kStore, .object = std::move(prepared.object)};
      },
      [paths](Call& c, const Modification& made, std::string_view, kv::Revision revision) {
        Document scale = ScaleOf(paths, made.object);
        if (revision > 0) MakeObjectAt(scale, {"metadata"})["resourceVersion"] = std::to_string(revision);
        c.Send(200, PrintJson(scale));
      });
}

// Answers once every one of the deletes has.
void Writer::DeleteListed(const CallPtr& call, const std::vector<kube::ObjectKey>& keys) {
  struct Sum {
    CallPtr whole;
    std::atomic<std::size_t> missing;
    Mutex mu;
    std::optional<kube::Response> failed TY_GUARDED_BY(mu);

    void Done() {
      if (missing.fetch_sub(1) != 1) return;
      MutexLock lock(mu);
      if (failed) {
        whole->responder->Send(*std::move(failed));
      } else {
        whole->Send(200, Success(200));
      }
    }
  };
  class PartResponder final : public http::Responder {
   public:
    explicit PartResponder(std::shared_ptr<Sum> sum) : sum_(std::move(sum)) {}
    void Send(kube::Response response) override {
      // What was gone already is deleted.
      if (response.code >= 400 && response.code != 404) {
        MutexLock lock(sum_->mu);
        sum_->failed = std::move(response);
      }
      sum_->Done();
    }
    std::shared_ptr<http::BodyWriter> Stream(kube::Response) override { return nullptr; }

   private:
    std::shared_ptr<Sum> sum_;
  };

  auto sum = std::make_shared<Sum>();
  sum->whole = call;
  sum->missing = keys.size() + 1;
  for (const kube::ObjectKey& key : keys) {
    auto part = std::make_shared<Call>();
    part->in.request = call->in.request;
    part->in.identity = call->in.identity;
    part->target = call->target;
    part->info = call->info;
    part->info.verb = Verb::kDelete;
    part->info.ns = key.ns;
    part->info.name = key.name;
    part->resource = call->resource;
    part->version = call->version;
    part->responder = std::make_unique<PartResponder>(sum);
    Delete(part);
  }
  sum->Done();
}

}  // namespace trainyard::apiserver
