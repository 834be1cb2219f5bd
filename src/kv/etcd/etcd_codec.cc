#include "kv/etcd/etcd_codec.h"

#include <utility>

#include "base/check.h"

namespace trainyard::kv {
namespace {

etcdserverpb::Compare::Result ToProto(Compare::Relation relation) {
  switch (relation) {
    case Compare::Relation::kEqual:
      return etcdserverpb::Compare::EQUAL;
    case Compare::Relation::kNotEqual:
      return etcdserverpb::Compare::NOT_EQUAL;
    case Compare::Relation::kLess:
      return etcdserverpb::Compare::LESS;
    case Compare::Relation::kGreater:
      return etcdserverpb::Compare::GREATER;
  }
  TY_CHECK(false, "a relation has one of four values");
}

void Fill(const Compare& compare, etcdserverpb::Compare& out) {
  out.set_key(compare.key);
  out.set_result(ToProto(compare.relation));
  switch (compare.target) {
    case Compare::Target::kValue:
      out.set_target(etcdserverpb::Compare::VALUE);
      out.set_value(std::get<std::string>(compare.operand));
      return;
    case Compare::Target::kVersion:
      out.set_target(etcdserverpb::Compare::VERSION);
      out.set_version(std::get<std::int64_t>(compare.operand));
      return;
    case Compare::Target::kCreateRevision:
      out.set_target(etcdserverpb::Compare::CREATE);
      out.set_create_revision(std::get<std::int64_t>(compare.operand));
      return;
    case Compare::Target::kModRevision:
      out.set_target(etcdserverpb::Compare::MOD);
      out.set_mod_revision(std::get<std::int64_t>(compare.operand));
      return;
  }
}

void Fill(const Op& op, etcdserverpb::RequestOp& out) {
  if (const auto* put = std::get_if<PutOp>(&op)) {
    *out.mutable_request_put() = ToProto(*put);
  } else if (const auto* del = std::get_if<DeleteOp>(&op)) {
    *out.mutable_request_delete_range() = ToProto(*del);
  } else {
    *out.mutable_request_range() = ToProto(std::get<GetOp>(op).request);
  }
}

}  // namespace

etcdserverpb::RangeRequest ToProto(const RangeRequest& request) {
  etcdserverpb::RangeRequest out;
  SetRange(request.range, out);
  out.set_limit(request.limit);
  out.set_revision(request.revision);
  out.set_keys_only(request.keys_only);
  return out;
}

etcdserverpb::PutRequest ToProto(const PutOp& put) {
  etcdserverpb::PutRequest out;
  out.set_key(put.key);
  out.set_value(put.value);
  out.set_lease(put.lease);
  return out;
}

etcdserverpb::DeleteRangeRequest ToProto(const DeleteOp& del) {
  etcdserverpb::DeleteRangeRequest out;
  SetRange(del.range, out);
  return out;
}

etcdserverpb::TxnRequest ToProto(const TxnRequest& request) {
  etcdserverpb::TxnRequest out;
  for (const Compare& compare : request.compares) Fill(compare, *out.add_compare());
  for (const Op& op : request.then) Fill(op, *out.add_success());
  for (const Op& op : request.otherwise) Fill(op, *out.add_failure());
  return out;
}

KeyValue FromProto(etcdserverpb::KeyValue& kv) {
  return {.key = std::move(*kv.mutable_key()),
          .value = std::move(*kv.mutable_value()),
          .create_revision = kv.create_revision(),
          .mod_revision = kv.mod_revision(),
          .version = kv.version(),
          .lease = kv.lease()};
}

RangeResult FromProto(etcdserverpb::RangeResponse& response) {
  RangeResult result{.more = response.more(), .revision = response.header().revision()};
  result.kvs.reserve(static_cast<std::size_t>(response.kvs_size()));
  for (etcdserverpb::KeyValue& kv : *response.mutable_kvs()) result.kvs.push_back(FromProto(kv));
  return result;
}

TxnResult FromProto(etcdserverpb::TxnResponse& response) {
  TxnResult result{.succeeded = response.succeeded(), .revision = response.header().revision()};
  for (etcdserverpb::ResponseOp& op : *response.mutable_responses()) {
    if (op.has_response_range()) {
      RangeResult range = FromProto(*op.mutable_response_range());
      range.revision = result.revision;
      result.results.emplace_back(std::move(range));
    } else if (op.has_response_delete_range()) {
      result.results.emplace_back(DeleteResult{.deleted = op.response_delete_range().deleted()});
    } else {
      result.results.emplace_back(PutResult{});
    }
  }
  return result;
}

WatchEvent FromProto(etcdserverpb::Event& event) {
  WatchEvent out;
  out.type = event.type() == etcdserverpb::Event::PUT ? WatchEvent::Type::kPut : WatchEvent::Type::kDelete;
  out.kv = FromProto(*event.mutable_kv());
  if (event.has_prev_kv()) out.previous = FromProto(*event.mutable_prev_kv());
  return out;
}

}  // namespace trainyard::kv
