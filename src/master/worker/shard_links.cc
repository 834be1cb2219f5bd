#include "master/worker/shard_links.h"

#include <algorithm>
#include <future>
#include <map>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "graph/ir/validate.h"
#include "graph/kernel/sparse.h"
#include "master/worker/transfers.h"

namespace trainyard::master {
namespace {

using graph::SparseRows;
using graph::Tensor;
using Answer = std::future<absl::StatusOr<Reply>>;

graph::Dims DimsOf(const google::protobuf::RepeatedField<std::int64_t>& sizes) {
  graph::Dims dims;
  for (const std::int64_t size : sizes) dims.Append(size);
  return dims;
}

// Whether there can be a variable of these dims at all.
bool ArePossible(const google::protobuf::RepeatedField<std::int64_t>& sizes) {
  constexpr std::int64_t kMostElements = std::int64_t{1} << 34;
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) {
    if (size <= 0 || count > kMostElements / size) return false;
    count *= size;
  }
  return sizes.size() <= graph::kMaxRank;
}

// Calls `start` with what takes the answer.
Answer Begin(const std::function<void(Link::Done)>& start) {
  auto promise = std::make_shared<std::promise<absl::StatusOr<Reply>>>();
  Answer answer = promise->get_future();
  start([promise](absl::StatusOr<Reply> reply) { promise->set_value(std::move(reply)); });
  return answer;
}

// Rows [first, first + count) under numbers that begin with 0.
SparseRows CutRows(const SparseRows& rows, std::int64_t first, std::int64_t count) {
  SparseRows cut{.height = count};
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    if (rows.rows[i] < first || rows.rows[i] >= first + count) continue;
    cut.rows.push_back(rows.rows[i] - first);
    places.push_back(i);
  }
  graph::Dims dims = rows.value.dims();
  dims[0] = static_cast<std::int64_t>(places.size());
  cut.value = Tensor(rows.value.type(), dims);
  const std::int64_t width = graph::WidthOf(rows);
  for (std::size_t i = 0; i < places.size(); ++i) {
    std::copy_n(rows.value.data<float>() + static_cast<std::int64_t>(places[i]) * width, width,
                cut.value.data<float>() + static_cast<std::int64_t>(i) * width);
  }
  return cut;
}

graph::Value CutValue(const graph::Value& value, const wire::Variable& wanted) {
  if (!wanted.has_slice()) return value;
  const graph::Dims dims = DimsOf(wanted.dims());
  if (const auto* const rows = std::get_if<SparseRows>(&value)) {
    const std::int64_t width = std::max<std::int64_t>(dims.Count(1, dims.rank()), 1);
    return CutRows(*rows, wanted.slice().offset() / width, dims[0]);
  }
  return std::get<Tensor>(value).Part(wanted.slice().offset(), dims);
}

}  // namespace

NamedValues CutGradients(const NamedValues& gradients, const std::vector<wire::Variable>& wanted) {
  NamedValues cut;
  for (const wire::Variable& one : wanted) {
    const std::string& of = one.has_slice() ? one.slice().of() : one.name();
    const auto found = std::ranges::find_if(gradients, [&](const auto& value) { return value.first == of; });
    if (found != gradients.end()) cut.emplace_back(one.name(), CutValue(found->second, one));
  }
  return cut;
}

absl::Status ModelParts::Add(const google::protobuf::RepeatedPtrField<wire::Variable>& heads,
                             NamedValues values) {
  for (int i = 0; i < heads.size(); ++i) {
    const wire::Variable& head = heads[i];
    auto& part = std::get<Tensor>(values[static_cast<std::size_t>(i)].second);
    if (!head.has_slice()) {
      whole_[head.name()] = std::move(part);
      continue;
    }
    if (!ArePossible(head.slice().whole()))
      return absl::InvalidArgumentError(StrCat(Shortened(Escaped(head.name()), 128), " has absurd dims"));
    const graph::Dims dims = DimsOf(head.slice().whole());
    const auto [found, made] = whole_.try_emplace(head.slice().of(), part.type(), dims);
    Tensor& whole = found->second;
    if (whole.dims() != dims || whole.type() != part.type() || head.slice().offset() < 0 ||
        head.slice().offset() > whole.count() - part.count())
      return absl::InvalidArgumentError(StrCat(head.name(), " does not fit into ", head.slice().of()));
    const std::size_t size = graph::SizeOf(part.type());
    std::copy_n(static_cast<const char*>(part.raw()), part.bytes(),
                static_cast<char*>(whole.raw()) + static_cast<std::size_t>(head.slice().offset()) * size);
  }
  return absl::OkStatus();
}

NamedValues ModelParts::Take() {
  NamedValues values;
  for (auto& [name, tensor] : whole_) values.emplace_back(name, std::move(tensor));
  whole_.clear();
  return values;
}

absl::Status ShardLinks::Connect(std::int64_t generation, const std::vector<std::string>& addresses) {
  Peers peers{.generation = generation};
  for (const std::string& address : addresses) {
    absl::StatusOr<std::unique_ptr<Link>> link = Link::Connect({.address = address,
                                                                .token = options_.token,
                                                                .worker = options_.worker,
                                                                .incarnation = options_.incarnation,
                                                                .pod = options_.pod,
                                                                .patience = options_.patience});
    if (!link.ok()) return Lost(link.status());
    peers.links.push_back(*std::move(link));
  }
  wanted_.clear();
  const MutexLock lock(mu_);
  peers_ = std::move(peers);
  return absl::OkStatus();
}

bool ShardLinks::connected() const { return Now().generation != 0; }

ShardLinks::Peers ShardLinks::Now() const {
  const MutexLock lock(mu_);
  return peers_;
}

void ShardLinks::Drop(std::int64_t generation) {
  Peers dropped;
  {
    const MutexLock lock(mu_);
    if (generation != 0 && peers_.generation == generation) return;
    dropped = std::exchange(peers_, {});
  }
  for (const auto& link : dropped.links) link->Stop();
}

absl::Status ShardLinks::Lost(const absl::Status& why) {
  Drop(0);
  return absl::AbortedError(why.message());
}

absl::StatusOr<PulledModel> ShardLinks::Pull(std::int64_t version) {
  const Peers peers = Now();
  if (peers.generation == 0) return absl::AbortedError("the pservers are not known");
  std::vector<Answer> answers;
  for (const auto& link : peers.links) {
    wire::Request request;
    request.mutable_pull()->set_version(version);
    request.mutable_pull()->set_generation(peers.generation);
    answers.push_back(Begin([&](Link::Done done) { link->Start(std::move(request), {}, std::move(done)); }));
  }
  PulledModel model{.generation = peers.generation, .version = INT64_MAX};
  ModelParts parts;
  std::vector<std::vector<wire::Variable>> wanted;
  absl::Status wrong;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const absl::StatusOr<Reply> reply = answers[i].get();
    if (wrong.ok()) wrong = reply.status();
    if (!wrong.ok()) continue;  // all that was asked for is waited for
    const wire::Pulled& pulled = reply->head.pulled();
    absl::StatusOr<NamedValues> values = CollectValues(*peers.links[i], pulled, reply->message);
    wrong = values.ok() ? parts.Add(pulled.variables(), *std::move(values)) : values.status();
    model.version = std::min(model.version, pulled.version());
    wanted.emplace_back(pulled.gradients().begin(), pulled.gradients().end());
  }
  if (!wrong.ok()) return Lost(wrong);
  wanted_ = std::move(wanted);
  model.values = parts.Take();
  return model;
}

absl::StatusOr<wire::GradientName> ShardLinks::Push(const WorkerTrainer::Gradient& gradient) {
  const Peers peers = Now();
  if (peers.generation == 0 || wanted_.size() != peers.links.size())
    return absl::AbortedError("the pservers are not known");
  wire::GradientName name;
  name.set_incarnation(options_.incarnation);
  name.set_sequence(++sequence_);
  std::vector<Answer> answers;
  std::vector<NamedValues> parts;  // links read them until they have answered
  parts.reserve(peers.links.size());
  for (std::size_t i = 0; i < peers.links.size(); ++i) {
    const NamedValues& part = parts.emplace_back(CutGradients(gradient.values, wanted_[i]));
    const auto fill = [&](wire::Request& request, std::int64_t offset, std::int64_t total) {
      wire::Push& push = *request.mutable_push();
      *push.mutable_name() = name;
      push.set_generation(gradient.generation);
      push.set_offset(offset);
      push.set_total(total);
      if (offset > 0) return;
      for (const auto& [variable, value] : part) *push.add_variables() = HeadOf(variable, value);
    };
    answers.push_back(
        Begin([&](Link::Done done) { SendValues(*peers.links[i], part, fill, std::move(done)); }));
  }
  absl::Status wrong;
  for (Answer& answer : answers) {
    const absl::StatusOr<Reply> reply = answer.get();
    if (wrong.ok()) wrong = reply.status();
  }
  if (!wrong.ok()) return absl::IsInvalidArgument(wrong) ? wrong : Lost(wrong);
  return name;
}

}  // namespace trainyard::master
