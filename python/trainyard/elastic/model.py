"""Loads the file that a user wrote, and says clearly what it lacks."""

from __future__ import annotations

import importlib.util
import inspect
import os
import sys
import traceback
from types import ModuleType
from typing import Any, Callable

from trainyard._native import Error
from trainyard.elastic.job import Job

MODULE = "trainyard_model"  # what the file is called here
REQUIRED = ("model", "optimizer", "dataset_fn")
NEEDED_BY = {"train": (), "evaluate": ("eval_metrics_fn",), "predict": ()}


def load_model(path: str) -> ModuleType:
    """The module of the file. What it imports may lie beside it."""
    if not os.path.exists(path):
        raise Error(f"there is no model {path}")
    folder = os.path.dirname(os.path.abspath(path))
    if folder not in sys.path:
        sys.path.insert(0, folder)
    spec = importlib.util.spec_from_file_location(MODULE, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[MODULE] = module
    spec.loader.exec_module(module)
    return module


def check_functions(module: ModuleType, job: Job) -> None:
    """Error: which function is missing."""
    missing = [name for name in REQUIRED + NEEDED_BY[job.kind] if not callable(getattr(module, name, None))]
    if missing:
        raise Error(f"{module.__file__} has no function {' and no '.join(missing)}: a model has either net(job), or "
                    f"{', '.join(REQUIRED)} and their like (see docs/elastic.md)")
    for flag, name in (("--data-reader", job.data_reader), ("--writer", job.writer)):
        if name and not callable(getattr(module, name, None)):
            raise Error(f"{module.__file__} has no function {name}, which {flag} names")


def described(error: BaseException, file: str) -> str:
    """One line: what was raised and, where it came through the model, from which line of it or of a file beside it."""
    line = in_one_line(error)
    folder = os.path.dirname(os.path.abspath(file)) + os.sep
    frames = [frame for frame in traceback.extract_tb(error.__traceback__)
              if os.path.abspath(frame.filename).startswith(folder)]
    if not file or not frames or isinstance(error, SyntaxError):  # which says so itself
        return line
    return f"{line} ({os.path.basename(frames[-1].filename)}, line {frames[-1].lineno})"


def in_one_line(error: BaseException) -> str:
    try:
        text = " ".join(str(error).split())
    except Exception:  # an exception of the user's own, that cannot even say what it is
        text = ""
    if isinstance(error, Error):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def call(function: Callable[..., Any], *arguments: Any, job: Any) -> Any:
    """With the job, if the function wants it."""
    parameters = inspect.signature(function).parameters
    wants = "job" in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    return function(*arguments, job=job) if wants else function(*arguments)
