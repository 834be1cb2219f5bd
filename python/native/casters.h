// Small values of the graph as Python knows them: dims are lists, types and variables are their names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "base/text.h"
#include "errors.h"
#include "graph/build/builder.h"
#include "graph/ir/types.h"

namespace pybind11::detail {

template <>
struct type_caster<trainyard::graph::Dims> {
  PYBIND11_TYPE_CASTER(trainyard::graph::Dims, const_name("Sequence[int]"));

  bool load(handle source, bool convert) {
    make_caster<std::vector<std::int64_t>> sizes;
    if (!sizes.load(source, convert)) return false;
    value = trainyard::graph::Dims(cast_op<std::vector<std::int64_t>&>(sizes));
    return true;
  }
  static handle cast(const trainyard::graph::Dims& dims, return_value_policy policy, handle parent) {
    const std::vector<std::int64_t> sizes(dims.begin(), dims.end());
    return make_caster<std::vector<std::int64_t>>::cast(sizes, policy, parent);
  }
};

template <>
struct type_caster<trainyard::graph::DataType> {
  PYBIND11_TYPE_CASTER(trainyard::graph::DataType, const_name("str"));

  bool load(handle source, bool convert) {
    make_caster<std::string> loaded;
    if (!loaded.load(source, convert)) return false;
    const auto& text = cast_op<const std::string&>(loaded);
    const std::optional<trainyard::graph::DataType> type = trainyard::graph::ParseDataType(text);
    if (!type) {
      trainyard::python::Raise(absl::InvalidArgumentError(
          trainyard::StrCat("there is no type \"", trainyard::Escaped(text), "\": use f32, i64 or bool")));
    }
    value = *type;
    return true;
  }
  static handle cast(trainyard::graph::DataType type, return_value_policy policy, handle parent) {
    return make_caster<std::string_view>::cast(trainyard::graph::Name(type), policy, parent);
  }
};

template <>
struct type_caster<trainyard::graph::Ref> {
  PYBIND11_TYPE_CASTER(trainyard::graph::Ref, const_name("str"));

  bool load(handle source, bool convert) {
    make_caster<std::string> loaded;
    if (!loaded.load(source, convert)) return false;
    value.name = cast_op<std::string&>(loaded);
    return true;
  }
  static handle cast(const trainyard::graph::Ref& ref, return_value_policy policy, handle parent) {
    return make_caster<std::string>::cast(ref.name, policy, parent);
  }
};

}  // namespace pybind11::detail
