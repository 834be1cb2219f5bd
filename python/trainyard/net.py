"""Says which layers a network has, and makes programs of it."""

from __future__ import annotations

import numbers
from typing import Sequence, Union

from trainyard import _native
from trainyard._check import Seed, Small, Whole, checked
from trainyard.options import Clip, Decay, Field, Optimizer, Param, native
from trainyard.program import Part, Program


class Variable:
    """A variable of a net. Two of them, or one and a number, can be added, subtracted and multiplied."""

    __slots__ = ("_net", "_name")
    __array_ufunc__ = None  # numpy's numbers leave operators to us

    def __init__(self, net: Net, name: str) -> None:
        self._net = net
        self._name = name

    @property
    def name(self) -> str:
        """Its name in the program: what it is fed and fetched by."""
        return self._name

    @property
    def dtype(self) -> str:
        """f32, i64 or bool."""
        return self._net._net.type_of(self._name)[0]

    @property
    def shape(self) -> list[int]:
        """Its dims. One that is known only when the program runs, as the batch, is -1."""
        return self._net._net.type_of(self._name)[1]

    def __repr__(self) -> str:
        return f"<Variable {self._name} {self.dtype}{self.shape}>"

    def __add__(self, other: Operand) -> Variable:
        return self._combined("add", other, lambda number: (1.0, number))

    def __sub__(self, other: Operand) -> Variable:
        return self._combined("sub", other, lambda number: (1.0, -number))

    def __mul__(self, other: Operand) -> Variable:
        return self._combined("mul", other, lambda number: (number, 0.0))

    def __rsub__(self, other: float) -> Variable:
        return self._combined("sub", other, lambda number: (-1.0, number))

    def __neg__(self) -> Variable:
        return self._net.scale(self, -1.0)

    __radd__ = __add__
    __rmul__ = __mul__

    def _combined(self, operator, other, factor_and_bias):
        if isinstance(other, Variable):
            return self._net._made(getattr(self._net._net, operator)(self._net._ref(self), self._net._ref(other)))
        if isinstance(other, bool) or not isinstance(other, numbers.Real):
            return NotImplemented
        return self._net.scale(self, *factor_and_bias(float(other)))


Operand = Union[Variable, float]


class Net:
    """A network that is being built.

    A call that cannot be done raises Error, which says what is wrong, and leaves the net as it was. Parameters and
    variables get names such as fc_0.w_0; those of a Param are the user's.

    Activations (`act`) are "relu", "sigmoid", "tanh", "softmax", "leaky_relu", "square", "exp", "log", "sqrt" and
    "abs". A `bias` is a Param, or False for none.
    """

    @checked
    def __init__(self, name: str, *, seed: Seed = 1) -> None:
        """The same name, seed and calls make the same program."""
        self._net = _native.Net(name, seed)

    # What comes in.

    @checked
    def data(self, name: str, shape: Sequence[Whole], dtype: str = "f32") -> Variable:
        """What is fed: [batch, shape...]. dtype is "f32", "i64" or "bool"."""
        return self._made(self._net.data(name, shape, dtype))

    @checked
    def read(self, *, sources: Sequence[str], fields: Sequence[Field], format: str = "auto", batch_size: Whole = 1,
             shuffle_seed: Seed = 0, skip_header: bool = False) -> list[Variable]:
        """The fields of the next batch of records, one variable each.

        Each source is a list of files, folders or globs, by commas; the records of all sources go together by number.
        Formats are "recordio", "csv", "idx", and "auto": as the file looks. With shuffle_seed 0 records come in the
        order of the files."""
        options = _native.ReadOptions(sources, format, batch_size, [native(field) for field in fields], shuffle_seed,
                                      skip_header)
        return [self._made(name) for name in self._net.read(options)]

    # Layers.

    @checked
    def fc(self, x: Variable | Sequence[Variable], size: Whole, *, act: str | None = None, weight: Param | None = None,
           bias: Param | bool = True, num_flatten_dims: Small = 1) -> Variable:
        """Fully connected: the sum over the inputs of x times its weight, and the bias. The first num_flatten_dims dims
        of x stay, the others are one."""
        inputs = [x] if isinstance(x, Variable) else x
        options = _native.FcOptions(act or "", num_flatten_dims, _param(weight), *_bias(bias))
        return self._made(self._net.fc(self._refs(inputs), size, options))

    @checked
    def embedding(self, ids: Variable, rows: Whole, width: Whole, *, sparse: bool = False, distributed: bool = False,
                  padding_id: Whole | None = None, weight: Param | None = None) -> Variable:
        """Looks up the rows `ids` of a table. Sparse: the gradient has only the rows that were looked up. Distributed:
        the table lies on the pservers, row by row; it must be sparse. The row of padding_id is zeros."""
        padding = -1 if padding_id is None else padding_id
        options = _native.EmbeddingOptions(sparse, distributed, padding, _param(weight))
        return self._made(self._net.embedding(self._ref(ids), rows, width, options))

    @checked
    def conv2d(self, x: Variable, filters: Whole, size: Whole, *, stride: Whole = 1, padding: Whole = 0,
               dilation: Whole = 1, groups: Whole = 1, act: str | None = None, weight: Param | None = None,
               bias: Param | bool = True) -> Variable:
        """Convolution of x, which is [batch, channels, height, width], with `filters` filters of size x size."""
        options = _native.Conv2dOptions(stride, padding, dilation, groups, act or "", _param(weight), *_bias(bias))
        return self._made(self._net.conv2d(self._ref(x), filters, size, options))

    @checked
    def pool2d(self, x: Variable, size: Whole = 2, *, stride: Whole = 1, padding: Whole = 0, kind: str = "max",
               global_pooling: bool = False) -> Variable:
        """The highest ("max") or the mean ("avg") of each size x size window of x, which is [batch, channels, height,
        width]; with global_pooling of each whole channel."""
        options = _native.Pool2dOptions(size, stride, padding, kind, global_pooling)
        return self._made(self._net.pool2d(self._ref(x), options))

    @checked
    def batch_norm(self, x: Variable, *, act: str | None = None, momentum: float = 0.9, epsilon: float = 1e-5,
                   scale: Param | None = None, bias: Param | None = None) -> Variable:
        """Each channel (dim 1) with mean 0 and variance 1 over the batch, then scaled and shifted. Running averages
        stand in for the batch's own in clone_for_test()."""
        options = _native.BatchNormOptions(act or "", momentum, epsilon, _param(scale), _param(bias))
        return self._made(self._net.batch_norm(self._ref(x), options))

    @checked
    def dropout(self, x: Variable, probability: float) -> Variable:
        """Each element is zero with the probability while the program trains; the others are larger for it, so that the
        mean stays."""
        return self._made(self._net.dropout(self._ref(x), probability))

    @checked
    def parameter(self, shape: Sequence[Whole], param: Param | None = None) -> Variable:
        """A parameter by itself."""
        return self._made(self._net.parameter(shape, _param(param)))

    # Elements.

    def relu(self, x: Variable) -> Variable:
        """max(x, 0)"""
        return self._activation(x, "relu")

    def sigmoid(self, x: Variable) -> Variable:
        """1 / (1 + e^-x)"""
        return self._activation(x, "sigmoid")

    def tanh(self, x: Variable) -> Variable:
        """The hyperbolic tangent."""
        return self._activation(x, "tanh")

    def softmax(self, x: Variable) -> Variable:
        """e^x over the sum of it along the last dim: rows of probabilities."""
        return self._activation(x, "softmax")

    def leaky_relu(self, x: Variable) -> Variable:
        """x, or a small part of it where it is negative."""
        return self._activation(x, "leaky_relu")

    def square(self, x: Variable) -> Variable:
        """x * x"""
        return self._activation(x, "square")

    def exp(self, x: Variable) -> Variable:
        """e^x"""
        return self._activation(x, "exp")

    def log(self, x: Variable) -> Variable:
        """The natural logarithm."""
        return self._activation(x, "log")

    def sqrt(self, x: Variable) -> Variable:
        """The square root."""
        return self._activation(x, "sqrt")

    def abs(self, x: Variable) -> Variable:
        """The value without its sign."""
        return self._activation(x, "abs")

    @checked
    def scale(self, x: Variable, factor: float, bias: float = 0.0) -> Variable:
        """factor * x + bias"""
        return self._made(self._net.scale(self._ref(x), factor, bias))

    # Losses and measures.

    @checked
    def cross_entropy(self, probabilities: Variable, label: Variable, *, soft_label: bool = False) -> Variable:
        """-log of the probability of each row's label; with soft_label the labels are rows of probabilities too."""
        return self._made(self._net.cross_entropy(self._ref(probabilities), self._ref(label), soft_label))

    @checked
    def softmax_with_cross_entropy(self, logits: Variable, label: Variable, *, soft_label: bool = False) -> Variable:
        """cross_entropy(softmax(logits), label), computed as one, which is faster and exact where it is small."""
        return self._made(self._net.softmax_with_cross_entropy(self._ref(logits), self._ref(label), soft_label))

    @checked
    def square_error_cost(self, prediction: Variable, target: Variable) -> Variable:
        """(prediction - target)^2, element by element."""
        return self._made(self._net.square_error_cost(self._ref(prediction), self._ref(target)))

    @checked
    def mean(self, x: Variable) -> Variable:
        """The mean of all elements, as one element."""
        return self._made(self._net.mean(self._ref(x)))

    @checked
    def accuracy(self, scores: Variable, label: Variable, k: Whole = 1) -> Variable:
        """One element: the share of rows whose label is among the k highest scores."""
        return self._made(self._net.accuracy(self._ref(scores), self._ref(label), k))

    # Shapes.

    @checked
    def concat(self, inputs: Sequence[Variable], axis: Whole) -> Variable:
        """The inputs behind one another along the axis."""
        return self._made(self._net.concat(self._refs(inputs), axis))

    @checked
    def reshape(self, x: Variable, shape: Sequence[Whole]) -> Variable:
        """The same elements in another shape. One dim may be -1: what is left; a dim of 0 is that of x."""
        return self._made(self._net.reshape(self._ref(x), shape))

    # Training.

    @checked
    def stop_gradient(self, x: Variable) -> None:
        """No gradient flows through x."""
        self._net.stop_gradient(self._ref(x))

    @checked
    def output(self, values: Variable | Sequence[Variable], every: Whole = 1) -> None:
        """Appends the values to the graph's outputs, every so many steps, while it trains as part of a job. An Executor
        has no outputs: there, fetch them."""
        self._net.output(self._refs([values] if isinstance(values, Variable) else values), every)

    @checked
    def minimize(self, loss: Variable, optimizer: Optimizer, *, decay: Decay | None = None, clip: Clip | None = None,
                 parameters: Sequence[Variable] = (), without: Sequence[Variable] = ()
                 ) -> list[tuple[Variable, Variable]]:
        """Adds what learns: gradients of the loss, which must be one element, and the optimizer's updates. Once, and
        after the whole network. Gives each parameter with its gradient.

        decay, clip: of parameters that have none of their own.
        parameters: those that learn; none: all that the loss depends on.
        without: variables that no gradient flows through."""
        options = _native.BackwardOptions(self._refs(parameters), set(self._refs(without)))
        complete = _native.Optimizer(native(optimizer), native(optimizer.rate), native(decay), native(clip))
        pairs = self._net.minimize(self._ref(loss), complete, options)
        return [(self._made(parameter), self._made(gradient)) for parameter, gradient in pairs]

    def finish(self) -> Program:
        """The program as it is by now."""
        main, startup = self._net.finish()
        return Program(Part(main), Part(startup))

    @checked
    def _activation(self, x: Variable, kind: str) -> Variable:
        return self._made(self._net.activation(self._ref(x), kind))

    def _made(self, name: str) -> Variable:
        return Variable(self, name)

    def _ref(self, variable: Variable) -> str:
        if variable._net is not self:
            raise _native.Error(f"variable {variable.name} is of another net")
        return variable.name

    def _refs(self, variables: Sequence[Variable]) -> list[str]:
        return [self._ref(variable) for variable in variables]


def _param(param: Param | None):
    return native(param or Param())


def _bias(bias: Param | bool):
    return bias is not False, _param(bias if isinstance(bias, Param) else None)
