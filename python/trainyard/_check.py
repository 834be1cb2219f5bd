"""Holds the arguments of public calls to their type hints, so that a wrong one is told by its name."""

from __future__ import annotations

import collections.abc
import functools
import inspect
import numbers
import operator
import types
import typing
from typing import Annotated, Any, Callable, TypeVar

import numpy as np

from trainyard import _native

# Whole numbers with bounds.
Whole = Annotated[int, range(-2**63, 2**63)]
Small = Annotated[int, range(-2**31, 2**31)]
Seed = Annotated[int, range(0, 2**63)]

_Function = TypeVar("_Function", bound=Callable[..., Any])
_NO = object()  # what does not fit


def conform(where: str, value: Any, hint: Any) -> Any:
    """The value as the hint has it: numpy's numbers as Python's, sequences as lists. TypeError says what is wrong
    with which argument, and Error that a number is out of bounds."""
    fitting = _fit(where, value, hint)
    if fitting is _NO:
        raise TypeError(f"{where} must be {_wanted(hint)}, and is {_found(value)}")
    return fitting


def checked(function: _Function) -> _Function:
    """The function, with every argument conforming to its hint."""
    signature = inspect.signature(function)
    name = "" if function.__name__ == "__init__" else f"{function.__name__}: "
    hints: dict[str, Any] = {}

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not hints:  # now, for hints may name classes that come later
            hints.update(typing.get_type_hints(function, include_extras=True))
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:  # the function says it better
            return function(*args, **kwargs)
        for argument, value in bound.arguments.items():
            if argument in hints and value is not signature.parameters[argument].default:
                bound.arguments[argument] = conform(name + argument, value, hints[argument])
        return function(*bound.args, **bound.kwargs)

    return typing.cast(_Function, call)


def _fit(where: str, value: Any, hint: Any) -> Any:
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        fitting = (_fit(where, value, one) for one in typing.get_args(hint))
        return next((one for one in fitting if one is not _NO), _NO)
    if origin is Annotated:
        return _whole(where, value, hint.__metadata__[0])
    if origin is collections.abc.Sequence:
        return _sequence(where, value, typing.get_args(hint)[0])
    if hint is float:
        real = isinstance(value, (numbers.Real, np.floating)) and not isinstance(value, bool)
        return float(value) if real else _NO
    if hint is bool:
        return bool(value) if isinstance(value, (bool, np.bool_)) else _NO
    if hint is str and isinstance(value, str):
        return text(where, value)
    return value if isinstance(value, hint) else _NO


def text(where: str, value: str) -> str:
    """The text, if it can be written down."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise _native.Error(f"{where} is {value!r}, which is no text") from None
    return value


def _whole(where: str, value: Any, bounds: range) -> Any:
    if isinstance(value, (bool, np.bool_)) or not hasattr(value, "__index__"):
        return _NO
    try:
        number = operator.index(value)
    except TypeError:  # an array of several numbers
        return _NO
    if number not in bounds:
        raise _native.Error(f"{where} must be between {bounds.start} and {bounds.stop - 1}, and is {number}")
    return number


def _sequence(where: str, value: Any, hint: Any) -> Any:
    if isinstance(value, (str, bytes)) or not isinstance(value, (collections.abc.Sequence, np.ndarray)):
        return _NO
    return [conform(f"{where}[{i}]", one, hint) for i, one in enumerate(value)]


def _wanted(hint: Any) -> str:
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_wanted(one) for one in typing.get_args(hint))
    if origin is collections.abc.Sequence:
        return "a list"
    if hint is types.NoneType:
        return "None"
    name = "int" if origin is Annotated else "number" if hint is float else hint.__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def _found(value: Any) -> str:
    if value is None:
        return "None"
    name = type(value).__name__
    text = repr(value)
    shown = f" ({text})" if isinstance(value, (bool, int, float, str, bytes)) and len(text) <= 40 else ""
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}{shown}"
