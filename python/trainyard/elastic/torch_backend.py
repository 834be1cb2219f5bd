"""Models of PyTorch."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import torch

from trainyard import _native
from trainyard.elastic.backend import make_optimizer, to_native
from trainyard.elastic.job import Job
from trainyard.elastic.model import call


class TorchBackend:
    """The parameters are the master's; here they are only computed with. Buffers of floats (running averages) go to the
    master with each gradient, and become the mean of what workers have."""

    def __init__(self, module: ModuleType, job: Job) -> None:
        if not callable(getattr(module, "loss", None)) and job.kind == "train":
            raise _native.Error(f"{module.__file__} has no function loss(outputs, labels)")
        torch.manual_seed(job.seed)
        torch.set_num_threads(max(1, job.all["threads"]))
        self._module = module
        self._job = job
        self._model = call(module.model, job=job)
        self._parameters = dict(self._model.named_parameters())
        made = make_optimizer(module, job, self._model.parameters())
        self._optimizer = to_native(made)
        self._check_covered(made)
        self._buffers = {name: buffer for name, buffer in self._model.named_buffers() if buffer.dtype == torch.float32}

    def _check_covered(self, optimizer: Any) -> None:
        """One of PyTorch that has only some of the parameters would train the others all the same."""
        groups = getattr(optimizer, "param_groups", None)
        own = [name for name, one in self._parameters.items() if one.requires_grad]
        if groups is None:
            return
        known = {id(one) for group in groups for one in group["params"]}
        missing = [name for name in own if id(self._parameters[name]) not in known]
        if missing and len(missing) < len(own):
            raise _native.Error(f"optimizer() leaves out {', '.join(missing[:3])}: what is not to learn has requires_grad=False")

    def values(self) -> dict[str, np.ndarray]:
        everything = {**self._parameters, **self._buffers}
        return {name: value.detach().contiguous().numpy().copy() for name, value in everything.items()}

    def learnt(self) -> list[str]:
        return [name for name, parameter in self._parameters.items() if parameter.requires_grad]

    def optimizer(self) -> Any:
        return self._optimizer

    def take(self, values: dict[str, np.ndarray]) -> None:
        with torch.no_grad():
            for name, value in values.items():
                target = self._parameters.get(name)
                (self._buffers[name] if target is None else target).copy_(torch.from_numpy(value))

    def compute(self, features: Any, labels: Any) -> tuple[float, dict[str, np.ndarray]]:
        self._model.train()
        self._model.zero_grad()
        loss = call(self._module.loss, self._model(features), labels, job=self._job)
        loss.backward()
        gradients = {f"{name}@GRAD": parameter.grad.contiguous().numpy()
                     for name, parameter in self._parameters.items() if parameter.grad is not None}
        gradients.update({f"{name}@GRAD": buffer.contiguous().numpy() for name, buffer in self._buffers.items()})
        return float(loss.detach()), gradients

    def outputs(self, features: Any) -> Any:
        self._model.eval()
        with torch.no_grad():
            return self._model(features)

    def to_array(self, outputs: Any) -> np.ndarray:
        return outputs.numpy()
