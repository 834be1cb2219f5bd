"""A worker of an elastic job whose model is a file of Python."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Mapping
from typing import Any

from trainyard import _native
from trainyard.elastic.backend import make_backend
from trainyard.elastic.job import Job
from trainyard.elastic.model import call, check_functions, described, load_model
from trainyard.elastic.readers import Reading

PATIENCE = 600.0  # seconds, with a master that is away


def model_path(job: Job, environment: Mapping[str, str]) -> str:
    """The file that the user named, if this machine sees it; else the copy that came with the job."""
    own = job.all["model"]
    copy = environment.get("TRAINYARD_MODEL_COPY", "")
    return own if os.path.exists(own) or not copy else copy


class Worker:
    """Takes minibatches until there are none."""

    def __init__(self, native: Any, module: Any, job: Job) -> None:
        self._native = native
        self._module = module
        self._job = job
        self._backend = make_backend(module, job)
        self._with = (0, -1)  # generation and version of the model here
        self._frozen = None  # the version that is here for evaluation
        self._pushes = 0
        self._sums: dict[str, float] = {}
        self._records = 0
        self._outputs: list[Any] = []
        self._task = None
        self._reading = Reading(native, module, job) if job.data_reader else None

    def run(self) -> None:
        if self._job.kind == "train":  # the master takes it if it has no model
            self._native.offer(self._backend.values(), self._backend.learnt(), self._backend.optimizer())
        self._native.start()
        if self._reading:
            self._reading.start()
        while (batch := self._native.next()) is not None:
            try:
                self._train(batch) if batch.kind == "training" else self._look(batch)
            except _native.Error:
                raise  # the line to the master, or the master's word
            except Exception as error:  # the user's code: the task has failed
                traceback.print_exc()
                self._native.fail(batch, f"{batch.describe()}: {described(error, self._module.__file__)}")

    def _batch(self, batch: Any) -> Any:
        records = self._reading.take(batch) if self._reading else batch.records()
        return call(self._module.dataset_fn, records, batch.kind, job=self._job)

    def stop(self) -> None:
        """Gives back what it has, and reads no more."""
        self._native.stop()
        if self._reading:
            self._reading.join()

    def _train(self, batch: Any) -> None:
        features, labels = self._batch(batch)
        while True:
            if self._with[1] < 0 or self._frozen is not None:
                self._take(self._native.pull(-1))
            loss, gradients = self._backend.compute(features, labels)
            self._pushes += 1
            pull = not self._job.all["async"] or self._pushes % self._job.all["pullEvery"] == 0
            verdict, _, model = self._native.push(batch, self._with, loss, pull, gradients)
            if model is not None:
                self._take(model)
            elif verdict != "accepted":
                self._with = (0, -1)
            if verdict == "lost":
                self._native.drop(batch)
            if verdict != "stale":
                return

    def _take(self, model: Any) -> None:
        generation, version, values = model
        self._backend.take(values)
        self._with = (generation, version)
        self._frozen = None

    def _look(self, batch: Any) -> None:
        """Evaluates or predicts."""
        predicts = batch.kind == "prediction"
        wanted = -1 if predicts else batch.version
        if self._frozen != wanted:
            model = self._native.pull(wanted)
            if model is None:
                self._native.give_back(batch)
                return
            self._take(model)
            self._frozen = wanted
        if self._task != batch.task:
            self._task, self._sums, self._records, self._outputs = batch.task, {}, 0, []
        made = self._batch(batch)
        features, labels = made if isinstance(made, tuple) else (made, None)
        outputs = self._backend.outputs(features)
        if predicts:
            self._outputs.append(self._backend.to_array(outputs))
        else:
            metrics = call(self._module.eval_metrics_fn, outputs, labels, job=self._job)
            for name, value in metrics.items():
                self._sums[name] = self._sums.get(name, 0.0) + float(value) * batch.count
            self._records += batch.count
        if not batch.last:
            return
        if predicts:
            self._write(batch)
        self._native.finish(batch, {name: value / self._records for name, value in self._sums.items()})

    def _write(self, batch: Any) -> None:
        import numpy as np
        outputs = np.concatenate(self._outputs)
        path = self._native.prediction_file(batch)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if self._job.writer:
            call(getattr(self._module, self._job.writer), path, outputs, job=self._job)
            return
        _native.write_records(path, [np.ascontiguousarray(row).tobytes() for row in outputs])


def run_worker(environment: Mapping[str, str]) -> int:
    if not environment.get("TRAINYARD_MASTER"):
        raise _native.Error("TRAINYARD_MASTER is missing: a worker is started by the master of its job")
    try:
        native = _native.ElasticWorker(environment["TRAINYARD_MASTER"], environment.get("TRAINYARD_JOB_TOKEN", ""),
                                       int(environment.get("TRAINYARD_WORKER_INDEX", "-1")),
                                       environment.get("TRAINYARD_POD_NAME", ""), PATIENCE)
    except _native.EndOfPass:  # the job is over
        return 0
    # What it has goes back to the master at once, so that others have it.
    signal.signal(signal.SIGTERM, lambda *_: (native.stop(), sys.exit(0)))
    job = Job.from_json(native.job)
    module = load_model(model_path(job, environment))
    check_functions(module, job)
    worker = Worker(native, module, job)
    try:
        worker.run()
    finally:
        worker.stop()
    return 0
