// The Builder for Python, where a call that cannot be done is told at once and leaves no trace.
#include <concepts>
#include <functional>
#include <set>
#include <type_traits>
#include <utility>

#include "casters.h"
#include "module.h"

namespace trainyard::python {
namespace {

namespace py = pybind11;
using namespace graph;

// A Builder that has failed stays so. What was done is therefore remembered, and done again on a new one
// without the call that failed: whoever builds a network line by line can mend the last line and go on.
class Net {
 public:
  Net(std::string name, std::uint64_t seed) : name_(std::move(name)), seed_(seed), builder_(New()) {
    Check(builder_.status());
  }

  template <typename Call>
  std::invoke_result_t<Call, Builder&> Do(Call call) {
    if constexpr (std::is_void_v<std::invoke_result_t<Call, Builder&>>) {
      call(builder_);
      Settle(std::move(call));
    } else {
      auto result = call(builder_);
      Settle(std::move(call));
      return result;
    }
  }

  const Builder& builder() const { return builder_; }

 private:
  Builder New() const { return Builder(name_, {.seed = seed_}); }

  void Settle(std::function<void(Builder&)> call) {
    if (builder_.status().ok()) {
      done_.push_back(std::move(call));
      return;
    }
    absl::Status failed = builder_.status();
    builder_ = New();
    for (const auto& again : done_) again(builder_);
    Raise(std::move(failed));
  }

  const std::string name_;
  const std::uint64_t seed_;
  Builder builder_;
  std::vector<std::function<void(Builder&)>> done_;
};

// An argument as it can be kept.
template <typename T>
using Kept =
    std::conditional_t<std::same_as<std::decay_t<T>, std::string_view>, std::string, std::decay_t<T>>;

template <auto kMethod, typename Result, typename... Arguments>
auto Remembered(Result (Builder::*)(Arguments...)) {
  return [](Net& net, const Kept<Arguments>&... arguments) {
    return net.Do([arguments...](Builder& builder) -> Result { return (builder.*kMethod)(arguments...); });
  };
}
// The method of a Net that does what the Builder's does.
template <auto kMethod>
auto Remembered() {
  return Remembered<kMethod>(kMethod);
}

constexpr Ref (Builder::*kFc)(const std::vector<Ref>&, std::int64_t, const FcOptions&) = &Builder::Fc;

std::vector<std::pair<std::string, std::string>> Minimize(Net& net, const Ref& loss,
                                                          const Optimizer& optimizer,
                                                          const BackwardOptions& options) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (ParameterGradient& pair :
       net.Do([=](Builder& builder) { return builder.Minimize(loss, optimizer, options); })) {
    pairs.emplace_back(std::move(pair.parameter), std::move(pair.gradient));
  }
  return pairs;
}

std::pair<DataType, Dims> TypeOf(const Net& net, const Ref& variable) {
  const Var* var = net.builder().Find(variable);
  if (var == nullptr)
    Raise(absl::NotFoundError(StrCat("there is no variable \"", Escaped(variable.name), "\"")));
  return {var->type.data_type, var->type.dims};
}

std::pair<std::shared_ptr<Program>, std::shared_ptr<Program>> Finish(const Net& net) {
  Programs programs = Take(net.builder().Finish());
  return {std::make_shared<Program>(std::move(programs.main)),
          std::make_shared<Program>(std::move(programs.startup))};
}

}  // namespace

void AddNet(py::module_& module) {
  py::class_<Net>(module, "Net")
      .def(py::init<std::string, std::uint64_t>())
      .def("data", Remembered<&Builder::Data>())
      .def("read", Remembered<&Builder::Read>())
      .def("fc", Remembered<kFc>())
      .def("embedding", Remembered<&Builder::Embedding>())
      .def("conv2d", Remembered<&Builder::Conv2d>())
      .def("pool2d", Remembered<&Builder::Pool2d>())
      .def("batch_norm", Remembered<&Builder::BatchNorm>())
      .def("dropout", Remembered<&Builder::Dropout>())
      .def("activation", Remembered<&Builder::Activation>())
      .def("cross_entropy", Remembered<&Builder::CrossEntropy>())
      .def("softmax_with_cross_entropy", Remembered<&Builder::SoftmaxWithCrossEntropy>())
      .def("square_error_cost", Remembered<&Builder::SquareErrorCost>())
      .def("mean", Remembered<&Builder::Mean>())
      .def("accuracy", Remembered<&Builder::Accuracy>())
      .def("concat", Remembered<&Builder::Concat>())
      .def("reshape", Remembered<&Builder::Reshape>())
      .def("scale", Remembered<&Builder::Scale>())
      .def("add", Remembered<&Builder::Add>())
      .def("sub", Remembered<&Builder::Sub>())
      .def("mul", Remembered<&Builder::Mul>())
      .def("parameter", Remembered<&Builder::Parameter>())
      .def("output", Remembered<&Builder::Output>())
      .def("stop_gradient", Remembered<&Builder::StopGradient>())
      .def("minimize", &Minimize)
      .def("type_of", &TypeOf)
      .def("finish", &Finish);
}

}  // namespace trainyard::python
