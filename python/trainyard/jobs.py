"""Jobs that train in a cluster: begun, followed, scaled and stopped from here."""

from __future__ import annotations

import atexit
import datetime
import os
import threading
import time
import weakref
from typing import Any, Iterator, Sequence

import numpy as np

from trainyard import _native
from trainyard._check import Small, Whole, checked
from trainyard.net import Variable
from trainyard.program import Graph

_LOOK = 0.2  # seconds between looks at Ctrl-C while something is waited for


class Yard:
    """A cluster, and where in it jobs are.

    kubeconfig, context: which cluster; as kubectl finds it, or the embedded one that `trainyard up` started.
    namespace: of the jobs; the context's unless given.
    store: "etcd://HOST:PORT", as pods call it; the namespace's own unless given, which is started if there is none.
    storage: where checkpoints are kept: a folder that all nodes see, or "claim:NAME". An embedded cluster has a place.
    image: that has the program `trainyard`.
    patience: seconds until what must come up, or go, is given up.
    """

    @checked
    def __init__(self, *, kubeconfig: str = "", context: str = "", namespace: str = "", store: str = "",
                 storage: str = "", image: str = "trainyard", patience: float = 60.0) -> None:
        self._jobs = _native.GraphJobs(kubeconfig, context, namespace, store, storage, image, patience)

    @checked
    def find(self, name: str) -> bool:
        """Whether there is a job of that name, running or over."""
        return self._jobs.find(name)

    @checked
    def kill(self, name: str) -> None:
        """Ends the job and removes it. Error: there is none."""
        self._jobs.kill(name)

    @checked
    def init_job(self, name: str, *, run_type: str = "foreground", lease: float = 10.0,
                 checkpoint_every: Whole = 100, on_nonfinite: str = "fail") -> Job:
        """Begins a job.

        run_type: "foreground": the job lives as long as this process, and at most `lease` seconds longer if it is
        killed. "background": it goes on by itself, and attach() finds it.
        checkpoint_every: steps.
        on_nonfinite: what to do when a loss or a variable becomes NaN or infinite: "fail" the job, "warn" and go on,
        or "skip" the update of that variable.
        """
        if on_nonfinite not in ("fail", "warn", "skip"):
            raise _native.Error(f"init_job: there is no on_nonfinite {on_nonfinite!r}: use fail, warn or skip")
        if run_type not in ("foreground", "background"):
            raise _native.Error(f"init_job: there is no run_type {run_type!r}: use foreground or background")
        return Job(self._jobs.init_job(name, run_type == "foreground", lease, checkpoint_every,
                                       on_nonfinite), name)

    @checked
    def attach(self, name: str) -> Job:
        """A job that was started, by whomever. Error: there is none."""
        return Job(self._jobs.attach(name), name)


class Output:
    """One value that one graph put out in one step. committed: the step counts in what is learnt."""

    __slots__ = ("graph", "pass_num", "step", "time", "committed", "name", "value")

    def __init__(self, graph: str, pass_num: int, step: int, time: float, committed: bool, name: str,
                 dims: Sequence[int], values: Sequence[float]) -> None:
        """Not for users: Workers.get() makes them."""
        self.graph = graph
        self.pass_num = pass_num
        self.step = step
        self.time = datetime.datetime.fromtimestamp(time, datetime.timezone.utc)
        self.committed = committed
        self.name = name
        whole = int(np.prod(dims, dtype=np.int64)) == len(values)
        self.value: float | np.ndarray = (values[0] if len(values) == 1 else
                                          np.array(values).reshape(dims) if whole else np.array(values))

    def __float__(self) -> float:
        return float(self.value)

    def __str__(self) -> str:
        value = f"{self.value:.6g}" if isinstance(self.value, float) else str(self.value)
        return f"{self.graph} pass {self.pass_num} step {self.step} {self.name} {value}"

    def __repr__(self) -> str:
        return f"<Output {self}>"


class Workers:
    """All trainers, or all pservers, of a job."""

    def __init__(self, workers: Any) -> None:
        """Not for users: Job.add_workers() makes them."""
        self._workers = workers

    def __len__(self) -> int:
        return self._workers.count

    def start(self) -> None:
        """Has their pods made, and does not wait for them."""
        self._workers.start()

    def get(self, *names: str | Variable, uncommitted: bool = False) -> Iterator[Output]:
        """The values that they put out under these names (Net.output() says which there are), from the beginning and
        as they come; all that they put out without a name. Each step that counts in what is learnt comes once,
        whichever process was killed; uncommitted: those that do not count come too. Ends with the job. Error: why the job failed."""
        wanted = [name.name if isinstance(name, Variable) else name for name in names]
        for name in wanted:
            if not isinstance(name, str):
                raise TypeError(f"get: a name is a str or a Variable, and not a {type(name).__name__}")
        return _stream(self._workers.get(wanted, bool(uncommitted)))

    @checked
    def scale(self, count: Small) -> None:
        """So many from now on. Nothing that was learnt is lost."""
        self._workers.scale(count)


def _stream(outputs: Any) -> Iterator[Output]:
    while True:
        try:
            value = outputs.next(_LOOK)
        except _native.EndOfPass:
            return
        if value is not None:
            yield Output(*value)


class Status:
    """How a job stands. state: "Waiting", "Running", "Complete" or "Failed"; reason: of a failure; phase: of the
    AITrainingJob under it, and why; trainers, pservers: how many; steps: of a job that is complete."""

    __slots__ = ("state", "reason", "phase", "trainers", "pservers", "steps")

    def __init__(self, state: str, reason: str, phase: str, trainers: int, pservers: int, steps: int) -> None:
        self.state, self.reason, self.phase = state, reason, phase
        self.trainers, self.pservers, self.steps = trainers, pservers, steps

    def __repr__(self) -> str:
        return f"<Status {self.state}{': ' + self.reason if self.reason else ''}>"


class Job:
    """A job in a cluster. Its calls are for one thread at a time."""

    def __init__(self, job: Any, name: str) -> None:
        """Not for users: init_job() and attach() make them."""
        self._job = job
        self._name = name
        _live.add(self)

    @property
    def name(self) -> str:
        """What find(), kill() and attach() know it by."""
        return self._name

    @checked
    def add_workers(self, graphs: Sequence[Graph], *, cpu: float | str = "", gpu: Whole | str = "",
                    mem: Whole | str = "", least: Small | None = None, most: Small | None = None,
                    restart_limit: Small | None = None, threads: Small = 1) -> Workers:
        """All trainers, or all pservers, that dist_transpiler() gave.

        cpu, gpu, mem: of each pod, as 1, "500m", "512Mi". Without one, nothing is asked for.
        least, most: trainers come and go with the load of the cluster, between these.
        restart_limit: how often their pods are made again; as often as it takes unless given.
        threads: inside one operator.
        """
        native = [graph._graph for graph in graphs]
        return Workers(self._job.add_workers(native, _amount(cpu), _amount(gpu), _amount(mem), least, most,
                                             restart_limit, threads))

    @property
    def trainers(self) -> Workers | None:
        """None: they have not been added."""
        workers = self._job.trainers
        return None if workers is None else Workers(workers)

    @property
    def pservers(self) -> Workers | None:
        """None: they have not been added."""
        workers = self._job.pservers
        return None if workers is None else Workers(workers)

    def load(self, folder: str | os.PathLike[str], *, allow_missing: bool = False) -> None:
        """Begins with the values that Executor.save() wrote there, and not with the initialisers'. Before start()."""
        self._job.load(os.fsencode(folder), bool(allow_missing))

    @checked
    def save(self, folder: str | os.PathLike[str], *, step: Whole | None = None) -> int:
        """Writes the variables of the newest checkpoint for Executor.load(), or of the one of that step, and gives its
        step. Error: there is none; the job is complete and the one of its end is missing; or it has non-finite values."""
        return self._job.save(os.fsencode(folder), step)

    def status(self) -> Status:
        """How it stands now."""
        return Status(*self._job.status())

    @checked
    def wait(self, timeout: float | None = None) -> bool:
        """Waits until the job is complete; False: it is not yet, after so many seconds. Error: why it failed."""
        ends = None if timeout is None else time.monotonic() + timeout
        while True:
            left = _LOOK if ends is None else min(_LOOK, ends - time.monotonic())
            if self._job.wait(max(left, 0.0)):
                return True
            if ends is not None and time.monotonic() >= ends:
                return False

    def stop(self) -> None:
        """Ends the job if it runs, and removes it."""
        self._job.stop()


def _amount(value: float | int | str) -> str:
    if isinstance(value, str):
        return value
    return f"{value:.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


_live: weakref.WeakSet[Job] = weakref.WeakSet()
_default_lock = threading.Lock()
_default: Yard | None = None


@atexit.register
def _let_go() -> None:
    """Foreground jobs end with the process, at once and not when their lease does."""
    for job in list(_live):
        job._job.let_go()


def _yard() -> Yard:
    global _default
    with _default_lock:
        if _default is None:
            _default = Yard()
        return _default


def find(name: str) -> bool:
    """Yard.find() in the cluster that kubectl would use, or the embedded one."""
    return _yard().find(name)


def kill(name: str) -> None:
    """Yard.kill() there."""
    _yard().kill(name)


def init_job(name: str, **options: Any) -> Job:
    """Yard.init_job() there."""
    return _yard().init_job(name, **options)


def attach(name: str) -> Job:
    """Yard.attach() there."""
    return _yard().attach(name)
