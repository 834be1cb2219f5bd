#include "apiserver/writer.h"

#include <algorithm>

#include "apiserver/errors.h"
#include "apiserver/patch/patch.h"
#include "apiserver/reader.h"
#include "apiserver/stored_object.h"
#include "apiserver/strategy.h"
#include "base/log.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::apiserver {
namespace {

constexpr int kMaxAttempts = 100;  // of a change that keeps meeting others
constexpr int kNameSuffix = 5;
constexpr std::size_t kEventLeases = 8;
constexpr std::uint32_t kAddressAttempts = 1U << 16;

FieldValidation ParseFieldValidation(const Query& query) {
  const std::string_view text = query.Get("fieldValidation");
  if (text == "Ignore") return FieldValidation::kIgnore;
  return text == "Strict" ? FieldValidation::kStrict : FieldValidation::kWarn;
}

// The version that the client's object was read at must be the one that is there.
absl::Status CheckVersion(const Call& call, const Document& live, const Document& body) {
  const std::string_view wanted = StringAt(body, {"metadata", "resourceVersion"});
  const std::string_view is = StringAt(live, {"metadata", "resourceVersion"});
  if (wanted.empty() || wanted == "0" || wanted == is) return absl::OkStatus();
  return kube::ToStatus(
      Conflict(*call.resource, call.info.name,
               StrCat("cannot be changed: the object has been modified since it was read at resourceVersion ",
                      Escaped(wanted), " and is at ", is, " now; get it again and repeat the change")));
}

std::string DeletedStatus(const Call& call, const Document& object) {
  return PrintJson(Object{{"kind", "Status"},
                          {"apiVersion", "v1"},
                          {"metadata", Object{}},
                          {"status", "Success"},
                          {"details", Object{{"name", StringAt(object, {"metadata", "name"})},
                                             {"group", call.resource->group},
                                             {"kind", call.resource->plural},
                                             {"uid", StringAt(object, {"metadata", "uid"})}}}});
}

// Whole: 200, or 201 for what is new.
Answer ShowObject(const Clock& clock) {
  return [&clock](Call& call, const Modification& made, std::string_view stored, kv::Revision revision) {
    call.Send(made.created ? 201 : 200, RendererFor(call, clock)(stored, revision));
  };
}

Answer ShowDeleted(const Clock& clock) {
  return [&clock](Call& call, const Modification& made, std::string_view stored, kv::Revision revision) {
    if (made.kind == Modification::Kind::kRemove) return call.Send(200, DeletedStatus(call, made.object));
    call.Send(200, RendererFor(call, clock)(stored, revision));
  };
}

// What was decided, unless nothing holds the object any more: then it goes.
Modification Settle(Document object) {
  const bool remove = IsReadyToRemove(object);
  return {.kind = remove ? Modification::Kind::kRemove : Modification::Kind::kStore,
          .object = std::move(object)};
}

bool IsService(const Call& call) { return !call.resource->custom && call.resource->plural == "services"; }
bool IsEvent(const Call& call) { return !call.resource->custom && call.resource->plural == "events"; }

std::string AddressKey(std::string_view address) { return StrCat("addresses/", address); }

enum class PatchKind { kJson, kMerge, kStrategic, kApply };

// Custom resources have no schema that says how their lists merge.
std::optional<PatchKind> ParsePatchKind(std::string_view content_type, bool custom) {
  const std::string_view type = content_type.substr(0, content_type.find(';'));
  if (type == "application/json-patch+json") return PatchKind::kJson;
  if (type == "application/merge-patch+json") return PatchKind::kMerge;
  if (type == "application/strategic-merge-patch+json" && !custom) return PatchKind::kStrategic;
  if (type == "application/apply-patch+yaml") return PatchKind::kApply;
  return std::nullopt;
}

std::string_view PatchTypes(bool custom) {
  return custom ? "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
                : "application/json-patch+json, application/merge-patch+json, "
                  "application/strategic-merge-patch+json, application/apply-patch+yaml";
}

kube::ApiError ManagerMissing() {
  return {.code = 422,
          .reason = "Invalid",
          .message = "an apply needs the parameter fieldManager: who owns the fields that it sets",
          .causes = {{.reason = "FieldValueRequired",
                      .field = "fieldManager",
                      .message = "Required value: is required for apply patch"}}};
}

absl::StatusOr<Document> Patched(Call& call, PatchKind kind, Document live, const Document& patch,
                                 const WriteContext& context) {
  switch (kind) {
    case PatchKind::kJson:
      return ApplyJsonPatch(std::move(live), patch, call.budget);
    case PatchKind::kMerge:
      ApplyMergePatch(live, patch);
      return live;
    case PatchKind::kStrategic:
      return ApplyStrategicPatch(std::move(live), patch, *call.version->schema);
    case PatchKind::kApply:
      return ServerSideApply(live, patch, *call.version->schema,
                             {.name = context.manager,
                              .operation = "Apply",
                              .api_version = call.ApiVersion(),
                              .subresource = call.info.subresource,
                              .time = context.now},
                             call.query().Flag("force"), call.budget);
  }
  return absl::InternalError("no kind of patch");
}

absl::Status Missing(const Call& call) { return kube::ToStatus(NotFound(*call.resource, call.info.name)); }

}  // namespace

WriteContext Writer::Context(Call& call) const {
  return {.resource = *call.resource,
          .version = *call.version,
          .now = options_.clock->Now(),
          .manager = ManagerName(call),
          .validation = ParseFieldValidation(call.query()),
          .budget = call.budget};
}

absl::Status Writer::CheckNamespace(const Call& call) const {
  if (!call.resource->namespaced) return absl::OkStatus();
  const auto found = options_.store->Get(StoreKey("", "namespaces", "", call.info.ns));
  if (!found.ok()) return kube::ToStatus(FromStore(found.status()));
  if (!found->kv) {
    return kube::ToStatus({.code = 404,
                           .reason = "NotFound",
                           .message = StrCat("namespaces \"", call.info.ns, "\" not found"),
                           .kind = "namespaces",
                           .name = call.info.ns});
  }
  // A name cannot hold a quote, so the text can stand nowhere else in a stored namespace but as this field.
  if (found->kv->value.find(R"("deletionTimestamp":)") != std::string::npos) {
    kube::ApiError error =
        Forbidden(*call.resource, call.info.name,
                  StrCat("the namespace ", call.info.ns, " is being deleted, nothing new can be made in it"));
    error.causes.push_back({.reason = "NamespaceTerminating",
                            .field = "metadata.namespace",
                            .message = StrCat("namespace ", call.info.ns, " is being terminated")});
    return kube::ToStatus(error);
  }
  return absl::OkStatus();
}

absl::StatusOr<Modification> Writer::MakeNew(Call& call, Document body, const WriteContext& context) {
  TY_RETURN_IF_ERROR(CheckNamespace(call));
  TY_ASSIGN_OR_RETURN(PreparedObject prepared,
                      PrepareCreate(context, std::move(body),
                                    {.ns = call.info.ns,
                                     .name = call.info.name,
                                     .uid = options_.ids->Uuid(),
                                     .name_suffix = options_.ids->Suffix(kNameSuffix)}));
  call.info.name = StringAt(prepared.object, {"metadata", "name"});
  call.warnings = std::move(prepared.warnings);
  if (IsService(call)) TY_RETURN_IF_ERROR(AssignAddress(call, prepared.object));
  return Modification{
      .kind = Modification::Kind::kStore, .object = std::move(prepared.object), .created = true};
}

// An address that no service has, unless the client asks for a certain one or for none.
absl::Status Writer::AssignAddress(const Call& call, Document& service) const {
  Object& spec = MakeObjectAt(service, {"spec"});
  const auto taken_by = [&](std::string_view address) -> absl::StatusOr<std::string> {
    const auto found = options_.store->Get(AddressKey(address));
    if (!found.ok()) return kube::ToStatus(FromStore(found.status()));
    return found->kv ? found->kv->value : "";
  };
  if (!NeedsClusterIp(service)) {
    const std::string_view asked = StringAt(service, {"spec", "clusterIP"});
    if (asked.empty() || asked == "None") return absl::OkStatus();
    TY_ASSIGN_OR_RETURN(const std::string owner, taken_by(asked));
    if (owner.empty()) return absl::OkStatus();
    return kube::ToStatus(Invalid(*call.resource, call.info.name,
                                  {{.reason = "FieldValueInvalid",
                                    .field = "spec.clusterIPs",
                                    .message = StrCat("Invalid value: [\"", Escaped(asked),
                                                      "\"]: the service ", owner, " has this address")}}));
  }
  for (std::uint32_t attempt = 0; attempt < kAddressAttempts; ++attempt) {
    const std::string address = ClusterIpCandidate(StringAt(service, {"metadata", "uid"}), attempt);
    TY_ASSIGN_OR_RETURN(const std::string owner, taken_by(address));
    if (!owner.empty()) continue;
    spec["clusterIP"] = address;
    spec["clusterIPs"] = Array{address};
    return absl::OkStatus();
  }
  return kube::ToStatus(
      {.code = 500, .reason = "InternalError", .message = "no address is left for the service"});
}

void Writer::Create(const CallPtr& call) {
  auto body = DecodeBody(call->in.request);
  if (!body.ok()) return call->Fail(body.status());
  const bool named = !StringAt(*body, {"metadata", "name"}).empty();
  if (named) call->info.name = StringAt(*body, {"metadata", "name"});
  Change(
      call,
      [this, body = *std::move(body), named](
          Call& c, const std::optional<Document>& live) -> absl::StatusOr<Modification> {
        if (live && named) return kube::ToStatus(AlreadyExists(*c.resource, c.info.name));
        if (!named) c.info.name.clear();
        return MakeNew(c, body, Context(c));
      },
      ShowObject(*options_.clock));
}

void Writer::Update(const CallPtr& call) {
  auto body = DecodeBody(call->in.request);
  if (!body.ok()) return call->Fail(body.status());
  Change(
      call,
      [this, body = *std::move(body)](Call& c,
                                      const std::optional<Document>& live) -> absl::StatusOr<Modification> {
        if (!live) return Missing(c);
        TY_RETURN_IF_ERROR(CheckVersion(c, *live, body));
        TY_ASSIGN_OR_RETURN(PreparedObject prepared,
                            PrepareUpdate(Context(c), *live, body, c.info.subresource));
        c.warnings = std::move(prepared.warnings);
        return Settle(std::move(prepared.object));
      },
      ShowObject(*options_.clock));
}

void Writer::Patch(const CallPtr& call) {
  const std::string_view content_type = call->in.request.content_type;
  const auto kind = ParsePatchKind(content_type, call->resource->custom);
  if (!kind) return call->Fail(UnsupportedMediaType(content_type, PatchTypes(call->resource->custom)));
  const bool apply = *kind == PatchKind::kApply;
  if (apply && call->query().Get("fieldManager").empty()) return call->Fail(ManagerMissing());
  auto patch = DecodeBody(call->in.request);
  if (!patch.ok()) return call->Fail(patch.status());
  // The status is applied through its own subresource only.
  if (apply && call->version->has_status && call->info.subresource.empty() && patch->is_object()) {
    Remove(patch->get_object(), "status");
  }
  Change(
      call,
      [this, patch = *std::move(patch), kind = *kind, apply](
          Call& c, const std::optional<Document>& live) -> absl::StatusOr<Modification> {
        if (!live && (!apply || !c.info.subresource.empty())) return Missing(c);
        WriteContext context = Context(c);
        context.track = !apply;  // an apply has recorded who owns what
        TY_ASSIGN_OR_RETURN(Document patched,
                            Patched(c, kind, live ? *live : Document(Object()), patch, context));
        if (!live) return MakeNew(c, std::move(patched), context);
        TY_RETURN_IF_ERROR(CheckVersion(c, *live, patched));
        TY_ASSIGN_OR_RETURN(PreparedObject prepared,
                            PrepareUpdate(context, *live, std::move(patched), c.info.subresource));
        c.warnings = std::move(prepared.warnings);
        return Settle(std::move(prepared.object));
      },
      ShowObject(*options_.clock));
}

void Writer::DeleteOn(const CallPtr& call, const DeleteTerms& terms, Answer answer) {
  Change(
      call,
      [this, terms](Call& c, const std::optional<Document>& live) -> absl::StatusOr<Modification> {
        if (!live) return Missing(c);
        TY_ASSIGN_OR_RETURN(DeleteDecision decision,
                            DecideDelete(*c.resource, *live, terms, options_.clock->Now()));
        switch (decision.verdict) {
          case DeleteVerdict::kRemove:
            return Modification{.kind = Modification::Kind::kRemove, .object = *live};
          case DeleteVerdict::kMark:
            return Modification{.kind = Modification::Kind::kStore, .object = std::move(decision.object)};
          case DeleteVerdict::kNothing:
            return Modification{.kind = Modification::Kind::kNothing, .object = *live};
        }
        return absl::InternalError("no verdict");
      },
      std::move(answer));
}

void Writer::Delete(const CallPtr& call) {
  std::optional<Document> body;
  if (!call->in.request.body.empty()) {
    auto decoded = DecodeBody(call->in.request);
    if (!decoded.ok()) return call->Fail(decoded.status());
    body = *std::move(decoded);
  }
  const auto terms =
      ParseDeleteTerms(body ? &*body : nullptr, call->query().Get("gracePeriodSeconds"),
                       call->query().Get("propagationPolicy"), call->query().Get("orphanDependents"));
  if (!terms.ok()) return call->Fail(terms.status());
  DeleteOn(call, *terms, ShowDeleted(*options_.clock));
}

void Writer::Change(const CallPtr& call, const Modify& modify, const Answer& answer) {
  const std::string key = StoreKey(call->info.group, call->info.plural, call->info.ns, call->info.name);
  std::optional<kv::KeyValue> live;
  std::optional<Document> document;
  if (!call->info.name.empty()) {
    auto found = options_.store->Get(key);
    if (!found.ok()) return call->Fail(FromStore(found.status()));
    live = std::move(found->kv);
  }
  if (live && live->value.size() > kLargeBytes && options_.large != nullptr && !call->large) {
    call->large = true;
    return options_.large->Post([this, call, modify, answer] { Change(call, modify, answer); });
  }
  if (live) {
    auto decoded = DecodeStored(call->ApiVersion(), call->resource->kind, live->value, live->mod_revision);
    if (!decoded.ok()) return call->Fail(decoded.status());
    document = *std::move(decoded);
  }
  call->budget = Budget();
  auto made = modify(*call, document);
  if (!made.ok()) return call->Fail(made.status());
  const std::string final_key = StoreKey(call->info.group, call->info.plural, call->info.ns, call->info.name);
  const bool changes = made->kind != Modification::Kind::kNothing;
  std::string stored =
      changes ? EncodeStored(made->object) : "";  // of what goes: as it is shown for the last time
  const bool keeps = made->kind == Modification::Kind::kStore;
  const bool same = live && (!changes || (keeps && stored == live->value));
  if (same) return answer(*call, *made, live->value, live->mod_revision);
  if (call->dry_run()) {
    return answer(*call, *made, stored.empty() && live ? live->value : stored, live ? live->mod_revision : 0);
  }
  auto txn = Transaction(*call, final_key, live, *made, stored);
  if (!txn.ok()) return call->Fail(txn.status());
  options_.store->TxnAsync(
      *std::move(txn), [this, call, modify, answer, made = *std::move(made),
                        stored = std::move(stored)](absl::StatusOr<kv::TxnResult> result) {
        if (!result.ok()) return call->Fail(FromStore(result.status()));
        if (result->succeeded) {
          if (call->resource->plural == "customresourcedefinitions") options_.definitions_changed();
          return answer(*call, made, stored, result->revision);
        }
        if (++call->attempts >= kMaxAttempts) {
          return call->Fail(kube::ApiError{.code = 503,
                                           .reason = "ServiceUnavailable",
                                           .message = "the object is being changed too often; try again",
                                           .retry_after = absl::Seconds(1)});
        }
        Executor* const again = call->large ? options_.large : options_.retries;
        if (again == nullptr) return Change(call, modify, answer);
        again->Post([this, call, modify, answer] { Change(call, modify, answer); });
      });
}

absl::StatusOr<kv::TxnRequest> Writer::Transaction(const Call& call, const std::string& key,
                                                   const std::optional<kv::KeyValue>& live,
                                                   const Modification& made, const std::string& stored) {
  kv::TxnRequest txn;
  const bool is_new = !live;
  txn.compares.push_back(is_new ? kv::Absent(key) : kv::ModifiedAt(key, live->mod_revision));
  if (is_new && call.resource->namespaced) {
    txn.compares.push_back(kv::Exists(StoreKey("", "namespaces", "", call.info.ns)));
  }
  if (made.kind == Modification::Kind::kRemove) {
    txn.then.emplace_back(kv::DeleteOp{.range = kv::KeyRange::Key(key)});
  } else {
    kv::PutOp put{.key = key, .value = stored};
    if (IsEvent(call)) {
      TY_ASSIGN_OR_RETURN(put.lease, EventLease());
    }
    txn.then.emplace_back(std::move(put));
  }
  // A service's address comes and goes with it.
  const std::string_view address = IsService(call) ? StringAt(made.object, {"spec", "clusterIP"}) : "";
  if (address.empty() || address == "None") return txn;
  if (made.kind == Modification::Kind::kRemove) {
    txn.then.emplace_back(kv::DeleteOp{.range = kv::KeyRange::Key(AddressKey(address))});
  } else if (is_new) {
    txn.compares.push_back(kv::Absent(AddressKey(address)));
    txn.then.emplace_back(
        kv::PutOp{.key = AddressKey(address), .value = StrCat(call.info.ns, "/", call.info.name)});
  }
  return txn;
}

// Events share leases: one that ends an hour after the last event under it was written, at most ten minutes
// more. Pods that come and go by the second write more events than anybody reads, so a lease takes a part of
// those that may be there, and the oldest lease ends when there are too many.
absl::StatusOr<kv::LeaseId> Writer::EventLease() {
  const SteadyTime now = options_.clock->Steady();
  const std::size_t most = std::max<std::size_t>(1, options_.most_events / kEventLeases);
  {
    const MutexLock lock(mu_);
    if (!event_leases_.empty()) {
      SharedLease& newest = event_leases_.back();
      if (now < newest.until && newest.events < most) {
        ++newest.events;
        return newest.id;
      }
    }
  }
  const absl::Duration shared = options_.event_life / 6;
  TY_ASSIGN_OR_RETURN(const kv::Lease lease, options_.store->GrantLease(options_.event_life + shared));
  std::vector<kv::LeaseId> excess;
  {
    const MutexLock lock(mu_);
    event_leases_.push_back({.id = lease.id, .until = now + shared, .events = 1});
    for (; event_leases_.size() > kEventLeases; event_leases_.pop_front())
      excess.push_back(event_leases_.front().id);
  }
  for (const kv::LeaseId id : excess) {
    // One that has ended by itself took its events with it.
    if (const absl::Status ended = options_.store->RevokeLease(id); !ended.ok() && !absl::IsNotFound(ended))
      log::Warn("cannot delete old events", {{"error", ended}});
  }
  return lease.id;
}

}  // namespace trainyard::apiserver
