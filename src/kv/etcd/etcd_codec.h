// Pure: requests and results to and from etcd's wire messages.
#pragma once

#include "kv/etcd/etcd.pb.h"
#include "kv/store.h"

namespace trainyard::kv {

// Any message with a key and a range_end.
template <typename Message>
void SetRange(const KeyRange& range, Message& message) {
  if (range.Empty()) {  // which etcd would in part understand as one key, or as all
    message.set_key("b");
    message.set_range_end("a");
    return;
  }
  if (const auto key = range.AsKey()) {
    message.set_key(std::string(*key));
    return;
  }
  // To etcd a lone zero byte means "no end", and as a key "from the very first"; no key can be empty.
  message.set_key(range.begin.empty() ? std::string(1, '\0') : range.begin);
  message.set_range_end(range.end ? *range.end : std::string(1, '\0'));
}

etcdserverpb::RangeRequest ToProto(const RangeRequest& request);
etcdserverpb::PutRequest ToProto(const PutOp& put);
etcdserverpb::DeleteRangeRequest ToProto(const DeleteOp& del);
etcdserverpb::TxnRequest ToProto(const TxnRequest& request);

KeyValue FromProto(etcdserverpb::KeyValue& kv);  // moves the strings out
RangeResult FromProto(etcdserverpb::RangeResponse& response);
TxnResult FromProto(etcdserverpb::TxnResponse& response);
WatchEvent FromProto(etcdserverpb::Event& event);

}  // namespace trainyard::kv
