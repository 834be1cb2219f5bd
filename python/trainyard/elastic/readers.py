"""Readers of a model's own: what `--data-reader NAME` names makes one of each source.

A reader has a length, which is how many records there are, and gives records by their numbers, from 0 on:

    __len__()            always
    read(begin, end)     an iterable of the records [begin, end), which are any objects
    __getitem__(number)  one record; instead of read, or beside it
    read_at(numbers)     an iterable of the records of these numbers, in their order; for --shuffle records

It is made, asked and forgotten by one thread.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from trainyard._native import Error
from trainyard.elastic.job import Job
from trainyard.elastic.model import call, described, in_one_line

KINDS = ("training", "evaluation", "prediction")
MOST_RECORDS = 2**53  # as the master has it
FAREWELL = 2.0  # seconds, for a reader that is in the middle of something


class ReaderError(Error):
    """What a reader did that it must not: one line that names the source."""


class SourceReader:
    """One source, and the reader that the model's function has made of it."""

    def __init__(self, module: ModuleType, job: Job, source: str) -> None:
        self.source = source
        self._file = module.__file__
        name = job.data_reader
        self._reader = self._ask(f"{name}()", lambda: call(getattr(module, name), source, job=job))
        for wanted in (("__len__",), ("read", "__getitem__")):
            if not any(callable(getattr(self._reader, one, None)) for one in wanted):
                raise ReaderError(f"{source}: {name}() gives a {type(self._reader).__name__}, which has no "
                                  f"{' and no '.join(wanted)}: a reader has a length, and read(begin, end) or __getitem__")
        self.count = self._ask("len()", lambda: len(self._reader))
        if not 1 <= self.count <= MOST_RECORDS:
            raise ReaderError(f"{source}: its reader says that it has {self.count} records: there must be from 1 to "
                              f"{MOST_RECORDS}")

    def read(self, numbers: list[int]) -> list[Any]:
        """The records of these numbers, each of them. ReaderError: what is wrong, with the source and the range."""
        begin, end = numbers[0], numbers[-1] + 1
        if numbers == list(range(begin, end)):
            return self._read_range(begin, end)
        if hasattr(self._reader, "read_at"):
            return self._take("read_at() of records " + shortened(numbers), lambda: self._reader.read_at(list(numbers)),
                              len(numbers))
        if hasattr(self._reader, "__getitem__"):
            return [self._ask(f"record {number}", lambda: self._reader[number]) for number in numbers]
        return [self._read_range(number, number + 1)[0] for number in numbers]

    def _read_range(self, begin: int, end: int) -> list[Any]:
        if hasattr(self._reader, "read"):
            return self._take(f"read({begin}, {end})", lambda: self._reader.read(begin, end), end - begin)
        return [self._ask(f"record {number}", lambda: self._reader[number]) for number in range(begin, end)]

    def _take(self, what: str, ask: Callable[[], Iterable[Any]], count: int) -> list[Any]:
        """So many records, and no more: an iterable may have no end."""
        def taken() -> list[Any]:
            given = ask()
            if given is None or isinstance(given, (bytes, bytearray, str)):
                raise ReaderError(f"{self.source}: {what} gave {'None' if given is None else f'one {type(given).__name__}'}, "
                                  "and not an iterable of records")
            return list(itertools.islice(given, count + 1))
        records = self._ask(what, taken)
        if len(records) != count:
            given = f"more than {count}" if len(records) > count else str(len(records))
            raise ReaderError(f"{self.source}: {what} gave {given} records, and not {count}")
        return records

    def _ask(self, what: str, ask: Callable[[], Any]) -> Any:
        """What the user's code gives. ReaderError: what it raised, in one line."""
        try:
            return ask()
        except ReaderError:
            raise
        except BaseException as error:  # also SystemExit, which would end this thread and nothing else
            traceback.print_exc()
            raise ReaderError(f"{self.source}: {what} raised {described(error, self._file)}") from error


def told(failure: BaseException) -> str:
    """What the master is told: never nothing, and always text that can be sent."""
    text = str(failure) if isinstance(failure, ReaderError) else in_one_line(failure)
    return text.encode("utf-8", "replace").decode()


def shortened(numbers: list[int]) -> str:
    some = ", ".join(map(str, numbers[:3]))
    return some if len(numbers) <= 3 else f"{some}, … ({len(numbers)})"


def open_readers(module: ModuleType, job: Job, kind: str) -> list[SourceReader]:
    """Of all sources of that kind, whose records go together by number."""
    readers = [SourceReader(module, job, source) for source in job.sources(kind)]
    for one in readers:
        if one.count != readers[0].count:
            raise ReaderError(f"{one.source} has {one.count} records, and {readers[0].source} has {readers[0].count}: "
                              "they go together by number")
    return readers


def count_records(module: ModuleType, job: Job) -> dict[str, int]:
    """How many records there are for each kind of work, where the job does not say it."""
    return {kind: open_readers(module, job, kind)[0].count
            for kind in KINDS if job.sources(kind) and not job.told_records(kind)}


class Reading:
    """The thread that reads: ahead of what is computed, and as far as the worker wants. All readers are its own."""

    def __init__(self, native: Any, module: ModuleType, job: Job) -> None:
        self._native = native
        self._module = module
        self._job = job
        self._readers: dict[str, list[SourceReader]] = {}
        self._read: dict[int, list[Any]] = {}  # by ticket: what waits to be computed with
        self._stopped = False
        # A reader that never comes back must not keep the process.
        self._thread = threading.Thread(target=self._run, name="reading", daemon=True)

    def start(self) -> None:
        """Relative names of files are those of where the job was submitted, if that is here."""
        try:
            os.chdir(self._job.all["folder"])
        except OSError:
            pass
        self._thread.start()

    def take(self, batch: Any) -> list[Any]:
        """The records of a minibatch; once."""
        return self._read.pop(self._native.ticket(batch))

    def join(self) -> None:
        """After the worker was stopped."""
        self._stopped = True
        if self._thread.is_alive():
            self._thread.join(FAREWELL)

    def _run(self) -> None:
        while (asked := self._native.next_read()) is not None:
            ticket, kind, numbers, forgotten = asked
            for one in forgotten:
                self._read.pop(one, None)
            try:
                self._read[ticket] = self.records(kind, numbers)
                error = ""
            except BaseException as failure:  # the trainer waits for an answer, whatever it is
                self._readers.pop(kind, None)  # it may be broken for good: the next try has another one
                error = told(failure)
                with contextlib.suppress(OSError):
                    print(error, file=sys.stderr)
            if self._stopped:
                return  # perhaps the interpreter is ending
            self._native.answer_read(ticket, error)

    def records(self, kind: str, numbers: list[int]) -> list[Any]:
        """As dataset_fn has them: those of the one source, or tuples of those of all."""
        if kind not in self._readers:
            self._readers[kind] = self._open(kind)
        lists = [reader.read(numbers) for reader in self._readers[kind]]
        return lists[0] if len(lists) == 1 else list(zip(*lists))

    def _open(self, kind: str) -> list[SourceReader]:
        readers = open_readers(self._module, self._job, kind)
        expected = self._job.told_records(kind)
        for reader in readers:
            if reader.count != expected:
                raise ReaderError(f"{reader.source}: the job is for {expected} records, and the reader has {reader.count} here: a "
                                  "source must be the same for all workers, and must not change while its job runs")
        return readers
