#include "graph/build/builder.h"

#include <cmath>
#include <utility>

#include "base/philox.h"
#include "base/status.h"
#include "base/text.h"
#include "graph/ir/validate.h"
#include "graph/ir/wrong.h"

namespace trainyard::graph {
namespace {

// How many inputs and outputs one number of the tensor connects.
std::pair<double, double> Fans(const Dims& dims) {
  if (dims.rank() < 2) return {static_cast<double>(dims.Count()), static_cast<double>(dims.Count())};
  const auto field = static_cast<double>(dims.Count(2, dims.rank()));
  // A filter is [out, in, ...], a weight is [in, out].
  const bool filter = dims.rank() > 2;
  const auto in = static_cast<double>(dims[filter ? 1 : 0]) * field;
  const auto out = static_cast<double>(dims[filter ? 0 : 1]) * field;
  return {in, out};
}

}  // namespace

Builder::Builder(const std::string& name, BuilderOptions options) : seed_(options.seed) {
  if (!IsName(name))
    Fail(Wrong("a program cannot be called \"", Escaped(name), "\": use letters, digits and -_."));
  programs_.main.id = StrCat(name, ".main");
  programs_.startup.id = StrCat(name, ".startup");
  programs_.main.seed = seed_;
  programs_.startup.seed = seed_;
}

void Builder::Fail(absl::Status status) {
  if (status_.ok()) status_ = std::move(status);
}

std::string Builder::NewName(std::string_view stem) {
  auto [found, unused] = stems_.try_emplace(std::string(stem), 0);
  return StrCat(stem, "_", found->second++);
}

const VarType* Builder::TypeOf(const Ref& variable) {
  if (!status_.ok()) return nullptr;
  const Var* var = Find(variable);
  if (var == nullptr)
    Fail(Wrong("there is no variable \"", Escaped(variable.name), "\" in ", programs_.main.id));
  return var == nullptr ? nullptr : &var->type;
}

Ref Builder::AddOp(Op op, std::string_view slot, std::string_view stem) {
  if (!status_.ok()) return {};
  if (minimized_) {
    Fail(Wrong(op.type, " comes after minimize: build the whole network first"));
    return {};
  }
  Ref out{NewName(stem)};
  op.outputs[std::string(slot)] = {out.name};
  if (absl::Status appended = AppendOp(programs_.main, 0, std::move(op)); !appended.ok()) {
    Fail(std::move(appended));
    return {};
  }
  return out;
}

Ref Builder::Data(std::string_view name, const Dims& item, DataType type) {
  if (!status_.ok()) return {};
  if (!IsName(name) || Find({std::string(name)}) != nullptr) {
    Fail(Wrong("data: the name \"", Escaped(name), "\" is taken or no name"));
    return {};
  }
  Dims dims = {kUnknownDim};
  for (const std::int64_t size : item) dims.Append(size);
  programs_.main.main().vars.push_back(
      {.name = std::string(name), .type = {.data_type = type, .dims = dims}, .stop_gradient = true});
  return {std::string(name)};
}

std::vector<Ref> Builder::Read(const ReadOptions& options) {
  std::vector<Ref> refs;
  Op op{.type = "read",
        .attrs = {{"sources", options.sources},
                  {"format", options.format},
                  {"batch_size", options.batch_size},
                  {"shuffle_seed", static_cast<std::int64_t>(options.shuffle_seed)},
                  {"skip_header", options.skip_header}}};
  Strings shapes;
  Strings types;
  Ints sources_of;
  Ints begins;
  Floats scales;
  for (const Field& field : options.fields) {
    refs.push_back(Data(field.name, field.item, field.type));
    std::string shape;
    for (const std::int64_t size : field.item) StrAppend(shape, shape.empty() ? "" : "x", size);
    shapes.push_back(shape);
    types.emplace_back(Name(field.type));
    if (field.source < 0 || static_cast<std::size_t>(field.source) >= options.sources.size()) {
      Fail(Wrong("read: field ", field.name, " comes from source ", field.source, ", and there are ",
                 options.sources.size()));
    }
    sources_of.push_back(field.source);
    begins.push_back(field.begin);
    scales.push_back(field.scale);
    op.outputs["Out"].push_back(field.name);
  }
  op.attrs["shapes"] = shapes;
  op.attrs["types"] = types;
  op.attrs["sources_of"] = sources_of;
  op.attrs["begins"] = begins;
  op.attrs["scales"] = scales;
  if (!status_.ok()) return std::vector<Ref>(options.fields.size());
  if (options.fields.empty())
    Fail(Wrong("read: it has no fields"));
  else if (absl::Status appended = AppendOp(programs_.main, 0, std::move(op)); !appended.ok())
    Fail(std::move(appended));
  return refs;
}

Op Builder::InitialOp(const std::string& name, const Dims& dims, const Initializer& initializer) {
  Op op{.outputs = {{"Out", {name}}}, .attrs = {{"shape", Ints(dims.begin(), dims.end())}}};
  // Each initialiser has a seed of its own, or equal shapes would begin equal.
  ++initializers_;
  const auto seed_of = [&](std::uint64_t given) {
    if (given != 0) return static_cast<std::int64_t>(given);
    const auto words = Philox(seed_, 1, initializers_);
    return static_cast<std::int64_t>((((std::uint64_t{words[0]} << 32) | words[1]) >> 1) | 1);
  };
  const auto uniform = [&](double min, double max, std::uint64_t seed) {
    op.type = "uniform_random";
    op.attrs.insert({{"min", min}, {"max", max}, {"seed", seed_of(seed)}});
  };
  const auto normal = [&](double mean, double deviation, std::uint64_t seed) {
    op.type = "gaussian_random";
    op.attrs.insert({{"mean", mean}, {"std", deviation}, {"seed", seed_of(seed)}});
  };
  const auto scaled = [&](double fan, bool is_uniform, std::uint64_t seed) {
    if (is_uniform) return uniform(-std::sqrt(6 / fan), std::sqrt(6 / fan), seed);
    normal(0, std::sqrt(2 / fan), seed);
  };
  const auto [fan_in, fan_out] = Fans(dims);
  if (const auto* constant = std::get_if<Constant>(&initializer)) {
    op.type = "fill_constant";
    op.attrs["value"] = constant->value;
  } else if (const auto* range = std::get_if<Uniform>(&initializer)) {
    uniform(range->min, range->max, range->seed);
  } else if (const auto* bell = std::get_if<Normal>(&initializer)) {
    normal(bell->mean, bell->deviation, bell->seed);
  } else if (const auto* xavier = std::get_if<Xavier>(&initializer)) {
    scaled(fan_in + fan_out, xavier->uniform, xavier->seed);
  } else if (const auto* msra = std::get_if<Msra>(&initializer)) {
    scaled(fan_in, msra->uniform, msra->seed);
  } else {
    const std::vector<float>& values = std::get<Values>(initializer).values;
    op.type = "assign_value";
    op.attrs["values"] = Floats(values.begin(), values.end());
  }
  return op;
}

Ref Builder::Keep(const std::string& name, const Dims& dims, const Initializer& initializer) {
  if (!status_.ok()) return {};
  for (Program* program : {&programs_.main, &programs_.startup}) {
    program->main().vars.push_back(
        {.name = name, .type = {.dims = dims}, .persistable = true, .stop_gradient = true});
  }
  if (absl::Status appended = AppendOp(programs_.startup, 0, InitialOp(name, dims, initializer));
      !appended.ok()) {
    Fail(Annotate(appended, StrCat("parameter ", name)));
    return {};
  }
  return {name};
}

Ref Builder::MakeParameter(std::string_view stem, const Dims& dims, const ParameterOptions& options,
                           const Initializer& standard) {
  if (!status_.ok()) return {};
  const std::string name = options.name.empty() ? NewName(stem) : options.name;
  if (const Var* shared = Find({name})) {
    if (shared->parameter && shared->type.dims == dims) return {name};
    Fail(Wrong("parameter ", Escaped(name), ": the name is taken by a variable of another shape, ",
               Print(shared->type)));
    return {};
  }
  if (!IsName(name)) {
    Fail(Wrong("\"", Escaped(name), "\" is no name for a parameter"));
    return {};
  }
  for (const std::int64_t size : dims) {
    if (size < 1) {
      Fail(Wrong("parameter ", name, " cannot be ", Print(dims), ": each dim must be known and above 0"));
      return {};
    }
  }
  const Ref made = Keep(name, dims, options.initializer ? *options.initializer : standard);
  if (!status_.ok()) return {};
  for (Program* program : {&programs_.main, &programs_.startup}) {
    Var* var = program->main().Find(name);
    var->parameter = true;
    var->stop_gradient = !options.trainable;
  }
  wishes_[name] = options.wishes;
  return made;
}

Ref Builder::Parameter(const Dims& dims, const ParameterOptions& options) {
  return MakeParameter("param", dims, options, Xavier());
}

Ref Builder::Biased(const Ref& input, std::int64_t axis, std::string_view stem, bool with_bias,
                    const ParameterOptions& options) {
  const VarType* type = TypeOf(input);
  if (!with_bias || type == nullptr) return input;
  const std::int64_t size = type->dims[static_cast<int>(axis)];
  const Ref bias = MakeParameter(StrCat(stem, ".b"), {size}, options, Constant());
  return Elementwise("elementwise_add", input, bias, axis);
}

Ref Builder::Activated(const Ref& input, const std::string& activation) {
  return activation.empty() ? input : Activation(input, activation);
}

Ref Builder::Elementwise(std::string type, const Ref& a, const Ref& b, std::int64_t axis) {
  const std::string stem = type;
  return AddOp(
      {.type = std::move(type), .inputs = {{"X", {a.name}}, {"Y", {b.name}}}, .attrs = {{"axis", axis}}},
      "Out", stem);
}

Ref Builder::Fc(const Ref& input, std::int64_t size, const FcOptions& options) {
  return Fc(std::vector<Ref>{input}, size, options);
}

Ref Builder::Fc(const std::vector<Ref>& inputs, std::int64_t size, const FcOptions& options) {
  const std::string stem = NewName("fc");
  std::vector<std::string> products;
  for (const Ref& input : inputs) {
    const VarType* type = TypeOf(input);
    if (type == nullptr) return {};
    const int flatten = options.num_flatten_dims;
    if (flatten < 1 || flatten >= type->dims.rank()) {
      Fail(Wrong("fc: num_flatten_dims is ", flatten, " and ", input.name, " is ", Print(*type)));
      return {};
    }
    const Dims columns = type->dims.Part(flatten, type->dims.rank());
    ParameterOptions weight = options.weight;
    if (inputs.size() > 1 && !weight.name.empty()) StrAppend(weight.name, ".", products.size());
    const Ref w = MakeParameter(StrCat(stem, ".w"), {columns.Known() ? columns.Count() : kUnknownDim, size},
                                weight, Xavier());
    products.push_back(AddOp({.type = "mul",
                              .inputs = {{"X", {input.name}}, {"Y", {w.name}}},
                              .attrs = {{"x_num_col_dims", std::int64_t{flatten}}}},
                             "Out", StrCat(stem, ".tmp"))
                           .name);
  }
  if (products.empty()) Fail(Wrong("fc: it has no input"));
  if (!status_.ok()) return {};
  Ref out{products.front()};
  if (products.size() > 1)
    out = AddOp({.type = "sum", .inputs = {{"X", products}}}, "Out", StrCat(stem, ".tmp"));
  out = Biased(out, options.num_flatten_dims, stem, options.with_bias, options.bias);
  return Activated(out, options.activation);
}

Ref Builder::Embedding(const Ref& ids, std::int64_t rows, std::int64_t width,
                       const EmbeddingOptions& options) {
  if (options.distributed && !options.sparse)
    Fail(Wrong("embedding: a distributed table must be sparse too"));
  const Ref table =
      MakeParameter(StrCat(NewName("embedding"), ".w"), {rows, width}, options.weight, Xavier());
  return AddOp({.type = "lookup_table",
                .inputs = {{"W", {table.name}}, {"Ids", {ids.name}}},
                .attrs = {{"is_sparse", options.sparse},
                          {"is_distributed", options.distributed},
                          {"padding_idx", options.padding_id}}},
               "Out", "embedding.tmp");
}

Ref Builder::Conv2d(const Ref& input, std::int64_t filters, std::int64_t size, const Conv2dOptions& options) {
  const VarType* type = TypeOf(input);
  if (type == nullptr) return {};
  if (type->dims.rank() != 4 || options.groups < 1 || type->dims[1] % options.groups != 0) {
    Fail(Wrong("conv2d: the input must be [batch, channels, height, width] with channels for ",
               options.groups, " groups, and is ", Print(*type)));
    return {};
  }
  const std::string stem = NewName("conv2d");
  const Ref filter = MakeParameter(StrCat(stem, ".w"), {filters, type->dims[1] / options.groups, size, size},
                                   options.filter, Msra());
  const Ref out = AddOp({.type = "conv2d",
                         .inputs = {{"Input", {input.name}}, {"Filter", {filter.name}}},
                         .attrs = {{"strides", Ints(2, options.stride)},
                                   {"paddings", Ints(2, options.padding)},
                                   {"dilations", Ints(2, options.dilation)},
                                   {"groups", options.groups}}},
                        "Output", StrCat(stem, ".tmp"));
  return Activated(Biased(out, 1, stem, options.with_bias, options.bias), options.activation);
}

Ref Builder::Pool2d(const Ref& input, const Pool2dOptions& options) {
  return AddOp({.type = "pool2d",
                .inputs = {{"X", {input.name}}},
                .attrs = {{"pooling_type", options.kind},
                          {"ksize", Ints(2, options.size)},
                          {"strides", Ints(2, options.stride)},
                          {"paddings", Ints(2, options.padding)},
                          {"global_pooling", options.global}}},
               "Out", "pool2d");
}

Ref Builder::BatchNorm(const Ref& input, const BatchNormOptions& options) {
  const VarType* type = TypeOf(input);
  if (type == nullptr) return {};
  if (type->dims.rank() < 2) {
    Fail(Wrong("batch_norm: the input must be [batch, channels, ...] and is ", Print(*type)));
    return {};
  }
  const Dims dims = {type->dims[1]};
  const std::string stem = NewName("batch_norm");
  const Ref scale = MakeParameter(StrCat(stem, ".w"), dims, options.scale, Constant{1});
  const Ref bias = MakeParameter(StrCat(stem, ".b"), dims, options.bias, Constant{0});
  const Ref mean = Keep(StrCat(stem, ".mean"), dims, Constant{0});
  const Ref variance = Keep(StrCat(stem, ".variance"), dims, Constant{1});
  const std::string batch_mean = StrCat(stem, ".batch_mean");
  const std::string batch_variance = StrCat(stem, ".batch_variance");
  const Ref out = AddOp({.type = "batch_norm",
                         .inputs = {{"X", {input.name}},
                                    {"Scale", {scale.name}},
                                    {"Bias", {bias.name}},
                                    {"Mean", {mean.name}},
                                    {"Variance", {variance.name}}},
                         .outputs = {{"BatchMean", {batch_mean}}, {"BatchVariance", {batch_variance}}},
                         .attrs = {{"epsilon", options.epsilon}}},
                        "Y", StrCat(stem, ".tmp"));
  for (const auto& [average, batch] :
       {std::pair(mean.name, batch_mean), std::pair(variance.name, batch_variance)}) {
    averages_.push_back({.type = "moving_average",
                         .inputs = {{"Param", {average}}, {"Grad", {batch}}},
                         .outputs = {{"ParamOut", {average}}},
                         .attrs = {{"momentum", options.momentum}},
                         .role = Role::kOptimize,
                         .parameter = average});
  }
  return Activated(out, options.activation);
}

Ref Builder::Dropout(const Ref& input, double probability) {
  if (!status_.ok()) return {};
  const std::string mask = NewName("dropout.mask");
  return AddOp({.type = "dropout",
                .inputs = {{"X", {input.name}}},
                .outputs = {{"Mask", {mask}}},
                .attrs = {{"dropout_prob", probability}}},
               "Out", "dropout");
}

Ref Builder::Activation(const Ref& input, std::string_view kind) {
  for (const char* known :
       {"relu", "sigmoid", "tanh", "softmax", "leaky_relu", "square", "exp", "log", "sqrt", "abs"}) {
    if (kind == known)
      return AddOp({.type = std::string(kind), .inputs = {{"X", {input.name}}}}, "Out", kind);
  }
  Fail(Wrong("there is no activation \"", Escaped(kind),
             "\": use relu, sigmoid, tanh, softmax, leaky_relu, square, exp, log, sqrt or abs"));
  return {};
}

Ref Builder::CrossEntropy(const Ref& probabilities, const Ref& label, bool soft_label) {
  return AddOp({.type = "cross_entropy",
                .inputs = {{"X", {probabilities.name}}, {"Label", {label.name}}},
                .attrs = {{"soft_label", soft_label}}},
               "Y", "cross_entropy");
}

Ref Builder::SoftmaxWithCrossEntropy(const Ref& logits, const Ref& label, bool soft_label) {
  if (!status_.ok()) return {};
  const std::string softmax = NewName("softmax_with_cross_entropy.softmax");
  return AddOp({.type = "softmax_with_cross_entropy",
                .inputs = {{"Logits", {logits.name}}, {"Label", {label.name}}},
                .outputs = {{"Softmax", {softmax}}},
                .attrs = {{"soft_label", soft_label}}},
               "Loss", "softmax_with_cross_entropy");
}

Ref Builder::SquareErrorCost(const Ref& prediction, const Ref& target) {
  return AddOp({.type = "square_error_cost", .inputs = {{"X", {prediction.name}}, {"Y", {target.name}}}},
               "Out", "square_error_cost");
}

Ref Builder::Mean(const Ref& input) {
  return AddOp({.type = "mean", .inputs = {{"X", {input.name}}}}, "Out", "mean");
}

Ref Builder::Accuracy(const Ref& scores, const Ref& label, std::int64_t k) {
  if (!status_.ok()) return {};
  const std::string indices = NewName("top_k.indices");
  AddOp({.type = "top_k",
         .inputs = {{"X", {scores.name}}},
         .outputs = {{"Indices", {indices}}},
         .attrs = {{"k", k}}},
        "Out", "top_k");
  if (!status_.ok()) return {};
  const std::string correct = NewName("accuracy.correct");
  const std::string total = NewName("accuracy.total");
  return AddOp({.type = "accuracy",
                .inputs = {{"Indices", {indices}}, {"Label", {label.name}}},
                .outputs = {{"Correct", {correct}}, {"Total", {total}}}},
               "Accuracy", "accuracy");
}

Ref Builder::Concat(const std::vector<Ref>& inputs, std::int64_t axis) {
  Op op{.type = "concat", .attrs = {{"axis", axis}}};
  for (const Ref& input : inputs) op.inputs["X"].push_back(input.name);
  return AddOp(std::move(op), "Out", "concat");
}

Ref Builder::Reshape(const Ref& input, std::vector<std::int64_t> shape) {
  return AddOp({.type = "reshape", .inputs = {{"X", {input.name}}}, .attrs = {{"shape", std::move(shape)}}},
               "Out", "reshape");
}

Ref Builder::Scale(const Ref& input, double factor, double bias) {
  return AddOp(
      {.type = "scale", .inputs = {{"X", {input.name}}}, .attrs = {{"scale", factor}, {"bias", bias}}}, "Out",
      "scale");
}

Ref Builder::Add(const Ref& a, const Ref& b) { return Elementwise("elementwise_add", a, b, -1); }
Ref Builder::Sub(const Ref& a, const Ref& b) { return Elementwise("elementwise_sub", a, b, -1); }
Ref Builder::Mul(const Ref& a, const Ref& b) { return Elementwise("elementwise_mul", a, b, -1); }

void Builder::Output(const std::vector<Ref>& values, std::int64_t every) {
  if (!status_.ok()) return;
  if (every < 1) Fail(Wrong("output: every must be at least 1 and is ", every));
  Op op{.type = "output", .attrs = {{"every", every}}};
  for (const Ref& value : values) op.inputs["X"].push_back(value.name);
  if (absl::Status appended = AppendOp(programs_.main, 0, std::move(op)); !appended.ok())
    Fail(std::move(appended));
}

void Builder::StopGradient(const Ref& variable) {
  if (TypeOf(variable) != nullptr) programs_.main.main().Find(variable.name)->stop_gradient = true;
}

std::vector<ParameterGradient> Builder::Minimize(const Ref& loss, const Optimizer& optimizer,
                                                 const BackwardOptions& options) {
  if (minimized_) Fail(Wrong("minimize comes a second time: a program has one loss"));
  if (!status_.ok()) return {};
  minimized_ = true;
  absl::StatusOr<std::vector<ParameterGradient>> gradients =
      AppendBackward(programs_.main, loss.name, options);
  if (!gradients.ok()) {
    Fail(gradients.status());
    return {};
  }
  if (absl::Status appended =
          AppendOptimizer(programs_.main, programs_.startup, *gradients, optimizer, wishes_);
      !appended.ok()) {
    Fail(std::move(appended));
  }
  for (const Op& average : averages_) {
    if (absl::Status appended = AppendOp(programs_.main, 0, average); !appended.ok())
      Fail(std::move(appended));
  }
  return *std::move(gradients);
}

absl::StatusOr<Programs> Builder::Finish() const {
  if (!status_.ok()) return status_;
  TY_RETURN_IF_ERROR(Validate(programs_.main));
  TY_RETURN_IF_ERROR(Validate(programs_.startup));
  return programs_;
}

Program CloneForTest(const Program& main) {
  Program test = main;
  test.id = StrCat(main.id, ".test");
  std::erase_if(test.main().ops, [](const Op& op) {
    return op.role == Role::kBackward || op.role == Role::kOptimize || op.role == Role::kSchedule ||
           op.type == "read" || op.type == "output";
  });
  for (Op& op : test.main().ops) {
    if (op.attrs.contains("is_test")) op.attrs["is_test"] = true;
  }
  return test;
}

}  // namespace trainyard::graph
