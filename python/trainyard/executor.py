"""Runs programs in this process: arrays in, arrays out."""

from __future__ import annotations

import os
from typing import Any, Mapping, Sequence, Union

import numpy as np

from trainyard import _native
from trainyard._check import Small, checked, text
from trainyard.net import Variable
from trainyard.program import Graph, Part, Program

Runnable = Union[Program, Graph, Part]


class Executor:
    """Runs programs over variables of its own.

    Persistable variables (parameters, and what optimizers keep) stay from run to run and are shared by all programs
    that one executor runs, by name. Two executors share nothing. Calls may come from many threads and are done one at a
    time; other Python threads run meanwhile.

    Arrays: floating numbers become float32, whole numbers int64, bools stay bools; the one is never made the other.
    Complex numbers, uint64 and anything else are refused. Arrays that come out are the caller's own.
    """

    @checked
    def __init__(self, *, threads: Small = 1, check_finite: bool = False) -> None:
        """threads: inside one operator. check_finite: an operator that makes a NaN or an infinity is an Error that
        names it."""
        self._session = _native.Session(threads, check_finite)

    def start(self, program: Runnable) -> None:
        """Gives the program's persistable variables their first values."""
        startup = program if isinstance(program, Part) else _runnable("start", program).startup
        self._session.start(startup._program)

    def run(self, program: Runnable, feed: Mapping[str, Any] | None = None,
            fetch: Sequence[Variable | str] = ()) -> list[np.ndarray]:
        """Runs the program's main part once, and gives the values of the variables in `fetch`.

        feed: an array for each variable of Net.data(), by its name, for this run.

        Error: what is wrong, and in which operator. EndOfPass: Net.read() has come to the end of the records."""
        main = program if isinstance(program, Part) else _runnable("run", program).main
        if feed is not None and not isinstance(feed, Mapping):
            raise TypeError(f"run: feed must be a dict, and is a {type(feed).__name__}")
        if isinstance(fetch, (str, Variable)) or not isinstance(fetch, Sequence):
            raise TypeError(f"run: fetch must be a list, and is a {type(fetch).__name__}")
        arrays = [(_name("run: feed", key), _array(f"run: feed[{_name('run: feed', key)!r}]", value))
                  for key, value in (feed or {}).items()]
        return self._session.run(main._program, arrays, [_name("run: fetch", variable) for variable in fetch])

    def get(self, variable: Variable | str) -> np.ndarray:
        """A copy of a persistable variable's value."""
        return self._session.get(_name("get: variable", variable))

    def set(self, variable: Variable | str, value: Any) -> None:
        """Gives a persistable variable a value. One that it has must have the same type and shape."""
        self._session.set(_name("set: variable", variable), _array("set: value", value))

    def names(self) -> list[str]:
        """The variables that have a value, in order."""
        return self._session.names()

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes each variable into a file NAME.tensor of the folder, which is made if need be. Each file is replaced
        whole; whoever is killed halfway leaves files of before and files of now."""
        self._session.save(_path("save", folder))

    def load(self, folder: str | os.PathLike[str], *, allow_missing: bool = False) -> None:
        """Sets every variable of which the folder has a file; after an Error none is set. A variable that has a value
        must have a file, unless allow_missing is given."""
        self._session.load(_path("load", folder), bool(allow_missing))


def _runnable(call: str, program: Any) -> Program | Graph:
    if not isinstance(program, (Program, Graph)):
        raise TypeError(f"{call}: program must be a Program, and is a {type(program).__name__}")
    return program


def _name(where: str, variable: Any) -> str:
    if isinstance(variable, Variable):
        return variable.name
    if not isinstance(variable, str):
        raise TypeError(f"{where}: a variable is named by a str or a Variable, and not by a {type(variable).__name__}")
    return text(where, variable)


def _path(call: str, folder: Any) -> bytes:
    if not isinstance(folder, (str, os.PathLike)):
        raise TypeError(f"{call}: folder must be a str or a path, and is a {type(folder).__name__}")
    return os.fsencode(folder)


def _array(where: str, value: Any) -> np.ndarray:
    """The value as one of the three types, its elements one after the other."""
    array = np.asarray(value)
    if array.dtype.kind == "f" and array.dtype.itemsize <= 8:
        dtype = np.float32
    elif array.dtype.kind in "iu" and array.dtype != np.uint64:
        dtype = np.int64
    elif array.dtype.kind == "b":
        dtype = np.bool_
    else:
        raise TypeError(f"{where} is of {array.dtype}, which becomes neither float32, int64 nor bool: convert it first")
    return np.asarray(array, dtype=dtype, order="C")
