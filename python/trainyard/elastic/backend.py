"""What a model is made with: PyTorch, or anything that gives NumPy arrays."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from trainyard import _native
from trainyard.elastic.job import Job
from trainyard.elastic.model import call
from trainyard.options import Adagrad, Adam, Momentum, Optimizer, RmsProp, Sgd, native


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


def to_native(optimizer: Any) -> Any:
    """Error: it is not one that the master has."""
    made = optimizer if isinstance(optimizer, Optimizer) else from_torch(optimizer)
    return _native.Optimizer(native(made), native(made.rate), None, None)


def from_torch(optimizer: Any) -> Optimizer:
    """The same of ours. The master learns, so that an optimizer of PyTorch is only a way to say how."""
    name, defaults = type(optimizer).__name__, getattr(optimizer, "defaults", {})
    rate = float(defaults.get("lr", 0.001))
    if name == "SGD" and not defaults.get("momentum"):
        return Sgd(rate=rate)
    if name == "SGD":
        return Momentum(rate=rate, momentum=float(defaults["momentum"]), nesterov=bool(defaults.get("nesterov")))
    if name == "Adam":
        return Adam(rate=rate, beta1=defaults["betas"][0], beta2=defaults["betas"][1], epsilon=defaults["eps"])
    if name == "Adagrad":
        return Adagrad(rate=rate, epsilon=defaults["eps"])
    if name == "RMSprop":
        return RmsProp(rate=rate, rho=defaults["alpha"], epsilon=defaults["eps"], momentum=float(defaults["momentum"]))
    raise _native.Error(f"optimizer() gives a {name}: give one of trainyard's, as ty.Adam(rate=0.001)")


class NumpyBackend:
    """A model that is an object with `parameters`, a dict of float32 arrays; `gradients(features, labels)`, which gives
    the loss and a dict of the same names; and `outputs(features)`."""

    def __init__(self, module: ModuleType, job: Job) -> None:
        self._model = call_model(module, job, np_seed=True)
        for name in ("parameters", "gradients", "outputs"):
            if not hasattr(self._model, name):
                raise _native.Error(f"{module.__file__}: model() gives a {type(self._model).__name__} without {name}: it must be "
                                    "a torch.nn.Module, or have parameters, gradients(features, labels) and outputs(features)")
        self._optimizer = to_native(call(module.optimizer, job=job))

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
