// The structs of options that Python fills.
#include "casters.h"
#include "graph/pass/optimize.h"
#include "module.h"

namespace trainyard::python {
namespace {

namespace py = pybind11;
using namespace graph;

// A class that is made from the members, in the order in which they are listed.
template <typename Struct, typename... Types>
void Add(py::module_& module, const char* name, Types Struct::*... members) {
  py::class_<Struct>(module, name).def(py::init([members...](Types... values) {
    Struct made;
    ((made.*members = std::move(values)), ...);
    return made;
  }));
}

void AddInitializers(py::module_& module) {
  Add(module, "Constant", &Constant::value);
  Add(module, "Uniform", &Uniform::min, &Uniform::max, &Uniform::seed);
  Add(module, "Normal", &Normal::mean, &Normal::deviation, &Normal::seed);
  Add(module, "Xavier", &Xavier::uniform, &Xavier::seed);
  Add(module, "Msra", &Msra::uniform, &Msra::seed);
  Add(module, "Values", &Values::values);
}

void AddOptimizers(py::module_& module) {
  Add(module, "L1Decay", &L1Decay::coefficient);
  Add(module, "L2Decay", &L2Decay::coefficient);
  Add(module, "ClipByValue", &ClipByValue::min, &ClipByValue::max);
  Add(module, "ClipByNorm", &ClipByNorm::max_norm);
  Add(module, "ClipByGlobalNorm", &ClipByGlobalNorm::max_norm);
  Add(module, "ExponentialDecay", &ExponentialDecay::base, &ExponentialDecay::decay_steps,
      &ExponentialDecay::rate, &ExponentialDecay::staircase);
  Add(module, "NaturalExpDecay", &NaturalExpDecay::base, &NaturalExpDecay::decay_steps,
      &NaturalExpDecay::rate, &NaturalExpDecay::staircase);
  Add(module, "InverseTimeDecay", &InverseTimeDecay::base, &InverseTimeDecay::decay_steps,
      &InverseTimeDecay::rate, &InverseTimeDecay::staircase);
  Add(module, "PolynomialDecay", &PolynomialDecay::base, &PolynomialDecay::decay_steps, &PolynomialDecay::end,
      &PolynomialDecay::power, &PolynomialDecay::cycle);
  Add(module, "PiecewiseDecay", &PiecewiseDecay::boundaries, &PiecewiseDecay::values);
  Add<Sgd>(module, "Sgd");
  Add(module, "Momentum", &Momentum::momentum, &Momentum::nesterov);
  Add(module, "Adagrad", &Adagrad::epsilon);
  Add(module, "Adam", &Adam::beta1, &Adam::beta2, &Adam::epsilon);
  Add(module, "RmsProp", &RmsProp::rho, &RmsProp::epsilon, &RmsProp::momentum);
  Add(module, "Optimizer", &Optimizer::update, &Optimizer::rate, &Optimizer::decay, &Optimizer::clip);
  Add(module, "BackwardOptions", &BackwardOptions::parameters, &BackwardOptions::without);
}

void AddLayers(py::module_& module) {
  Add(module, "FcOptions", &FcOptions::activation, &FcOptions::num_flatten_dims, &FcOptions::weight,
      &FcOptions::with_bias, &FcOptions::bias);
  Add(module, "EmbeddingOptions", &EmbeddingOptions::sparse, &EmbeddingOptions::distributed,
      &EmbeddingOptions::padding_id, &EmbeddingOptions::weight);
  Add(module, "Conv2dOptions", &Conv2dOptions::stride, &Conv2dOptions::padding, &Conv2dOptions::dilation,
      &Conv2dOptions::groups, &Conv2dOptions::activation, &Conv2dOptions::filter, &Conv2dOptions::with_bias,
      &Conv2dOptions::bias);
  Add(module, "Pool2dOptions", &Pool2dOptions::size, &Pool2dOptions::stride, &Pool2dOptions::padding,
      &Pool2dOptions::kind, &Pool2dOptions::global);
  Add(module, "BatchNormOptions", &BatchNormOptions::activation, &BatchNormOptions::momentum,
      &BatchNormOptions::epsilon, &BatchNormOptions::scale, &BatchNormOptions::bias);
  Add(module, "Field", &Field::name, &Field::item, &Field::type, &Field::source, &Field::begin,
      &Field::scale);
  Add(module, "ReadOptions", &ReadOptions::sources, &ReadOptions::format, &ReadOptions::batch_size,
      &ReadOptions::fields, &ReadOptions::shuffle_seed, &ReadOptions::skip_header);
}

}  // namespace

void AddOptions(py::module_& module) {
  AddInitializers(module);
  AddOptimizers(module);
  Add(module, "ParameterWishes", &ParameterWishes::rate, &ParameterWishes::decay, &ParameterWishes::clip);
  Add(module, "ParameterOptions", &ParameterOptions::name, &ParameterOptions::initializer,
      &ParameterOptions::wishes, &ParameterOptions::trainable);
  AddLayers(module);
}

}  // namespace trainyard::python
