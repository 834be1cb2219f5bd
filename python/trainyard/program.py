"""Programs, and the graphs that a program is made into when it trains on many machines."""

from __future__ import annotations

import struct
from typing import Any

from trainyard import _native
from trainyard._check import Small, Whole, checked


class Part:
    """One of a program's two halves: blocks of variables and operators. It does not change."""

    __slots__ = ("_program", "__weakref__")

    def __init__(self, program: Any) -> None:
        """Not for users: Net.finish() makes them, and from_bytes()."""
        self._program = program

    @property
    def id(self) -> str:
        """Its name: "mnist.main"."""
        return self._program.id

    @property
    def seed(self) -> int:
        """Of every random operator that has none of its own."""
        return self._program.seed

    @property
    def variables(self) -> dict[str, str]:
        """The type of each variable: {"w": "f32[784, 128]"}."""
        return {name: kind for name, kind, _, _ in self._program.variables}

    @property
    def persistables(self) -> list[str]:
        """The variables that an executor keeps from run to run, saves and loads."""
        return [name for name, _, persistable, _ in self._program.variables if persistable]

    @property
    def parameters(self) -> list[str]:
        """The variables that are learnt."""
        return [name for name, _, _, parameter in self._program.variables if parameter]

    def to_bytes(self) -> bytes:
        """Equal programs have equal bytes."""
        return self._program.bytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> Part:
        """What to_bytes() gave. Error: these are other bytes."""
        return cls(_native.Program(data))

    def __str__(self) -> str:
        """As text, for people."""
        return self._program.text()

    def __repr__(self) -> str:
        return f"<Part {self.id}>"

    def __eq__(self, other: object) -> bool:
        return self._program.equals(other._program) if isinstance(other, Part) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self):
        return Part.from_bytes, (self.to_bytes(),)


class Program:
    """What a net becomes: `main`, which trains or predicts, and `startup`, which gives the parameters their first
    values. It does not change. An executor prepares it once, so keep it as long as it is run."""

    __slots__ = ("_main", "_startup")
    _HEAD = struct.Struct("<8sQ")  # of the bytes: what they are, and how many are main's
    _MAGIC = b"TYPROGS1"

    @checked
    def __init__(self, main: Part, startup: Part) -> None:
        self._main = main
        self._startup = startup

    @property
    def main(self) -> Part:
        """What Executor.run() runs."""
        return self._main

    @property
    def startup(self) -> Part:
        """What Executor.start() runs."""
        return self._startup

    def clone_for_test(self) -> Program:
        """The program as it predicts: nothing of the backward pass, dropout off, running averages used. An executor has
        the same parameters for both."""
        return Program(Part(self._main._program.clone_for_test()), self._startup)

    def to_bytes(self) -> bytes:
        """Both parts. Equal programs have equal bytes."""
        main = self._main.to_bytes()
        return self._HEAD.pack(self._MAGIC, len(main)) + main + self._startup.to_bytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> Program:
        """What to_bytes() gave. Error: these are other bytes."""
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise TypeError(f"from_bytes: data must be bytes, and is a {type(data).__name__}")
        data = bytes(data)
        if len(data) < cls._HEAD.size or not data.startswith(cls._MAGIC):
            raise _native.Error("these bytes are no program")
        end = cls._HEAD.size + cls._HEAD.unpack_from(data)[1]
        if end > len(data):
            raise _native.Error("these bytes are only the beginning of a program")
        return cls(Part.from_bytes(data[cls._HEAD.size:end]), Part.from_bytes(data[end:]))

    def __str__(self) -> str:
        """Both parts as text, for people."""
        return f"{self._main}\n{self._startup}"

    def __repr__(self) -> str:
        return f"<Program {self._main.id}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Program):
            return NotImplemented
        return self._main == other._main and self._startup == other._startup

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self):
        return Program.from_bytes, (self.to_bytes(),)


class Graph:
    """One trainer's or one pserver's share of a program that trains on many machines. One worker runs one graph, and
    graphs find each other by their ids."""

    __slots__ = ("_graph", "_main", "_startup")

    def __init__(self, graph: Any) -> None:
        """Not for users: dist_transpiler() makes them."""
        self._graph = graph
        self._main = Part(graph.main)
        self._startup = Part(graph.startup)

    @property
    def id(self) -> str:
        """"trainer-0", "pserver-1"."""
        return self._graph.id

    @property
    def role(self) -> str:
        """"trainer" or "pserver"."""
        return self._graph.role

    @property
    def index(self) -> int:
        """Its number among those of its role."""
        return self._graph.index

    @property
    def mode(self) -> str:
        """"sync" or "async"."""
        return self._graph.mode

    @property
    def send_var_graph_map(self) -> dict[str, str]:
        """The id of the graph that each variable is sent to."""
        return self._graph.send_var_graph_map

    @property
    def recv_var_graph_map(self) -> dict[str, str]:
        """The id of the graph that each variable comes from."""
        return self._graph.recv_var_graph_map

    @property
    def main(self) -> Part:
        """What its worker runs."""
        return self._main

    @property
    def startup(self) -> Part:
        """What its worker runs before that."""
        return self._startup

    def __str__(self) -> str:
        """Both parts as text, for people."""
        return f"{self._main}\n{self._startup}"

    def __repr__(self) -> str:
        return f"<Graph {self.id}>"


@checked
def dist_transpiler(program: Program, *, trainers_num: Small = 1, trainer_pass_num: Whole = 1, pservers_num: Small = 1,
                    mode: str = "sync", slice: bool = True, min_block_elements: Whole = 8192,
                    dispatch: str = "round_robin") -> tuple[list[Graph], list[Graph]]:
    """The graphs of the trainers and those of the pservers that train the program together.

    trainers_num, pservers_num: how many of each.
    trainer_pass_num: how often the trainers go over all records.
    mode: "sync": every step waits for all trainers; "async": each trainer goes on by itself.
    slice: parameters are cut into blocks of at least min_block_elements, so that pservers share the load.
    dispatch: which pserver gets which block: "round_robin", or "hash", by the block's name.
    """
    options = _native.TranspileOptions(trainers_num, trainer_pass_num, pservers_num, mode, slice, min_block_elements,
                                       dispatch)
    trainers, pservers = _native.transpile(program.main._program, program.startup._program, options)
    return [Graph(graph) for graph in trainers], [Graph(graph) for graph in pservers]
