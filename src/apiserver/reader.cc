#include "apiserver/reader.h"

#include "apiserver/errors.h"
#include "apiserver/stored_object.h"
#include "apiserver/table.h"
#include "base/base64.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::apiserver {
namespace {

constexpr std::int64_t kReadAtOnce = 1000;                   // keys taken from the store with one call
constexpr absl::Duration kDefaultWatch = absl::Minutes(45);  // of a client that does not say

struct ContinueToken {
  kv::Revision revision = 0;
  std::string start;
};

std::string PrintToken(const ContinueToken& token) {
  return EncodeBase64(StrCat(token.revision, "/", token.start));
}

absl::StatusOr<ContinueToken> ParseToken(std::string_view text, std::string_view prefix) {
  const absl::Status bad = kube::ToStatus(
      BadRequest("the continue parameter is not one that this server gave out; list again without it"));
  const auto decoded = DecodeBase64(text);
  if (!decoded.ok()) return bad;
  const std::size_t slash = decoded->find('/');
  if (slash == std::string::npos) return bad;
  const auto revision = ParseNumber<kv::Revision>(std::string_view(*decoded).substr(0, slash));
  ContinueToken token{.revision = revision.value_or(0), .start = decoded->substr(slash + 1)};
  if (token.revision <= 0 || !token.start.starts_with(prefix)) return bad;
  return token;
}

// The version that the client names; nothing if it leaves the choice to us.
absl::StatusOr<std::optional<kv::Revision>> ParseVersion(const Query& query) {
  const std::string_view text = query.Get("resourceVersion");
  if (text.empty()) return std::nullopt;
  const auto revision = ParseNumber<kv::Revision>(text);
  if (!revision || *revision < 0) {
    return kube::ToStatus(BadRequest(
        StrCat("resourceVersion must be one that this server gave out, not '", Escaped(text), "'")));
  }
  return *revision;
}

kube::ApiError ReadError(const absl::Status& status) {
  if (kv::IsCompacted(status))
    return Expired("that resourceVersion is too old: what was there then has been forgotten; list again");
  return FromStore(status);
}

}  // namespace

ObjectRenderer RendererFor(const Call& call, const Clock& clock) {
  const std::string api_version = call.ApiVersion();
  const std::string kind = call.resource->kind;
  if (call.format.kind == OutputFormat::Kind::kObject) {
    return [api_version, kind](std::string_view stored, kv::Revision revision) {
      return ShowStored(api_version, kind, stored, revision);
    };
  }
  return [format = call.format, resource = call.resource, version = call.version, left = call.budget,
          api_version, kind, &clock](std::string_view stored, kv::Revision revision) -> std::string {
    const auto object = DecodeStored(api_version, kind, stored, revision);
    if (!object.ok()) return kube::ToResponse(FromStatus(object.status())).body;
    if (format.kind == OutputFormat::Kind::kMetadata)
      return PrintJson(PartialMetadata(*object, format.version));
    Budget budget = left;
    return OneRowTable(*resource, *version, *object, format, clock.Now(), budget);
  };
}

void Reader::Get(const CallPtr& call) {
  const auto version = ParseVersion(call->query());
  if (!version.ok()) return call->Fail(version.status());
  const auto found =
      store_.Get(StoreKey(call->info.group, call->info.plural, call->info.ns, call->info.name));
  if (!found.ok()) return call->Fail(FromStore(found.status()));
  if (version->value_or(0) > found->revision)
    return call->Fail(TooLargeResourceVersion(**version, found->revision));
  if (!found->kv) return call->Fail(NotFound(*call->resource, call->info.name));
  call->Send(200, RendererFor(*call, clock_)(found->kv->value, found->kv->mod_revision));
}

void Reader::List(const CallPtr& call) {
  if (slow_ == nullptr) return ListNow(call);
  slow_->Post([this, call] { ListNow(call); });
}

void Reader::Watch(const CallPtr& call) {
  if (slow_ == nullptr) return WatchNow(call);
  slow_->Post([this, call] { WatchNow(call); });
}

absl::StatusOr<Reader::ListTerms> Reader::ParseListTerms(const Call& call) {
  ListTerms terms;
  TY_ASSIGN_OR_RETURN(terms.filter, ObjectFilter::Parse(*call.resource, call.query()));
  std::string ns = call.info.ns;
  if (ns.empty() && call.resource->namespaced && terms.filter.Namespace()) ns = *terms.filter.Namespace();
  terms.prefix = StoreKey(call.info.group, call.info.plural, ns, "");
  terms.start = terms.prefix;
  TY_ASSIGN_OR_RETURN(const auto limit, call.query().Number("limit"));
  terms.limit = limit.value_or(0);
  TY_ASSIGN_OR_RETURN(const auto version, ParseVersion(call.query()));
  const std::string_view match = call.query().Get("resourceVersionMatch");
  if (const std::string_view token = call.query().Get("continue"); !token.empty()) {
    if (version.value_or(0) != 0)
      return kube::ToStatus(BadRequest("resourceVersion and continue exclude each other"));
    TY_ASSIGN_OR_RETURN(ContinueToken parsed, ParseToken(token, terms.prefix));
    terms.revision = parsed.revision;
    terms.start = std::move(parsed.start);
    return terms;
  }
  if (!match.empty() && !version)
    return kube::ToStatus(BadRequest("resourceVersionMatch needs a resourceVersion"));
  if (!match.empty() && match != "Exact" && match != "NotOlderThan") {
    return kube::ToStatus(BadRequest("resourceVersionMatch must be Exact or NotOlderThan"));
  }
  if (match == "Exact") {
    if (*version == 0)
      return kube::ToStatus(BadRequest("resourceVersionMatch=Exact needs a resourceVersion other than 0"));
    terms.revision = *version;
  }
  if (version.value_or(0) > 0) {
    TY_ASSIGN_OR_RETURN(const kv::GetResult newest, store_.Get(kRegistryPrefix));
    if (*version > newest.revision) return kube::ToStatus(TooLargeResourceVersion(*version, newest.revision));
  }
  return terms;
}

absl::StatusOr<Reader::Page> Reader::ReadPage(const ListTerms& terms) {
  Page page{.revision = terms.revision};
  const auto end = kv::KeyRange::Prefix(terms.prefix).end;
  std::string next = terms.start;
  for (;;) {
    std::int64_t limit = kReadAtOnce;
    if (terms.limit > 0 && terms.filter.MatchesAll()) {
      limit = std::min(limit, terms.limit - static_cast<std::int64_t>(page.kvs.size()));
    }
    auto range =
        store_.Range({.range = {.begin = next, .end = end}, .limit = limit, .revision = page.revision});
    if (!range.ok()) return kube::ToStatus(ReadError(range.status()));
    if (page.revision == 0) page.revision = range->revision;
    for (kv::KeyValue& kv : range->kvs) {
      next = kv.key + '\0';
      if (!terms.filter.MatchesAll() && !terms.filter.Matches(kv.value)) continue;
      if (terms.limit > 0 && static_cast<std::int64_t>(page.kvs.size()) == terms.limit) {
        page.continue_token = PrintToken({.revision = page.revision, .start = kv.key});
        return page;
      }
      page.kvs.push_back(std::move(kv));
    }
    if (!range->more) return page;
    if (terms.limit > 0 && terms.filter.MatchesAll() &&
        static_cast<std::int64_t>(page.kvs.size()) == terms.limit) {
      page.continue_token = PrintToken({.revision = page.revision, .start = next});
      return page;
    }
  }
}

absl::StatusOr<std::vector<kube::ObjectKey>> Reader::Keys(const Call& call) {
  TY_ASSIGN_OR_RETURN(ListTerms terms, ParseListTerms(call));
  TY_ASSIGN_OR_RETURN(const Page page, ReadPage(terms));
  std::vector<kube::ObjectKey> keys;
  for (const kv::KeyValue& kv : page.kvs) {
    const ParsedStoreKey parsed = ParseStoreKey(kv.key).value_or(ParsedStoreKey{});
    keys.push_back({.ns = std::string(parsed.ns), .name = std::string(parsed.name)});
  }
  return keys;
}

absl::StatusOr<kv::KeyValue> Reader::Find(const Call& call) {
  auto found = store_.Get(StoreKey(call.info.group, call.info.plural, call.info.ns, call.info.name));
  if (!found.ok()) return kube::ToStatus(FromStore(found.status()));
  if (!found->kv) return kube::ToStatus(NotFound(*call.resource, call.info.name));
  return *std::move(found->kv);
}

void Reader::ListNow(const CallPtr& call) {
  auto terms = ParseListTerms(*call);
  if (!terms.ok()) return call->Fail(terms.status());
  auto page = ReadPage(*terms);
  if (!page.ok()) return call->Fail(page.status());

  std::string metadata = StrCat(R"({"resourceVersion":")", page->revision, "\"");
  if (!page->continue_token.empty()) StrAppend(metadata, R"(,"continue":")", page->continue_token, "\"");
  metadata += '}';
  if (call->format.kind == OutputFormat::Kind::kTable) {
    const absl::Time now = clock_.Now();
    std::vector<Document> objects;
    for (const kv::KeyValue& kv : page->kvs) {
      auto object = DecodeStored(call->ApiVersion(), call->resource->kind, kv.value, kv.mod_revision);
      if (!object.ok()) return call->Fail(object.status());
      objects.push_back(*std::move(object));
      call->budget.Add(kv.value.size());
    }
    return call->Send(
        200, TableText(*call->resource, *call->version, objects, metadata, call->format, now, call->budget));
  }
  const bool metadata_only = call->format.kind == OutputFormat::Kind::kMetadata;
  // Items of built-in kinds do not repeat what the list says of them; those of custom kinds do.
  const std::string kind = call->resource->custom ? call->resource->kind : "";
  const std::string list_kind = metadata_only ? "PartialObjectMetadataList" : call->resource->list_kind;
  const std::string list_version =
      metadata_only ? StrCat("meta.k8s.io/", call->format.version) : call->ApiVersion();
  const ObjectRenderer render = RendererFor(*call, clock_);
  std::string body = StrCat(R"({"kind":")", list_kind, R"(","apiVersion":")", list_version,
                            R"(","metadata":)", metadata, R"(,"items":[)");
  std::size_t bytes = body.size() + 2;
  for (const kv::KeyValue& kv : page->kvs) bytes += kv.value.size() + 96;
  body.reserve(bytes);
  bool first = true;
  for (const kv::KeyValue& kv : page->kvs) {
    if (!first) body += ',';
    first = false;
    if (metadata_only) {
      body += render(kv.value, kv.mod_revision);
    } else {
      AppendStored(body, call->ApiVersion(), kind, kv.value, kv.mod_revision);
    }
  }
  body += "]}";
  call->Send(200, std::move(body));
}

void Reader::WatchNow(const CallPtr& call) {
  if (const absl::Status begun = BeginWatch(*call); !begun.ok()) call->Fail(begun);
}

absl::Status Reader::BeginWatch(Call& call) {
  ListTerms terms;
  TY_ASSIGN_OR_RETURN(terms.filter, ObjectFilter::Parse(*call.resource, call.query()));
  std::string ns = call.info.ns;
  if (ns.empty() && call.resource->namespaced && terms.filter.Namespace()) ns = *terms.filter.Namespace();
  terms.prefix = StoreKey(call.info.group, call.info.plural, ns, "");
  terms.start = terms.prefix;
  TY_ASSIGN_OR_RETURN(const auto version, ParseVersion(call.query()));
  TY_ASSIGN_OR_RETURN(const auto timeout, call.query().Number("timeoutSeconds"));
  const bool send_initial = call.query().Flag("sendInitialEvents");
  if (send_initial && call.query().Get("resourceVersionMatch") != "NotOlderThan") {
    return kube::ToStatus(BadRequest("sendInitialEvents needs resourceVersionMatch=NotOlderThan"));
  }
  const bool from_state =
      send_initial || (!call.query().Has("sendInitialEvents") && version.value_or(0) == 0);
  std::optional<Page> page;
  kv::Revision from = version.value_or(0);
  if (from_state || from == 0) {
    TY_ASSIGN_OR_RETURN(page, ReadPage(terms));
    if (from > page->revision) return kube::ToStatus(TooLargeResourceVersion(from, page->revision));
    from = page->revision;
  } else {
    TY_ASSIGN_OR_RETURN(const kv::GetResult newest, store_.Get(kRegistryPrefix));
    if (from > newest.revision) return kube::ToStatus(TooLargeResourceVersion(from, newest.revision));
  }
  const absl::Duration lasts = timeout.value_or(0) > 0 ? absl::Seconds(*timeout) : kDefaultWatch;
  auto session = std::make_shared<WatchSession>(
      WatchTerms{.filter = std::move(terms.filter),
                 .format_tag = StrCat(call.ApiVersion(), "/", static_cast<int>(call.format.kind), "/",
                                      call.format.version, "/", call.format.include_object),
                 .render = RendererFor(call, clock_),
                 .api_version = call.ApiVersion(),
                 .kind = call.resource->kind,
                 .bookmarks = call.query().Flag("allowWatchBookmarks"),
                 .ends = clock_.Steady() + lasts},
      call.responder->Stream(call.Head(200)));
  if (from_state) {
    for (const kv::KeyValue& kv : page->kvs) {
      if (!session->SendInitial(kv.value, kv.mod_revision)) break;
    }
    if (send_initial) session->SendBookmark(from, true);
  }
  hub_.Subscribe(terms.prefix, from, std::move(session));
  return absl::OkStatus();
}

}  // namespace trainyard::apiserver
