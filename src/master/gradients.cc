#include "master/gradients.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "graph/kernel/sparse.h"

namespace trainyard::master {
namespace {

using graph::SparseRows;
using graph::Tensor;
using graph::Value;

Tensor& ElementsOf(Value& value) {
  auto* const rows = std::get_if<SparseRows>(&value);
  return rows != nullptr ? rows->value : std::get<Tensor>(value);
}

void Scale(Value& value, float factor) {
  for (float& element : ElementsOf(value).span<float>()) element *= factor;
}

void AddScaled(const Tensor& from, float factor, Tensor& to) {
  TY_CHECK(from.count() == to.count(), "gradients of one variable have one shape");
  const float* const in = from.data<float>();
  float* const out = to.data<float>();
  for (std::int64_t i = 0; i < from.count(); ++i) out[i] += factor * in[i];
}

// Behind each other: a row that comes twice counts twice.
void Join(SparseRows& to, const SparseRows& from) {
  const std::int64_t before = to.value.count();
  graph::Dims dims = to.value.dims();
  dims[0] += from.value.dims()[0];
  Tensor both(to.value.type(), dims);
  std::copy_n(std::as_const(to.value).data<float>(), before, both.data<float>());
  std::copy_n(from.value.data<float>(), from.value.count(), both.data<float>() + before);
  to.value = std::move(both);
  to.rows.insert(to.rows.end(), from.rows.begin(), from.rows.end());
}

Tensor Dense(const SparseRows& rows) {
  Tensor whole(rows.value.type(), rows.WholeDims());
  graph::AddRowsTo(rows, whole);
  return whole;
}

void AddTo(Value& sum, Value value, float weight) {
  if (auto* const rows = std::get_if<SparseRows>(&value)) {
    Scale(value, weight);
    if (auto* const others = std::get_if<SparseRows>(&sum)) return Join(*others, *rows);
    return graph::AddRowsTo(*rows, std::get<Tensor>(sum));
  }
  if (const auto* const rows = std::get_if<SparseRows>(&sum)) sum = Dense(*rows);
  AddScaled(std::get<Tensor>(value), weight, std::get<Tensor>(sum));
}

}  // namespace

void GradientSum::Add(Gradients gradients, std::int64_t records) {
  if (reports_++ == 0) {
    records_ = records;
    sum_ = std::move(gradients);
    return;
  }
  if (reports_ == 2) {
    for (auto& [name, value] : sum_) Scale(value, static_cast<float>(records_));
  }
  records_ += records;
  const auto weight = static_cast<float>(records);
  for (auto& [name, value] : gradients) {
    const auto found = sum_.find(name);
    if (found != sum_.end()) {
      AddTo(found->second, std::move(value), weight);
    } else {
      Scale(value, weight);
      sum_.emplace(name, std::move(value));
    }
  }
}

Gradients GradientSum::TakeMean() {
  Gradients mean = std::move(sum_);
  if (reports_ > 1) {
    for (auto& [name, value] : mean) Scale(value, 1.0F / static_cast<float>(records_));
  }
  *this = GradientSum();
  return mean;
}

}  // namespace trainyard::master
