"""What a model is made with: PyTorch, or anything that gives NumPy arrays."""

from __future__ import annotations

import inspect
import sys
from types import ModuleType
from typing import Any

import numpy as np

from trainyard import _native
from trainyard.elastic.job import Job
from trainyard.elastic.model import call
from trainyard.options import Adagrad, Adam, L2Decay, Momentum, Optimizer, RmsProp, Sgd, native


def make_backend(module: ModuleType, job: Job) -> Any:
    """The backend that fits what the module's model() gives."""
    kind = type(call_model(module, job, np_seed=True))
    if any(base.__module__.startswith("torch.") for base in kind.__mro__):
        from trainyard.elastic.torch_backend import TorchBackend
        return TorchBackend(module, job)
    return NumpyBackend(module, job)


def call_model(module: ModuleType, job: Job, np_seed: bool = False) -> Any:
    if np_seed:
        np.random.seed(job.seed % 2**32)
    return call(module.model, job=job)


def make_optimizer(module: ModuleType, job: Job, parameters: Any) -> Any:
    """What optimizer() gives. One of PyTorch wants the parameters."""
    wanted = [p for p in inspect.signature(module.optimizer).parameters.values()
              if p.name != "job" and p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return call(module.optimizer, *([parameters] if wanted else []), job=job)


def to_native(optimizer: Any) -> Any:
    """Error: it is not one that the master has."""
    made, decay = (optimizer, None) if isinstance(optimizer, Optimizer) else from_torch(optimizer)
    return _native.Optimizer(native(made), native(made.rate), native(decay), None)


# What changes how an optimizer of PyTorch learns, and what the master does not have: each must be off.
NOT_HERE = ("dampening", "maximize", "amsgrad", "lr_decay", "initial_accumulator_value", "centered")


def from_torch(optimizer: Any) -> tuple[Optimizer, L2Decay | None]:
    """The same of ours. The master learns, so that an optimizer of PyTorch is only a way to say how. Error: it says
    something that the master cannot do."""
    name, groups = type(optimizer).__name__, getattr(optimizer, "param_groups", [{}])
    settings = [{key: value for key, value in group.items() if key != "params"} for group in groups]
    own = settings[0]
    if any(other != own for other in settings):
        raise _native.Error(f"optimizer() gives a {name} with groups of different settings: all parameters learn alike")
    for key in NOT_HERE:
        if own.get(key):
            raise _native.Error(f"optimizer() gives a {name} with {key}={own[key]}, which the master cannot do: leave it out")
    if "initial_lr" in own:
        raise _native.Error(f"optimizer() gives a {name} with a schedule of PyTorch: give one of trainyard's, as "
                            "ty.Adam(rate=ty.ExponentialDecay(base=0.001))")
    rate = float(own.get("lr", 0.001))
    decay = L2Decay(float(own["weight_decay"])) if own.get("weight_decay") else None
    if name == "SGD" and not own.get("momentum"):
        return Sgd(rate=rate), decay
    if name == "SGD":
        return Momentum(rate=rate, momentum=float(own["momentum"]), nesterov=bool(own.get("nesterov"))), decay
    if name == "Adam":
        return Adam(rate=rate, beta1=own["betas"][0], beta2=own["betas"][1], epsilon=own["eps"]), decay
    if name == "Adagrad":
        return Adagrad(rate=rate, epsilon=own["eps"]), decay
    if name == "RMSprop":
        return RmsProp(rate=rate, rho=own["alpha"], epsilon=own["eps"], momentum=float(own["momentum"])), decay
    raise _native.Error(f"optimizer() gives a {name}: give one of trainyard's, as ty.Adam(rate=0.001)")


def check_optimizer(module: ModuleType, job: Job) -> None:
    """Error: the master cannot learn as this one of PyTorch says. What needs the model itself shows in the workers."""
    torch = sys.modules.get("torch")
    parameters = [torch.nn.Parameter(torch.zeros(1))] if torch else []
    try:
        made = make_optimizer(module, job, parameters)
    except Exception:
        return
    if hasattr(made, "param_groups"):
        from_torch(made)


class NumpyBackend:
    """A model that is an object with `parameters`, a dict of float32 arrays; `gradients(features, labels)`, which gives
    the loss and a dict of the same names; and `outputs(features)`."""

    def __init__(self, module: ModuleType, job: Job) -> None:
        self._model = call_model(module, job, np_seed=True)
        for name in ("parameters", "gradients", "outputs"):
            if not hasattr(self._model, name):
                raise _native.Error(f"{module.__file__}: model() gives a {type(self._model).__name__} without {name}: it must be "
                                    "a torch.nn.Module, or have parameters, gradients(features, labels) and outputs(features)")
        self._optimizer = to_native(make_optimizer(module, job, []))

    def values(self) -> dict[str, np.ndarray]:
        return {name: np.ascontiguousarray(value, dtype=np.float32) for name, value in self._model.parameters.items()}

    def learnt(self) -> list[str]:
        return list(self._model.parameters)

    def optimizer(self) -> Any:
        return self._optimizer

    def take(self, values: dict[str, np.ndarray]) -> None:
        for name, value in values.items():
            self._model.parameters[name] = value

    def compute(self, features: Any, labels: Any) -> tuple[float, dict[str, np.ndarray]]:
        loss, gradients = self._model.gradients(features, labels)
        return float(loss), {f"{name}@GRAD": np.ascontiguousarray(value, dtype=np.float32)
                             for name, value in gradients.items()}

    def outputs(self, features: Any) -> Any:
        return self._model.outputs(features)

    def to_array(self, outputs: Any) -> np.ndarray:
        return np.asarray(outputs)
