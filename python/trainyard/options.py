"""What can be said about parameters, fields, learning rates and optimizers."""

from __future__ import annotations

import dataclasses
import typing
from typing import Any, Sequence, Union

import numpy as np

from trainyard import _native
from trainyard._check import Seed, Small, Whole, conform


@dataclasses.dataclass(frozen=True)
class Options:
    """Fields that are held to their hints, and that the C++ struct of the same name is made of in their order."""

    def __post_init__(self) -> None:
        hints = typing.get_type_hints(type(self), include_extras=True)
        for field in dataclasses.fields(self):
            value = conform(f"{type(self).__name__}: {field.name}", getattr(self, field.name), hints[field.name])
            object.__setattr__(self, field.name, tuple(value) if isinstance(value, list) else value)

    def _to_native(self) -> Any:
        values = (getattr(self, field.name) for field in dataclasses.fields(self))
        return getattr(_native, type(self).__name__)(*(native(value) for value in values))


def native(value: Any) -> Any:
    """The C++ object of options; anything else as it is."""
    return value._to_native() if isinstance(value, Options) else value


# Initializers: what a parameter begins with.


@dataclasses.dataclass(frozen=True)
class Constant(Options):
    """Every element is `value`."""

    value: float = 0.0


@dataclasses.dataclass(frozen=True)
class Uniform(Options):
    """Random numbers between `min` and `max`. With seed 0 the net gives each parameter a seed of its own."""

    min: float = -1.0
    max: float = 1.0
    seed: Seed = 0


@dataclasses.dataclass(frozen=True)
class Normal(Options):
    """Random numbers around `mean`, normally distributed. Seeds as for Uniform."""

    mean: float = 0.0
    deviation: float = 1.0
    seed: Seed = 0


@dataclasses.dataclass(frozen=True)
class Xavier(Options):
    """Random numbers in +-sqrt(6 / (inputs + outputs)), or normal ones of that variance. Seeds as for Uniform."""

    uniform: bool = True
    seed: Seed = 0


@dataclasses.dataclass(frozen=True)
class Msra(Options):
    """As Xavier, by the inputs alone: for what a relu follows."""

    uniform: bool = True
    seed: Seed = 0


@dataclasses.dataclass(frozen=True, eq=False)
class Values(Options):
    """Exactly these numbers, the last dim fastest; an array of any shape, or a list."""

    values: np.ndarray | Sequence[float]

    def __post_init__(self) -> None:
        try:
            flat = np.array(self.values, dtype=np.float32).ravel()
        except (TypeError, ValueError):
            raise TypeError("Values: values must be an array or a list of numbers") from None
        object.__setattr__(self, "values", flat)


Initializer = Union[Constant, Uniform, Normal, Xavier, Msra, Values]


# Decays and clips: what is done to a gradient before it is used.


@dataclasses.dataclass(frozen=True)
class L1Decay(Options):
    """Adds `coefficient` times the parameter's signs to its gradient."""

    coefficient: float


@dataclasses.dataclass(frozen=True)
class L2Decay(Options):
    """Adds `coefficient` times the parameter to its gradient."""

    coefficient: float


@dataclasses.dataclass(frozen=True)
class ClipByValue(Options):
    """Each element of the gradient stays between `min` and `max`."""

    min: float = -1.0
    max: float = 1.0


@dataclasses.dataclass(frozen=True)
class ClipByNorm(Options):
    """The gradient's norm stays within `max_norm`."""

    max_norm: float = 1.0


@dataclasses.dataclass(frozen=True)
class ClipByGlobalNorm(Options):
    """The norm of all gradients together stays within `max_norm`. Programs with it are not transpiled."""

    max_norm: float = 1.0


Decay = Union[L1Decay, L2Decay]
Clip = Union[ClipByValue, ClipByNorm, ClipByGlobalNorm]


@dataclasses.dataclass(frozen=True)
class Param(Options):
    """What a parameter is to be.

    name: two parameters of one name and shape are one; None: a name is made up.
    init: None: what the layer begins with.
    decay, clip: of this parameter alone; None: the optimizer's.
    rate: times the learning rate.
    trainable: False: it stays as it begins.
    """

    name: str | None = None
    init: Initializer | None = None
    decay: Decay | None = None
    clip: Clip | None = None
    rate: float = 1.0
    trainable: bool = True

    def _to_native(self) -> Any:
        wishes = _native.ParameterWishes(self.rate, native(self.decay), native(self.clip))
        return _native.ParameterOptions(self.name or "", native(self.init), wishes, self.trainable)


@dataclasses.dataclass(frozen=True)
class Field(Options):
    """One field of a record that Net.read reads.

    shape: without the batch.
    dtype: "f32", "i64" or "bool".
    source: which of the reader's sources it comes from.
    begin: its first column (CSV) or byte; None: behind the field before it.
    scale: what each number is multiplied by.
    """

    name: str
    shape: Sequence[Whole]
    dtype: str = "f32"
    source: Small = 0
    begin: Whole | None = None
    scale: float = 1.0

    def _to_native(self) -> Any:
        begin = -1 if self.begin is None else self.begin
        return _native.Field(self.name, self.shape, self.dtype, self.source, begin, self.scale)


# Learning rates that change: x = step / decay_steps, or the whole part of it with `staircase`.


@dataclasses.dataclass(frozen=True)
class ExponentialDecay(Options):
    """base * rate^x"""

    base: float = 0.1
    decay_steps: Whole = 1000
    rate: float = 0.5
    staircase: bool = False


@dataclasses.dataclass(frozen=True)
class NaturalExpDecay(Options):
    """base * e^(-rate x)"""

    base: float = 0.1
    decay_steps: Whole = 1000
    rate: float = 0.5
    staircase: bool = False


@dataclasses.dataclass(frozen=True)
class InverseTimeDecay(Options):
    """base / (1 + rate x)"""

    base: float = 0.1
    decay_steps: Whole = 1000
    rate: float = 0.5
    staircase: bool = False


@dataclasses.dataclass(frozen=True)
class PolynomialDecay(Options):
    """(base - end) * (1 - x)^power + end, once or, with `cycle`, again and again."""

    base: float = 0.1
    decay_steps: Whole = 1000
    end: float = 0.0001
    power: float = 1.0
    cycle: bool = False


@dataclasses.dataclass(frozen=True)
class PiecewiseDecay(Options):
    """values[i] while the step is below boundaries[i]; there is one value more than boundaries."""

    boundaries: Sequence[Whole]
    values: Sequence[float]


Rate = Union[float, ExponentialDecay, NaturalExpDecay, InverseTimeDecay, PolynomialDecay, PiecewiseDecay]


# Optimizers: how a parameter learns from its gradient. The rate is a number or one of the above.


@dataclasses.dataclass(frozen=True)
class Optimizer(Options):
    """What all optimizers have."""

    rate: Rate = 0.001

    def _to_native(self) -> Any:
        own = (getattr(self, field.name) for field in dataclasses.fields(self) if field.name != "rate")
        return getattr(_native, type(self).__name__)(*own)


@dataclasses.dataclass(frozen=True)
class Sgd(Optimizer):
    """Against the gradient, by the rate."""


@dataclasses.dataclass(frozen=True)
class Momentum(Optimizer):
    """Along a velocity that gathers the gradients."""

    momentum: float = 0.9
    nesterov: bool = False


@dataclasses.dataclass(frozen=True)
class Adagrad(Optimizer):
    """By the gradient over the root of the sum of its squares so far."""

    epsilon: float = 1e-6


@dataclasses.dataclass(frozen=True)
class Adam(Optimizer):
    """By a running mean of the gradient over the root of that of its squares, both corrected for their start."""

    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8


@dataclasses.dataclass(frozen=True)
class RmsProp(Optimizer):
    """By the gradient over the root of a running mean of its squares."""

    rho: float = 0.95
    epsilon: float = 1e-6
    momentum: float = 0.0
