// Writes programs: a user says which layers there are, and gets a main program that trains and a startup
// program that initialises.
//
//   Builder net("mnist", {.seed = 7});
//   const Ref image = net.Data("image", {784});
//   const Ref label = net.Data("label", {1}, DataType::kInt64);
//   const Ref hidden = net.Fc(image, 128, {.activation = "relu"});
//   const Ref loss = net.Mean(net.SoftmaxWithCrossEntropy(net.Fc(hidden, 10), label));
//   net.Minimize(loss, {.update = Adam(), .rate = 0.001});
//   absl::StatusOr<Programs> programs = net.Finish();
//
// A call that cannot be done is remembered: the ones after it do nothing, and Finish() tells the first error.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/ir/program.h"
#include "graph/pass/optimize.h"

namespace trainyard::graph {

// A variable of the program that is being built.
struct Ref {
  std::string name;
};

struct Constant {
  double value = 0;
};
struct Uniform {
  double min = -1;
  double max = 1;
  std::uint64_t seed = 0;  // 0: one of its own, from the builder's
};
struct Normal {
  double mean = 0;
  double deviation = 1;
  std::uint64_t seed = 0;
};
// Uniform in +-sqrt(6 / (fan_in + fan_out)), or normal with the variance of that.
struct Xavier {
  bool uniform = true;
  std::uint64_t seed = 0;
};
// As Xavier, by fan_in alone: for what a relu follows.
struct Msra {
  bool uniform = true;
  std::uint64_t seed = 0;
};
struct Values {
  std::vector<float> values;
};
using Initializer = std::variant<Constant, Uniform, Normal, Xavier, Msra, Values>;

struct ParameterOptions {
  std::string name;                        // "": one is made up
  std::optional<Initializer> initializer;  // none: the layer's own
  ParameterWishes wishes;
  bool trainable = true;
};

struct FcOptions {
  std::string activation;  // "", "relu", "sigmoid", "tanh", "softmax", "leaky_relu"
  int num_flatten_dims = 1;
  ParameterOptions weight;
  bool with_bias = true;
  ParameterOptions bias;
};
struct EmbeddingOptions {
  bool sparse = false;       // the gradient is of the rows that were looked up
  bool distributed = false;  // the table lies on the pservers, row by row; it must be sparse
  std::int64_t padding_id = -1;
  ParameterOptions weight;
};
struct Conv2dOptions {
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t dilation = 1;
  std::int64_t groups = 1;
  std::string activation;
  ParameterOptions filter;
  bool with_bias = true;
  ParameterOptions bias;
};
struct Pool2dOptions {
  std::int64_t size = 2;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::string kind = "max";  // or "avg"
  bool global = false;
};
struct BatchNormOptions {
  std::string activation;
  double momentum = 0.9;
  double epsilon = 1e-5;
  ParameterOptions scale;
  ParameterOptions bias;
};

// One field of a record, and where it comes from.
struct Field {
  std::string name;
  Dims item;  // without the batch
  DataType type = DataType::kFloat32;
  int source = 0;           // which of the reader's sources
  std::int64_t begin = -1;  // its first column (CSV) or byte; -1: behind the field before it
  double scale = 1;         // what each number is multiplied by
};
struct ReadOptions {
  std::vector<std::string>
      sources;  // each of files, folders or globs, by commas; their records go together by number
  std::string format = "auto";  // recordio, csv, idx
  std::int64_t batch_size = 1;
  std::vector<Field> fields;
  std::uint64_t shuffle_seed = 0;  // 0: in the order of the files
  bool skip_header = false;
};

struct BuilderOptions {
  std::uint64_t seed = 1;
};

struct Programs {
  Program startup;
  Program main;
};

class Builder {
 public:
  explicit Builder(const std::string& name, BuilderOptions options = {});

  // What is fed, or read: [batch, item...].
  Ref Data(std::string_view name, const Dims& item, DataType type = DataType::kFloat32);
  // The fields of the next batch of records.
  std::vector<Ref> Read(const ReadOptions& options);

  Ref Fc(const Ref& input, std::int64_t size, const FcOptions& options = {});
  // Of several inputs, each with a weight of its own.
  Ref Fc(const std::vector<Ref>& inputs, std::int64_t size, const FcOptions& options = {});
  Ref Embedding(const Ref& ids, std::int64_t rows, std::int64_t width, const EmbeddingOptions& options = {});
  Ref Conv2d(const Ref& input, std::int64_t filters, std::int64_t size, const Conv2dOptions& options = {});
  Ref Pool2d(const Ref& input, const Pool2dOptions& options = {});
  Ref BatchNorm(const Ref& input, const BatchNormOptions& options = {});
  Ref Dropout(const Ref& input, double probability);
  Ref Activation(const Ref& input, std::string_view kind);
  Ref Softmax(const Ref& input) { return Activation(input, "softmax"); }
  Ref CrossEntropy(const Ref& probabilities, const Ref& label, bool soft_label = false);
  Ref SoftmaxWithCrossEntropy(const Ref& logits, const Ref& label, bool soft_label = false);
  Ref SquareErrorCost(const Ref& prediction, const Ref& target);
  Ref Mean(const Ref& input);
  // Of one element: the share of rows whose label is among the k highest scores.
  Ref Accuracy(const Ref& scores, const Ref& label, std::int64_t k = 1);
  Ref Concat(const std::vector<Ref>& inputs, std::int64_t axis);
  Ref Reshape(const Ref& input, std::vector<std::int64_t> shape);
  Ref Scale(const Ref& input, double factor, double bias = 0);
  Ref Add(const Ref& a, const Ref& b);
  Ref Sub(const Ref& a, const Ref& b);
  Ref Mul(const Ref& a, const Ref& b);
  Ref Parameter(const Dims& dims, const ParameterOptions& options);

  // Appends the values to the graph's outputs while it trains, every so many steps.
  void Output(const std::vector<Ref>& values, std::int64_t every = 1);
  // No gradient flows through it.
  void StopGradient(const Ref& variable);

  // Gradients and updates. Once, and last.
  std::vector<ParameterGradient> Minimize(const Ref& loss, const Optimizer& optimizer,
                                          const BackwardOptions& options = {});

  const absl::Status& status() const { return status_; }
  const Var* Find(const Ref& variable) const { return programs_.main.main().Find(variable.name); }
  // Both programs, or the first thing that went wrong.
  absl::StatusOr<Programs> Finish() const;

 private:
  std::string NewName(std::string_view stem);
  void Fail(absl::Status status);
  // Appends the operator and gives its only output of the slot.
  Ref AddOp(Op op, std::string_view slot, std::string_view stem);
  Ref Elementwise(std::string type, const Ref& a, const Ref& b, std::int64_t axis);
  Ref MakeParameter(std::string_view stem, const Dims& dims, const ParameterOptions& options,
                    const Initializer& standard);
  Ref Keep(const std::string& name, const Dims& dims, const Initializer& initializer);
  Op InitialOp(const std::string& name, const Dims& dims, const Initializer& initializer);
  Ref Biased(const Ref& input, std::int64_t axis, std::string_view stem, bool with_bias,
             const ParameterOptions& bias);
  Ref Activated(const Ref& input, const std::string& activation);
  const VarType* TypeOf(const Ref& variable);

  Programs programs_;
  std::uint64_t seed_;
  std::uint64_t initializers_ = 0;
  std::map<std::string, int, std::less<>> stems_;
  std::map<std::string, ParameterWishes> wishes_;
  std::vector<Op> averages_;  // of batch_norm: they come behind the optimizer
  bool minimized_ = false;
  absl::Status status_;
};

// The program as it is used to predict: nothing of the backward pass, dropout off, averages used.
Program CloneForTest(const Program& main);

}  // namespace trainyard::graph
